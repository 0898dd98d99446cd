"""Loading records as one commit: small ones in memory, larger ones as files that tasks stage.

Read `inputs` (which engine loads what) and `small` (a load in memory). Then `job`, whose steps are in `sources/`
(what is read), `staging/` (rows into files, and files into tables), `checking/` (rules and bad records) and, for
all of them against one state, `preparer`.
"""
