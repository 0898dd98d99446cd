"""Commands about what changed: log, blame, diff, changes, merge, revert, cherry-pick and reset."""
