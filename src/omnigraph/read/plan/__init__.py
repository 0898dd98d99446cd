"""Choosing how to run a pattern: look-ups or whole tables, where to start, in which order.

Read `planner`, then `access` and `estimates`.
"""
