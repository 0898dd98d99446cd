"""Filling vectors that the rows of a graph lack, from their texts.

Read `requests` (which rows need a vector), then `job` and `tasks`.
"""
