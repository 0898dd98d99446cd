"""Maintenance: changes of a graph's tables that change none of its rows.

Read `index_plan` (which indexes a table should have) and `indices` (building them as one commit), then
`compaction` (small files put together as one commit). `owners` says which branch owns a table; `repair` publishes
table versions that were made with Lance directly.
"""
