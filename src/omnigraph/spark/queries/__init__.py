"""Queries at scale: the same IR as the embedded engine runs, as DataFrame operations over one snapshot.

Read `requests` and `execution`, then `steps` (what to join), `matching` (the joins), `scanning` and `reading` (the
tables), `ranking` and `output`.
"""
