"""Writing one snapshot as records that a load takes back.

Read `job`, then `parts` (what each task writes) and `targets` (files, directories and buckets).
"""
