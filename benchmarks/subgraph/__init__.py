"""Nine patterns counted in a network of persons, posts and comments (`-m benchmarks.subgraph`)."""
