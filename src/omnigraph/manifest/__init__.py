"""The manifest: what makes many tables one graph. One compare-and-swap publishes a new state of all of them.

Read `state` (what one version holds), `publisher` (the compare-and-swap), `refs` (branches and tags), `commits`
with `lineage`, then `repository` (a graph with all its parts) and `snapshot` (one state of it, as plain data);
`schemas` has the accepted schemas, `streams` the marks of micro-batches, `migrations` the way from older formats.
"""
