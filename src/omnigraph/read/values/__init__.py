"""Columns and exact arithmetic on them: comparisons, counts, orders and distances.

Read `columns` and `comparing` (with `textual`), then `counting`, `sorting` and `vectors`; `parallel` has threads.
Of computed values, `integers` and `encoded` are quick ways, and `kernels` has all the others.
"""
