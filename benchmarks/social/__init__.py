"""Twelve questions about people: whom they follow, where they live, what they like (`-m benchmarks.social`)."""
