"""What makes many tables one graph: a catalog that is published by one compare-and-swap."""
