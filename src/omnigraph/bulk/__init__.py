"""Bulk work of any size: loads, exports and the filling of vectors, as tasks on a runner.

Read `runner` (what runs tasks: this process or Spark) and `pieces` (what a task reads of a table), then `load/`,
`export/` and `embed/`. Nothing here imports Spark; `omnigraph.spark` has the other runner.
"""
