"""The scalar functions of the language: one table for the checker, both engines and the reference page.

Read `signature` (what a row of the table says), then `table` (the rows).
"""
