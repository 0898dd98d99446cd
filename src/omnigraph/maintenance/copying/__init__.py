"""Copies of graphs: clones, which are graphs of their own, and backups, from which graphs are restored.

Read `extent` (which versions of which tables belong to a copy, as of one moment), `plan` (the files that they
refer to), `transfer` (moving files between stores), then `clone` and `backup`, which put the three together.
"""
