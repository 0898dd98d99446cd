"""Recovery: a write that a dead writer left unfinished is finished or undone by the next writer.

Read `sidecar` (what a writer leaves), `classify` (how far it came), `heal` (finishing or undoing it), `audit` (the
log of recoveries) and `late` (requests that arrive afterwards); `jobs` removes the files of bulk jobs that died.
"""
