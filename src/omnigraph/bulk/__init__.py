"""Bulk work of any size: loads, exports and the filling of vectors, as tasks on a runner.

Read `runner` (what runs tasks: this process or Spark), then `load/job`, `export/job` and `embed/job`.
Nothing here imports Spark; `omnigraph.spark` brings the other runner.
"""
