"""The schema language: `.pg` text becomes a catalog, in which everything else looks up types.

Read in order `parser` (text to `syntax`), `check` and `resolve` (to a `shape`), `identity` (stable numbers of
types and properties) and `catalog`; `migration` compares two schemas, `format` rewrites one.
"""
