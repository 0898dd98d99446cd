"""Columns and exact arithmetic on them: comparisons, counts, orders and distances.

Read `columns` and `comparing` (with `textual`), then `counting`, `sorting` and `vectors`; `parallel` has threads,
`arrays` the way from NumPy to Arrow.
Of computed values, `integers` and `encoded` are quick ways, and `kernels` has all the others.
"""
