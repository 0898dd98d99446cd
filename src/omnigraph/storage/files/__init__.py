"""The files of Lance tables: complete, named by checksum and synced before anything refers to them.

Read `staged` (checks the files of a change) with `checksums`, `deletions` and `durability`, then `verification`
(compares them when they are read); `datafiles` writes those of bulk jobs.
"""
