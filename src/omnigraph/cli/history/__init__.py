"""Commands about what changed: diff, merge, revert, cherry-pick and reset."""
