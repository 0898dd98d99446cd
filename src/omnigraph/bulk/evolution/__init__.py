"""Changes of the schema that compute columns of large tables.

Read `job` (which tables are changed by tasks) and `tasks` (computing the columns of some fragments).
"""
