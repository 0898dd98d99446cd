"""What is seen of a server: its log, its metrics, its requests."""
