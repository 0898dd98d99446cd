"""Bytes that lie outside of the graph, at addresses that an operator has allowed: `sources` says which, and
`files`, `buckets` and `web` fetch them."""
