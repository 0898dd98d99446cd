"""Maintenance: changes of a graph's tables that change none of its rows.

Read `index_plan` (which indexes a table should have) and `indices` (building them as one commit); `repair`
publishes table versions that were made with Lance directly.
"""
