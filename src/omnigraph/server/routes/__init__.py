"""What can be asked of a server: the table of routes, their parameters, and their description."""
