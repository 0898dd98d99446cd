"""Recovery: what a dead writer left behind is finished or undone by the next one.

Read `sidecar` (what a writer leaves), `classify` (how far it came), `heal` (what follows), `audit` (the record),
`late` (requests that arrive afterwards); `jobs` is about files of bulk jobs that died.
"""
