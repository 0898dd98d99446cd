"""What an operator writes: `document` (YAML with lines), `config` (cluster.yaml), `resources` (with digests)."""
