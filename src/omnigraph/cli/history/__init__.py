"""Commands about what changed: log, diff, merge, revert, cherry-pick and reset."""
