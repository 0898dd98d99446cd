"""The type checker of queries: does a query fit the schema? Every rule has its own code.

Read `scope` (parameters and variables), `patterns` (the match block), `reads` (returns, orders and
unions) and `mutations`; `operands` and `fits` have the types of single values.
"""
