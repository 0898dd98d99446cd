"""Aggregates in Spark, and numbers that have no room in their types: they fail by name when they are computed."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Final, TypeGuard

from pyspark.sql import Column
from pyspark.sql import functions as fn

from omnigraph.errors import NumberOverflow, SumOverflow
from omnigraph.lang.query import ir
from omnigraph.lang.query.explain import show
from omnigraph.lang.values import INTEGER_BOUNDS, INTEGERS, Scalar, ValueType
from omnigraph.spark.frames import spark_type
from omnigraph.spark.queries.failures import in_words

WIDE: Final = "decimal(38,0)"
"""Room for the sum of any integers."""


def aggregated(agg: ir.Agg, values: Column, kind: ValueType) -> Column:
    """An aggregate. Integers are added exactly, however many; averages become a float at the end."""
    match agg.function:
        case "count":
            return fn.count_distinct(values) if agg.distinct else fn.count(values)
        case "min":
            return fn.min(values)
        case "max":
            return fn.max(values)
        case "collect":
            return fn.sort_array(fn.collect_set(values) if agg.distinct else fn.collect_list(values))
        case "stddev":
            return _deviation(values.cast("double"))
        case "median" | "percentile":
            return fn.percentile(values.cast("double"), 0.5 if agg.fraction is None else agg.fraction)
    total = fn.sum(values.cast("decimal(20,0)" if kind.scalar in INTEGERS else "double"))
    return total if agg.function == "sum" else fn.try_divide(total.cast("double"), fn.count(values))


def _deviation(values: Column) -> Column:
    """The standard deviation of samples. Where squares would leave the range of floats, numbers are made smaller
    or larger first, and the result is made as large or as small again."""
    usual, small, large = (fn.stddev_samp(values * scale) / scale for scale in (1.0, 2.0**500, 2.0**-600))
    is_usual = usual.isNull() | ((usual > 2.0**-450) & (usual < 2.0**450))
    all_equal = (usual == 0.0) & fn.isnan(small)
    return fn.when(is_usual | all_equal, usual).when(usual < 1.0, small).otherwise(large)


def is_integer_sum(expression: ir.Expr) -> bool:
    """Is it a sum over integers, which may exceed its type?"""
    return isinstance(expression, ir.Agg) and expression.function == "sum" and expression.type.is_integer


def may_overflow(expression: ir.Expr) -> TypeGuard[ir.Agg]:
    """Is it an aggregate that adds up, and may find that there is no room for the sum?"""
    return isinstance(expression, ir.Agg) and expression.function in ("sum", "avg")


def narrow(value: Column, agg: ir.Agg, query: ir.QueryIR) -> Column:
    """A sum with its type; one that is too large fails when it is computed."""
    kind, wide = spark_type(agg.type), WIDE if agg.type.is_integer else "double"
    refusal = fn.raise_error(in_words(SumOverflow(query.name, show(agg))))
    return fn.when(value.isNull() | _has_room(value, agg.type), value).otherwise(refusal.cast(wide)).cast(kind)


def _has_room(value: Column, kind: ValueType) -> Column:
    """Is a number one that a type can say?"""
    if not kind.is_integer:
        return fn.abs(value) < fn.lit(math.inf)
    low, high = INTEGER_BOUNDS[kind.scalar]
    return value.between(fn.lit(Decimal(low)), fn.lit(Decimal(high)))


def shared(value: Column, found: ValueType, wanted: ir.Column, query: str) -> Column:
    """A column of one read with the type that those of a union share; a value without room in it fails."""
    kind = spark_type(wanted.type)
    if not (found.is_plain and found.scalar is Scalar.U64 and wanted.type.scalar is Scalar.I64):
        return value.cast(kind)
    refusal = fn.raise_error(in_words(NumberOverflow(query, wanted.name, "a value has no room in 64 bits")))
    fits = value.isNull() | _has_room(value, wanted.type)
    return fn.when(fits, value).otherwise(refusal.cast("decimal(20,0)")).cast(kind)
