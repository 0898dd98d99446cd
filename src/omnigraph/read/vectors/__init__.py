"""Vectors in memory by partition, so that a search compares a few of them instead of all.

Read `clusters` (what is near together), `heads` (few numbers that tell most of a vector), then `partitions`
(one stretch of a column) and `search` (a column that has grown).
"""
