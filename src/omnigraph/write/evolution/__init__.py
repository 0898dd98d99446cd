"""Changing the schema of a branch, with its rows.

Read `tables` (what happens to each table), `fills` (values for rows that have none), `rules` (do the rows keep the
new rules?) and `apply`, which makes all of it one commit.
"""
