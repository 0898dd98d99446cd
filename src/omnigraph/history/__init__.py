"""History: what changed between two states of a graph, table by table and entity by entity.

Read `tables` (the change of one table, at the cost of what changed) with `columns` (across changes of the schema)
first, then `diff` (the change of a graph) and `refs` (what callers name states by). `log`, `blame` and `schemas`
look back, `merging` puts changes together, and `feed` follows a branch.
"""
