"""Search measured honestly: how many of the best ten are found, beside how long it takes."""
