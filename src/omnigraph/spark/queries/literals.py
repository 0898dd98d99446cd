"""Values that are the same in all rows, as columns of exactly the type they have in the language."""

from __future__ import annotations

from decimal import Decimal

from pyspark.sql import Column
from pyspark.sql import functions as fn

from omnigraph.lang.parameters import Value
from omnigraph.lang.values import Scalar, ValueType
from omnigraph.read.values.comparing import plain
from omnigraph.spark.frames import spark_type


def literal(value: Value, kind: ValueType) -> Column:
    """A value as a column. Days and instants go as numbers, which no calendar and no time zone can change."""
    if value is None:
        return fn.lit(None).cast(spark_type(kind))
    if isinstance(value, tuple):
        return fn.array(*(literal(item, kind.item) for item in value)).cast(spark_type(kind))
    if kind.scalar is Scalar.DATE:
        return fn.date_from_unix_date(fn.lit(plain(value)))
    if kind.scalar is Scalar.DATETIME:
        return fn.timestamp_millis(fn.lit(plain(value)))
    if isinstance(value, int) and not isinstance(value, bool):
        return fn.lit(Decimal(value)).cast(spark_type(kind))
    return fn.lit(value).cast(spark_type(kind))
