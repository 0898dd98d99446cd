"""Collecting problems and suggesting names."""

from __future__ import annotations

import pytest

from omnigraph.errors import LanguageError, SchemaError
from omnigraph.lang.diagnostics import MAX_REPORTED, Diagnostics, nearest_name, suggest
from omnigraph.lang.source import Source, Span


def collector(text: str = "x" * 500) -> Diagnostics:
    return Diagnostics(Source(text))


def test_problems_come_in_reading_order_whatever_the_order_of_discovery() -> None:
    found = collector()
    for start in (30, 10, 20):
        found.report("P001", "parse error", "wrong", Span(start, start + 1))
    assert [d.column for d in found.listed] == [11, 21, 31]


def test_one_code_is_reported_once_per_place() -> None:
    found = collector()
    for code in ("P001", "P001", "P002"):
        found.report(code, "parse error", "wrong", Span(0, 1))
    assert [d.code for d in found.listed] == ["P001", "P002"]
    assert found.count == 2


def test_a_flood_is_cut_and_counted() -> None:
    found = collector()
    for start in range(MAX_REPORTED + 7):
        found.report("P001", "parse error", "wrong", Span(start, start + 1))
    with pytest.raises(SchemaError) as raised:
        found.raise_as(SchemaError)
    assert len(raised.value.diagnostics) == MAX_REPORTED
    assert raised.value.omitted == 7
    assert str(raised.value).endswith("… and 7 more")


def test_remedies_that_take_work_are_only_made_for_problems_that_are_listed() -> None:
    found, made = collector(), 0

    def remedy() -> str:
        nonlocal made
        made += 1
        return f"remedy {made}"

    for start in range(MAX_REPORTED + 7):
        found.report("P001", "parse error", "wrong", Span(start, start + 1), remedy)
    assert made == MAX_REPORTED
    assert found.listed[0].help == "remedy 1"


def test_nothing_is_raised_where_nothing_was_found() -> None:
    collector().raise_if_any(LanguageError)


@pytest.mark.parametrize(
    ("name", "known", "expected"),
    [
        ("Strin", ["String", "Bool"], "String"),
        ("string", ["String", "Bool"], "String"),
        ("NAME", ["name", "nick"], "name"),
        ("zzz", ["name"], None),
        ("name", [], None),
        ("n" * 65, ["n" * 64], None),
    ],
)
def test_the_nearest_name(name: str, known: list[str], expected: str | None) -> None:
    assert nearest_name(name, known) == expected


def test_a_suggestion_is_the_nearest_name_or_what_there_is() -> None:
    assert suggest("nam", ["name", "age"]) == "did you mean `name`?"
    assert suggest("nam", ["name"], "$") == "did you mean `$name`?"
    assert suggest("zzz", ["b", "a"]) == "known: `a`, `b`"
    assert suggest("zzz", [f"p{i}" for i in range(9)], otherwise=None).endswith("`p7`, …")  # type: ignore[union-attr]
    assert suggest("zzz", ["name"], otherwise="look it up") == "look it up"
    assert suggest("zzz", []) is None
