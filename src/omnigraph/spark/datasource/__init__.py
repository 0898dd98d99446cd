"""`spark.read.format("omnigraph")` and its sinks `df.write` and `df.writeStream`.

Read `source` first, then `staging`, which both sinks use, `batch` and `stream`.
"""
