"""The cluster control plane: graphs, schemas, stored queries, policies and providers as files, applied as one.

Read `codes` (everything that can be said about a cluster) and `configuration/` (cluster.yaml → resources with
digests), then `state/` (the ledger, the lock, the catalog, approvals and sidecars, all below `__cluster`), then
`changes/` (plan, apply, and what happens after a crash). `observing` looks at live graphs, `status` at the ledger,
`serving` is what a server reads, and `managed` tells whether a graph is a cluster's.
"""
