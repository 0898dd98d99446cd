"""Records in and out of files: JSON Lines, Parquet and Arrow columns. Nothing here knows a store or a graph.

Read `columns` (the Arrow form of a type) and `rows`, then for input `jsonl/` and `columnar`, which converts
columns by `cells`, and for output `encoding`.
"""
