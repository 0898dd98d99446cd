"""Writing: every change of a graph is prepared, validated, staged and committed by one protocol.

Read `protocol` (all writers go through `commit_write`), `base` (the state a change is prepared against), `delta`
and `evaluator` with `rules` (what may be written), `committing/` (from a staged change to a commit), then
`mutations/`; `upkeep/` keeps the tables in shape.
"""
