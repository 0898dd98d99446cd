"""Writing: every change of a graph is prepared, validated, staged and committed by one protocol.

Read `protocol` (all writers go through `commit_write`), `base` (the state a change is prepared against), `delta`
and `evaluator` with `rules` (what may be written), `outcomes` (what became of a failed write), then `mutations/`.
"""
