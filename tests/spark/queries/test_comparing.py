"""Columns compared by Spark are compared as Python compares numbers: without rounding either."""

from __future__ import annotations

import operator
from decimal import Decimal
from itertools import product
from typing import TYPE_CHECKING, Any

from tests.read.reference_values import round_f32
from tests.spark.queries.answers import quick_session

from omnigraph.lang.query.ir import Op
from omnigraph.lang.values import Scalar, ValueType
from omnigraph.spark.frames import spark_type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VALUES: dict[Scalar, list[Any]] = {
    Scalar.I32: [-(2**31), -1, 0, 1, 16777217, 2**31 - 1, None],
    Scalar.I64: [-(2**63), -(2**53) - 1, -1, 0, 2**53, 2**53 + 1, 2**63 - 1, None],
    Scalar.U32: [0, 1, 16777217, 2**32 - 1, None],
    Scalar.U64: [0, 1, 2**53 + 1, 2**63, 2**64 - 1, 2**64 - 2048, None],
    Scalar.F32: [round_f32(one) for one in (-0.0, 0.1, -1.5, 16777216.0, 2.0**63, 2.0**64, -(2.0**63), 3e38)]
    + [None],
    Scalar.F64: [
        -0.0,
        0.1,
        -1.5,
        2.0**53,
        2.0**63,
        2.0**64,
        -(2.0**63),
        2.0**64 - 2048,
        16777216.5,
        1e300,
        -1e300,
        None,
    ],
}
OPS = {Op.EQ: operator.eq, Op.LT: operator.lt}
"""The other comparisons follow from these."""
COMPARED = [(one, other, op) for one, other, op in product(VALUES, VALUES, OPS) if one is not other]


def test_numbers_of_all_types_compare_exactly(spark: SparkSession) -> None:
    from pyspark.sql import functions as fn

    from omnigraph.spark.queries.comparing import compare

    session = quick_session(spark)
    kinds = {scalar: ValueType(scalar, nullable=True) for scalar in VALUES}
    names = {(scalar, side): f"{side}_{scalar.lower()}" for scalar, side in product(VALUES, ("left", "right"))}
    pairs = list(product(range(max(map(len, VALUES.values()))), repeat=2))
    rows = [
        [
            _sent(scalar, VALUES[scalar][(one if side == "left" else other) % len(VALUES[scalar])])
            for scalar, side in names
        ]
        for one, other in pairs
    ]
    schema = ", ".join(f"{name} {spark_type(kinds[scalar])}" for (scalar, _), name in names.items())
    frame = session.createDataFrame(rows, schema)
    compared = [
        compare(op, fn.col(names[one, "left"]), fn.col(names[other, "right"]), (kinds[one], kinds[other]))
        for one, other, op in COMPARED
    ]
    found = frame.select(*(column.alias(str(index)) for index, column in enumerate(compared))).collect()
    for (left, right), row in zip(pairs, found, strict=True):
        for (one, other, op), said in zip(COMPARED, row, strict=True):
            first, second = VALUES[one][left % len(VALUES[one])], VALUES[other][right % len(VALUES[other])]
            expected = None if first is None or second is None else OPS[op](first, second)
            assert said is expected, f"{first!r} ({one}) {op} {second!r} ({other})"


def _sent(scalar: Scalar, value: Any) -> Any:
    return Decimal(value) if scalar is Scalar.U64 and value is not None else value
