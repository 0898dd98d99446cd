"""Columns and exact arithmetic on them: comparisons, counts, orders and distances.

Read `columns` and `comparing`, then what is needed of `counting`, `sorting`, `textual` and `vectors`.
"""
