"""Running a plan: frames of positions go through steps until the rows of the result are there.

Read `frame` and `steps`, then `operators` (memory) and `lookups` (indexes), `groups`, `output`, and
`search` for scores and rankings.
"""
