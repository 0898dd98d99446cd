"""A schema has a largest size, and interfaces cannot be used to get around it."""

from __future__ import annotations

from tests.lang.schema.support import places, problems

from omnigraph.lang.schema.resolve import MAX_PROPERTIES


def test_interfaces_multiply_and_are_counted_before_they_are_applied() -> None:
    wide = " ".join(f"p{i}: I32" for i in range(501))
    nodes = "\n".join(f"node N{i} implements Wide {{}}" for i in range(100))
    text = f"interface Wide {{ {wide} }}\n{nodes}"
    [problem] = problems(text)
    assert problem == f"C208 100:6 the schema has more than {MAX_PROPERTIES:,} properties"


def test_numbers_have_a_largest_value() -> None:
    assert places("node N { v: Vector(2147483648) }") == ["P003 1:20"]
    assert places("edge E: N -> N @card(0..4294967296)\nnode N {}") == ["P003 1:25"]
    assert places("node N { x: I64 @range(x, 0..9223372036854775808) }") == ["P003 1:30"]
    assert places(f"node N {{ x: F64 @range(x, 0..1{'0' * 399}.0) }}") == ["P003 1:30"]


def test_the_largest_numbers_are_allowed() -> None:
    assert places("node N { x: I64 @range(x, -9223372036854775807..9223372036854775807) }") == []


def test_long_names_are_shortened_in_messages_and_never_compared_at_length() -> None:
    name = "N" * 200_000
    [problem] = problems(f"node {name} {{ p: {name}x }}")
    assert len(problem) < 120
