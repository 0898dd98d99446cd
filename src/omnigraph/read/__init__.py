"""Reading: how a checked query becomes the rows of one snapshot.

Read `requests` and `execution`, then `pattern/` (what has to hold), `plan/` (in which order) and `run/`
(doing it); `data/` holds tables in memory, `text/`, `vectors/` and `values/` their columns, `result/` what a
caller gets.
"""
