"""Maintenance: changes of a graph's tables that change none of its rows.

Read `index_plan` (which indexes a table should have, with `indexed`, which looks at a table) and `indices`
(building them as one commit), then `optimize` (small files and indexes, in steps) and `maintain` (all of it, by a
policy). `cleanup` removes what no kept state needs, `copying` makes clones and backups, `doctor` examines a graph,
and `repair` deals with table versions that the manifest does not know. `owners` says which branch owns a table.
"""
