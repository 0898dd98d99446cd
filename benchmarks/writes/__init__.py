"""What writes cost. Run `python -m benchmarks.writes`."""
