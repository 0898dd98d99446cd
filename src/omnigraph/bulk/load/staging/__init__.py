"""Rows on their way into tables: `stager` reads and stages them, `merge` finds what they replace, and
`transactions` makes one change of each table."""
