"""Tables in memory: columns, ids and the topology between tables, kept under one memory budget.

Read `tables`, then `adjacency`, `ids` and `cache`.
"""
