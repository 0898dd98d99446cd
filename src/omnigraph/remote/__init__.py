"""The same graph over HTTP: what `omnigraph.connect` gives.

Read `connecting` (which graph of which server), then `handle`, `versions`, `merging` and `graph` (its methods),
then `transport` (requests and answers).
"""
