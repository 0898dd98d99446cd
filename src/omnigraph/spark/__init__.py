"""Spark: sessions, jobs, DataFrames, streams and queries. The only package that imports pyspark.

Read `session` (where Spark starts) and `runner` (how tasks get to workers), then `loads/`, `queries/`,
`datasource/` and `streaming/`.
"""
