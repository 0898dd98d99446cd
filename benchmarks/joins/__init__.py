"""Equal properties of nodes that no edge connects, beside DuckDB (`-m benchmarks.joins`)."""
