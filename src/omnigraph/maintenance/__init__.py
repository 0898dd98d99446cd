"""Keeping a graph fast: what is done to its tables that changes none of its rows."""
