"""Loading records as one commit: small ones in memory, larger ones as files that tasks stage.

Read `job` first, which names the passes, then `sources`, `staging`, `checks`, `merging` and `committing`.
`small` is the load of a few megabytes in one piece.
"""
