"""Cleanup: removing the states that a policy gives up, and all files that no state needs.

Read `retention` (the policy), `bases` and `states` (which states stay, and which table versions they name),
`files` (what lies in a table's folder), `garbage` (what may go), `sweep` (removing it under the lock), then `run`.
"""
