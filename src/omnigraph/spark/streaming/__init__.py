"""Structured Streaming into a graph: each micro-batch is one commit.

Read `stream`, then `records` (rows of text as records) and `query` (the handle a caller gets).
"""
