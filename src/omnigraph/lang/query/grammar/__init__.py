"""The grammar of queries: text to syntax tree.

Read `parser` (files, queries and mutations), `clauses` (what a match block holds), then `expressions`.
"""
