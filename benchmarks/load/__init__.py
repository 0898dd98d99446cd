"""Bulk loads: how long it takes until a graph's worth of JSON Lines is checked, committed and ready to be read."""
