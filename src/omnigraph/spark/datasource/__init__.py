"""`spark.read.format("omnigraph")`, `spark.readStream`, and the sinks `df.write` and `df.writeStream`.

Read `source` first, then `changes`, the streaming source; `staging`, which both sinks use, `batch` and `stream`.
"""
