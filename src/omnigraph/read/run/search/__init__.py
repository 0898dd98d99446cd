"""Scores and rankings: `scorers` (one evaluator for each score function), `ranking` (which rows are best), and for
vectors on large tables `indexed` and `nearest` (candidates from an index).
"""
