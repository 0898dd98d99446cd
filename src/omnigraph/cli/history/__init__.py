"""Commands about what changed: log, blame, diff, merge, revert, cherry-pick and reset."""
