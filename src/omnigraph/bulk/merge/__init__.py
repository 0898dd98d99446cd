"""Merges of changes that exceed the memory of one process, by tasks over buckets of entities.

`job.py` says how one goes.
"""
