"""What answers requests: plain functions of a call, which run in threads. Read `calls` first."""
