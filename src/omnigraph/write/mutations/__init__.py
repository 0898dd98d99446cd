"""Mutations: statements over a pinned state and the rows they have written so far.

Read `execution`, then `pending` and `predicates`.
"""
