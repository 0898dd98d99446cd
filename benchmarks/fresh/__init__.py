"""The query after a write: how long it takes beside the same query before it."""
