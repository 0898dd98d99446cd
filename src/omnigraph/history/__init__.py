"""History: what changed between two states of a graph, table by table and entity by entity.

Read `tables` (the change of one table, at the cost of what changed) first, then `diff` (the change of a graph) and
`refs` (what callers name states by).
"""
