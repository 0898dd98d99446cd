"""Mutations: the statements of a query, run in memory over a pinned state and the rows written so far.

Read `requests` (one mutation, one commit), `execution` (its statements), then `pending` and `predicates`.
"""
