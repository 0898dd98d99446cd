"""Reading JSON Lines: one record per line, strictly, at about the speed of Arrow's own reader.

Read `records` (what a record is), then `blocks`, which reads many with `lines`, `parse` and `columns`.
"""
