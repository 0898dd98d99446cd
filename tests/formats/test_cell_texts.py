"""Cells of CSV: what one means, or that it is refused, does not depend on the cells beside it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sampling import examples

from omnigraph.formats.delimited import Delimited, Piece, has_hexadecimal, read_delimited
from omnigraph.formats.dialect import PLAIN
from omnigraph.lang.schema.catalog import load_catalog

CATALOG = load_catalog("""
node Thing {
  i: I32?  l: I64?  u: U32?  h: U64?  f: F32?  g: F64?  flag: Bool?  day: Date?  at: DateTime?
  nums: [I32]?  weights: [F64]?  words: [String]?  days: [Date]?  v: Vector(2)?
}
""")
THING = CATALOG.nodes["Thing"]
REFUSED = "refused"
UNREADABLE = "zz!"
"""What no type takes but text: beside it, every cell is read by itself."""


def read(name: str, *cells: str) -> list[Any]:
    """What the cells of a column become."""
    form = Delimited(THING, PLAIN, (name, "other"), {name: name})
    quoted = (cell.replace('"', '""') for cell in cells)
    data = "".join(f'"{cell}",\n' for cell in quoted).encode()
    (block,) = read_delimited([Piece(data)], form, has_header=False)
    found: list[Any] = [REFUSED] * len(cells)
    for records in block.records.values():
        for line, value in zip(records.lines.tolist(), records.rows[name].to_pylist(), strict=True):
            found[line - 1] = value
    return found


@pytest.mark.parametrize(
    ("name", "cell", "value"),
    [
        *[(name, cell, REFUSED) for name in "iluh" for cell in ("0x10", "0X1f", "-0x1", "0b1", "1e3", "1_0")],
        ("i", "007", 7),
        ("i", "+5", 5),
        ("g", "0x1p3", REFUSED),
        ("nums", "0x1;2", REFUSED),
        ("nums", "[0x1]", REFUSED),
        ("nums", "[[1]]", REFUSED),
        ("nums", "]1[", REFUSED),
        ("nums", "[1", REFUSED),
        ("nums", "1]", REFUSED),
        ("nums", "[1,]", REFUSED),
        ("nums", "[null]", REFUSED),
        ("nums", "[1;2]", REFUSED),
        ("nums", "[]", []),
        ("nums", "[ ]", []),
        ("nums", " [1, 2] ", [1, 2]),
        ("nums", '["1"]', [1]),
        ("nums", "[01]", [1]),
        ("nums", "[+1]", [1]),
        ("weights", "[.5, 5.]", [0.5, 5.0]),
        ("weights", "[[.5]]", REFUSED),
        ("weights", "[NaN]", REFUSED),
        ("at", "2020-01-01T00", REFUSED),
        ("at", "2020-01-01 00Z", REFUSED),
    ],
)
def test_a_cell_means_the_same_beside_any_other(name: str, cell: str, value: Any) -> None:
    assert read(name, cell) == [value]
    assert read(name, cell, UNREADABLE) == [value, REFUSED]


PARTS = [
    "0",
    "1",
    "9",
    "12",
    "00",
    "-",
    "+",
    ".",
    "e",
    "E",
    "x",
    "X",
    " ",
    "[",
    "]",
    ",",
    ";",
    '"',
    "_",
    "f",
    "\t",
]
TIMES = [
    "2020",
    "1969",
    "-",
    "01",
    "31",
    "T",
    " ",
    ":",
    "00",
    "59",
    "Z",
    "z",
    "+",
    ".5",
    ".1239",
    ",5",
    "24",
    "12:30",
]


@settings(max_examples=examples(150, of=4_000), deadline=None)
@given(
    st.sampled_from(list(THING.properties)),
    st.lists(
        st.one_of(st.lists(st.sampled_from(PARTS), max_size=6), st.lists(st.sampled_from(TIMES), max_size=12)).map(
            "".join
        ),
        min_size=1,
        max_size=3,
    ),
)
def test_cells_mean_the_same_together_and_alone(name: str, cells: list[str]) -> None:
    alone = [read(name, cell)[0] for cell in cells]
    assert read(name, *cells) == alone
    assert read(name, *cells, UNREADABLE)[:-1] == alone or name == "words"


@given(st.lists(st.sampled_from([b"0", b"x", b"X", b"8", b"\n", b"\xff"]), max_size=9).map(b"".join))
@settings(max_examples=examples(200, of=2000))
def test_hexadecimal_numbers_are_found_at_any_place(data: bytes) -> None:
    assert has_hexadecimal(data) == (b"0x" in data or b"0X" in data)
    assert has_hexadecimal(bytearray(b"12," * 100_001 + data)) == has_hexadecimal(data)
