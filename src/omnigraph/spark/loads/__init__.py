"""What a load does differently on Spark: DataFrames as input, and checks of keys by joins.

Read `requests`, then `frames` (staging DataFrames), `keys`, `joins` and `rejected` (rows that are skipped).
"""
