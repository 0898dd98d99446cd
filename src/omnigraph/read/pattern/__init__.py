"""What follows from a query alone: its match as a graph of variables, and what the result needs.

Read `pattern`, then `needs` and `subtraction`; `prepared` keeps all of it for the next time.
"""
