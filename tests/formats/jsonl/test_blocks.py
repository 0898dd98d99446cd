"""Reading records by the block gives exactly what the strict reader gives, line by line."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.formats.jsonl.blockchecks import GOOD, check, edge, plain, strictly, thing
from tests.formats.jsonl.records_text import CATALOG, blocks_of_lines
from tests.sampling import examples

from omnigraph.formats.jsonl.blocks import Unreadable, read_block
from omnigraph.formats.jsonl.records import read_line
from omnigraph.lang.schema.catalog import Catalog


def strict_lines(text: str) -> list[bytes]:
    """The lines of a block that the strict reader has to read."""
    seen: list[bytes] = []

    def read(line: bytes, catalog: Catalog) -> Any:
        seen.append(line)
        return read_line(line, catalog)

    read_block(text.encode(), CATALOG, strict=read)
    return seen


@settings(max_examples=examples(40, of=400), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=blocks_of_lines(), size=st.sampled_from([1, 50, 300, 1 << 20]))
def test_blocks_are_read_as_lines_are(data: bytes, size: int) -> None:
    check(data, size)


def test_what_a_block_holds() -> None:
    lines = [
        '{"edge": "Knows", "from": "Ada", "to": "Bo", "data": {"weight": 1, "since": "2024-02-29"}}',
        '{"type": "Person", "data": {"name": "Ada", "age": 36}}',
        "// a comment",
        "{}",
        '{"edge": "KNOWS", "from": "Bo", "to": "Ada", "data": {"weight": 0.5, "id": "k"}}',
        "",
    ]
    block = check("\n".join(lines) + "\n")
    assert list(block.records) == ["edge:Knows", "node:Person"]
    knows, person = block.records.values()
    assert knows.lines.tolist() == [1, 5]
    assert knows.rows.to_pydict() == {
        "id": [None, "k"],
        "src": ["Ada", "Bo"],
        "dst": ["Bo", "Ada"],
        "since": [dt.date(2024, 2, 29), None],
        "weight": [1.0, 0.5],
    }
    assert person.rows.to_pydict() == {"id": ["Ada"], "age": [36], "data": [None], "name": ["Ada"]}
    assert block.unreadable == [Unreadable(4, 1, "a record has either 'type' or 'edge'")]
    assert block.lines == 6


@pytest.mark.parametrize("data", [b"", b"\n", b"\r\n \n", b"// nothing"])
def test_nothing_to_read(data: bytes) -> None:
    assert check(data).records == {}


def test_bytes_of_any_kind() -> None:
    data = f"{GOOD}\n{GOOD}".encode()
    for given_ in (data, memoryview(data), memoryview(bytearray(b"x" + data))[1:]):
        assert plain(read_block(given_, CATALOG)) == plain(strictly(data))


class TestFastPath:
    """What Arrow reads alone: were these lines given to the strict reader, loads would be slow, if not wrong."""

    @pytest.mark.parametrize(
        "line",
        [
            GOOD,
            '{"type":"Thing","data":{}}',
            '{ "type" : "Thing" , "data": {}}',
            thing('"i": -2147483648, "l": 9223372036854775807, "u": 4294967295, "h": 18446744073709551615'),
            thing('"f": 0.1, "g": 1e300, "b": false, "kind": "red", "s": null'),
            thing('"f": 16777217, "g": 9007199254740993'),
            thing('"f": -0.0, "sizes": [-0.0, 1], "v": [-0.0, -0e1]'),
            thing(
                '"day": "2024-02-29", "days": ["0001-01-01", "9999-12-31"], "words": ["", "é"], "flags": [true]'
            ),
            thing('"at": "2024-02-29T10:00:00Z", "times": ["1969-12-31T23:59:59.999999Z"]'),
            thing('"at": "2024-02-29T10:00:00.123456+00:00"'),
            thing('"at": "2024-02-29T11:00:00+01:00", "times": ["2024-02-29", "2024-02-29T10:00:00.1234567Z"]'),
            thing('"blob": "base64:AAEC", "v": [1, 2.5], "weights": []'),
            thing(r'"s": "\ud83d\ude00 \u00e9 \"id\" \\"'),
            thing('"id": "t1"'),
            '{"type": "Person", "data": {"name": "Ada"}}',
            '{"type": "Person", "data": {"name": "Ada", "id": "Ada"}}',
            '{"type": "Seat", "data": {"row": 7, "on": "1970-01-02"}}',
            r'{"type": "Seat", "data": {"id": "[\"1\",\"7\"]", "row": 7, "on": "1970-01-02"}}',
            r'{"type": "Stop", "data": {"name": "\"\\\né", "at": "1970-01-01T00:00Z", "open": true, "size": 1}}',
            '{"type": "Mark", "data": {"x": 1e21}}',
            '{"type": "Tick", "data": {"at": "1969-12-31T23:59:59.9999Z"}}',
            '{"type": "Doc", "data": {"title": "x"}}',
            '{"type": "Doc", "data": {"title": "x", "meaning": [1, 2]}}',
            edge('"weight": 1'),
            edge('"weight": 1, "id": "k"'),
            edge('"weight": 1', "kNOWS"),
            '{"edge": "Plain", "from": "", "to": "b"}',
            '{"edge": "Plain", "from": "a", "to": "b", "data": {}}',
            '{"edge": "Plain", "to": "a", "data": {"id": "p"}, "from": "b"}',
            '{"type": "Thing"}',
            '{"edge" : "plain", "from": "a", "to": "b"}',
            '{"data": {"s": "x"}, "type": "Thing"}',
            '{"data": {"since": "2024-01-01", "weight": 2}, "edge": "Knows", "from": "a", "to": "b"}',
            '{"from": "a", "to": "b", "edge": "Plain"}',
            '{"data": {"type": "Person", "id": "l"}, "type": "Label"}',
        ],
    )
    @pytest.mark.parametrize("end", ["\n", "\r\n"])
    def test_regular_records(self, line: str, end: str) -> None:
        text = end.join([line, line, line])
        block = check(text)
        assert block.unreadable == []
        assert [typed.lines.tolist() for typed in block.records.values()] == [[1, 2, 3]]
        assert strict_lines(text) == []

    def test_members_that_only_some_records_have(self) -> None:
        lines = [
            *[thing('"v": [1, 2]'), thing(""), thing('"id": "t"'), thing('"v": [3, 4], "words": ["a"]')],
            *['{"edge": "Plain", "from": "a", "to": "b"}', edge('"id": "p"', "Plain"), edge("", "Plain")],
            *[
                '{"type": "Doc", "data": {"title": "x"}}',
                '{"type": "Doc", "data": {"title": "x", "meaning": [1, 2]}}',
            ],
        ]
        for order in (lines, lines[::-1]):
            assert len(check("\n".join(order)).unreadable) == 0
            assert strict_lines("\n".join(order)) == []

    def test_one_bad_record_among_many(self) -> None:
        lines = [thing(f'"i": {number}') for number in range(20_000)]
        lines[7_777] = thing('"i": "x"')
        [bad] = check("\n".join(lines)).unreadable
        assert (bad.line, bad.column, bad.reason) == (7_778, 1, 'Thing.i is I32?: "x" is not an integer')
        assert len(strict_lines("\n".join(lines))) < 100

    def test_values_in_doubt_take_no_others_with_them(self) -> None:
        doubtful = [thing('"g": -0'), thing('"id": ""'), thing('"g": 1e308, "words": [null]'), thing('"v": [1]')]
        lines = [GOOD, *doubtful, '{"type": "Person", "data": {"name": "a", "id": "b"}}', GOOD]
        check("\n".join(lines))
        assert sorted(strict_lines("\n".join(lines))) == sorted(line.encode() for line in lines[1:-1])

    def test_many_types(self) -> None:
        lines = [
            *['{"type": "Person", "data": {"name": "Ada"}}', GOOD, '{"edge": "Plain", "from": "a", "to": "b"}'],
            *['{"type": "Mark", "data": {"x": 1}}', '{"type":"Thing", "data": {}}', edge('"weight": 2')],
        ]
        block = check("\n".join(lines * 50))
        assert strict_lines("\n".join(lines * 50)) == []
        assert block.records["node:Thing"].lines[:4].tolist() == [2, 5, 8, 11]


class TestCuts:
    LINES = (
        '{"type": "Person", "data": {"name": "Ada"}}',
        edge('"weight": -0'),
        thing('"blob": "base64:AA=="'),
        "",
        '{"type": "Person", "data": {"name": "é"}}',
        "nonsense",
        edge('"weight": 1'),
        thing('"blob": null, "v": [1, 2]'),
    )

    @pytest.mark.parametrize("end", ["\n", "\r\n"])
    @pytest.mark.parametrize("last", ["", "\n"])
    def test_where_a_block_is_cut_does_not_matter(self, end: str, last: str) -> None:
        data = (end.join(self.LINES * 2) + last).encode()
        expected = plain(strictly(data))
        for size in range(1, len(data) + 20, 19):
            assert plain(read_block(data, CATALOG, size)) == expected

    def test_lines_that_are_longer_than_what_is_read_at_once(self) -> None:
        wide = thing(f'"s": "{"x" * 100_000}"')
        check("\n".join([wide, GOOD, wide, GOOD, "", wide]), 10)
