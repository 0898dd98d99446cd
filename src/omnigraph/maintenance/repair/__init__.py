"""Repair: tables at versions that the graph does not know, explained, and published or undone.

Read `report` (what a repair says), `drift` (what happened to a table) and `repair` (doing something about it);
`cures` has the small things that are put right besides.
"""
