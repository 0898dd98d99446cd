"""Optimizing large tables: groups of files are written again, and segments of indexes are built, by tasks.

Read `job` (which tables are large) and `tasks`.
"""
