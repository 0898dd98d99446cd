"""Files of Lance tables on their way to a commit and back: whole, named by checksum, on the disk.

`staged` checks what was written, with `checksums`, `deletions` and `durability`; `verification` compares when rows
are read; `datafiles` are those that tasks of bulk jobs write.
"""
