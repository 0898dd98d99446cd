"""Commands about what changed: diff, changes, merge, revert, cherry-pick and reset."""
