"""What a cluster keeps below `__cluster`: `places`, `ledger`, `lock`, `catalog`, `approvals` and `sidecars`."""
