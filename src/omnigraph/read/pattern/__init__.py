"""The analysis of a query before its tables: the match as a graph of variables, and what the result needs of it.

Read `pattern`, then `analysis`, `equalities`, `needs`, `starts` and `subtraction`; `prepared` keeps all of it for
the next execution.
"""
