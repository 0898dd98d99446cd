"""What a query returns: a table with conversions, for programs, terminals and notebooks.

Read `result`, then `nesting` (whole nodes and edges), `cells` (values of a column) and `display` (text and HTML).
"""
