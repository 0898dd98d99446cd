"""The change feed: the commits of a branch in order, each with what it changed against its first parent.

Read `line` (the states of a branch, one after another) first, then `blocks` (the changes of one commit), `tokens`
and `positions` (cursors), and `pages` (polls, which put them together).
"""
