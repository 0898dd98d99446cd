"""The syntax tree of a .gq file: what was written, in the order it was written.

Spans are not part of a tree's identity: two trees are equal when they say the same thing. Read `expressions`,
`clauses` and `queries`.
"""
