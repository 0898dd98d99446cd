"""Changes of one table that are written but not committed: files that no version refers to yet, and a transaction.

Read `changes` (rows, which `lookups` finds), then `compaction` and `folds` (the same rows in fewer files, with
`row_versions`), `columns` with `fields` (other columns) and `indexes`. `storage.tables` commits what is staged.
"""
