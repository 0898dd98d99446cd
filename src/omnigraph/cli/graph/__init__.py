"""Commands about graphs, their branches, commits and schemas."""
