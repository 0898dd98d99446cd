"""Writing: changes are prepared, checked, staged and committed by one protocol."""
