"""Embedding clients: text in, vectors out."""
