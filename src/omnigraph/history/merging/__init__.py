"""Putting changes together: merges, reverts, cherry-picks and resets.

Read `threeway` (one table) and `sides` (all of them), `bases` with `brought` (what two branches are compared from)
and `adoption` (what a merge has to take over of a schema); then `comparison`, `adopting` and `merge` with `plans`,
and `undo` with `steps`.
"""
