"""Commands that look after a graph: indexes, jobs, recoveries and repairs."""
