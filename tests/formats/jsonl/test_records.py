"""Reading the records of a load: strictly, line by line, with every bad line named."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from tests.formats.jsonl.strict import StrictRecords, read_strictly

from omnigraph.formats.jsonl.blocks import Unreadable
from omnigraph.formats.jsonl.records import LONGEST_LINE, MAX_STRUCTURE
from omnigraph.lang.schema.catalog import load_catalog
from omnigraph.lang.values import F32_MAX

CATALOG = load_catalog("""
node Person { name: String @key  age: I32?  nick: String? }
node Event { what: String?  weight: F64?  size: F32?  big: U64?  words: [String]?  v: Vector(2)?  blob: Blob? }
node Seat { row: U32  on: Date  @key(row, on) }
node Doc { title: String  meaning: Vector(2) @embed("title") }
edge WorksAt: Person -> Person { since: Date? }
""")


def read(data: bytes | str) -> dict[str, StrictRecords]:
    found = read_strictly(data.encode() if isinstance(data, str) else data, CATALOG)
    assert found.unreadable == []
    return found.records


def problems(data: bytes | str) -> list[Unreadable]:
    return read_strictly(data.encode() if isinstance(data, str) else data, CATALOG).unreadable


def problem(data: bytes | str) -> str:
    [only] = problems(data)
    return only.reason


def event(values: str) -> str:
    return f'{{"type": "Event", "data": {{{values}}}}}'


def column(data: str, table_key: str, name: str) -> list[Any]:
    return read(data)[table_key].columns[name]


class TestLines:
    def test_columns_by_type_with_the_line_of_each_record(self) -> None:
        found = read(
            '{"type": "Person", "data": {"name": "Ada", "age": 36}}\n\n'
            '{"edge": "WorksAt", "from": "Ada", "to": "Bo"}\n'
            '{"type": "Person", "data": {"name": "Bo"}}'
        )
        assert list(found) == ["node:Person", "edge:WorksAt"]
        assert found["node:Person"].columns == {
            "id": ["Ada", "Bo"],
            "age": [36, None],
            "name": ["Ada", "Bo"],
            "nick": [None, None],
        }
        assert found["node:Person"].lines == [1, 4]
        assert found["edge:WorksAt"].columns == {"id": [None], "src": ["Ada"], "dst": ["Bo"], "since": [None]}

    @pytest.mark.parametrize("ending", ["\n", "\r\n"])
    @pytest.mark.parametrize("last", ["", "\n", "\r\n", "\n\n \n"])
    def test_line_ends(self, ending: str, last: str) -> None:
        two = ending.join(['{"type": "Event"}', '{"type": "Event"}']) + last
        assert read(two)["node:Event"].lines == [1, 2]

    @pytest.mark.parametrize("data", ["", "\n", "\r\n\r\n", "  \t \n", "// only a comment", " \t// {}\n//"])
    def test_nothing_to_read(self, data: str) -> None:
        assert read(data) == {}

    def test_a_comment_takes_a_whole_line(self) -> None:
        assert problem('{"type": "Event"} // no') == "not JSON: Extra data"
        assert problem("/ {}").startswith("not JSON")

    def test_separators_of_unicode_are_no_line_ends(self) -> None:
        assert column(event('"what": "a\u2028b\x85c"'), "node:Event", "what") == ["a\u2028b\x85c"]

    def test_an_object_is_on_one_line(self) -> None:
        assert [p.line for p in problems('{"type":\n"Event"}')] == [1, 2]

    def test_a_byte_order_mark_is_no_json(self) -> None:
        assert "BOM" in problem(b'\xef\xbb\xbf{"type": "Event"}')

    def test_bytes_that_are_no_text(self) -> None:
        [found] = problems(b'{"type": "Event", "data": {"what": "\xff"}}')
        assert (found.line, found.column, found.reason) == (1, 37, "not UTF-8: byte 0xff")
        assert "not UTF-8" in problem(b'{"type": "Event", "data": {"what": "\xed\xa0\x80"}}')

    def test_halves_of_characters(self) -> None:
        assert "surrogate" in problem(event(r'"what": "\ud83d"'))
        assert "surrogate" in problem(r'{"type": "Event", "data": {"id": "\uDE00"}}')
        assert column(event(r'"what": "\ud83d\ude00 \\ud83d"'), "node:Event", "what") == ["\U0001f600 \\ud83d"]

    def test_a_line_that_is_too_long(self) -> None:
        long = event(f'"what": "{"x" * LONGEST_LINE}"')
        assert problem(long) == f"the line has {len(long):,} bytes; the limit is 33,554,432"
        assert len(column(event(f'"what": "{"x" * (LONGEST_LINE - 100)}"'), "node:Event", "what")) == 1

    def test_a_line_with_too_much_structure(self) -> None:
        assert "more than 131,072 brackets" in problem(event(f'"words": [{"1," * MAX_STRUCTURE}1]'))
        brackets = "[" * (MAX_STRUCTURE + 1) + '\\"{'
        assert len(column(event(f'"what": "{brackets}"'), "node:Event", "what")) == 1

    def test_nesting_that_is_too_deep(self) -> None:
        assert problem(event(f'"what": {"[" * 50_000}{"]" * 50_000}')) == "nested too deeply"

    def test_the_column_is_counted_in_the_line_as_it_is(self) -> None:
        [found] = problems('   {"type" "Event"}')
        assert found.column == 12


class TestMembers:
    @pytest.mark.parametrize(
        ("line", "reason"),
        [
            ('"Event"', "a record is a JSON object"),
            ("[]", "a record is a JSON object"),
            ("null", "a record is a JSON object"),
            ('[{"type": "Event"}]', "; each is on a line of its own, as `jq -c '.[]'` writes those of an array"),
            ("[", "not JSON: Expecting value; each is on a line of its own"),
            ("{", "in double quotes; each is on a line of its own"),
            ("{}", "a record has either 'type' or 'edge'"),
            ('{"type": "Event", "edge": "WorksAt"}', "a record has either 'type' or 'edge'"),
            ('{"type": "Event", "id": "e"}', "unknown member 'id'; a record has data, type"),
            ('{"type": "Event", "from": "a"}', "unknown member 'from'"),
            (
                '{"edge": "WorksAt", "src": "a", "dst": "b"}',
                "unknown member 'src'; a record has data, edge, from, to",
            ),
            ('{"type": "Nobody"}', 'unknown node type "Nobody"'),
            ('{"type": "event"}', 'unknown node type "event"'),
            ('{"type": "WorksAt"}', 'unknown node type "WorksAt"'),
            ('{"type": ["Event"]}', 'unknown node type ["Event"]'),
            ('{"type": null}', "unknown node type null"),
            ('{"edge": "Person", "from": "a", "to": "b"}', 'unknown edge type "Person"'),
            ('{"edge": {}, "from": "a", "to": "b"}', "unknown edge type {}"),
            ('{"edge": "WorksAt", "to": "b"}', "'from' is the id of a node, a string"),
            ('{"edge": "WorksAt", "from": "a", "to": null}', "'to' is the id of a node, a string"),
            ('{"edge": "WorksAt", "from": 1, "to": "b"}', "'from' is the id of a node, a string"),
            ('{"edge": "WorksAt", "from": "a", "to": "b", "data": {"dst": "c"}}', "WorksAt has no property 'dst'"),
            ('{"type": "Event", "data": null}', "'data' is an object"),
            ('{"type": "Event", "data": "what"}', "'data' is an object"),
            ('{"type": "Event", "data": {"whta": 1}}', "Event has no property 'whta'"),
            ('{"type": "Event", "data": {"whta": null}}', "Event has no property 'whta'"),
            ('{"type": "Event", "data": {"id": 7}}', "'id' is a string"),
            ('{"type": "Event", "data": {"id": null}}', "'id' is a string"),
            ('{"type": "Event", "data": {"id": ""}}', "'id' is a string"),
            ('{"type": "Event", "type": "Event"}', "member 'type' is repeated"),
            ('{"type": "Event", "data": {"what": "a", "what": "a"}}', "member 'what' is repeated"),
            ('{"type": "Event", "data": {"words": [{"a": 1, "b": 2, "a": 3}]}}', "member 'a' is repeated"),
            ('{"type": "Event", "data": {"weight": NaN}}', "NaN is not JSON"),
            ('{"type": "Event", "data": {"weight": -Infinity}}', "-Infinity is not JSON"),
            ("{'type': 'Event'}", "not JSON"),
            ('{"type": "Event",}', "not JSON"),
        ],
    )
    def test_what_a_record_may_not_be(self, line: str, reason: str) -> None:
        assert reason in problem(line)

    def test_edges_in_any_letter_case_and_data_left_out(self) -> None:
        lines = "\n".join(
            f'{{"edge": "{name}", "from": "a", "to": "b"}}' for name in ("WorksAt", "worksAt", "WORKSAT")
        )
        assert column(lines, "edge:WorksAt", "src") == ["a", "a", "a"]
        assert column('{"type": "Event"}', "node:Event", "id") == [None]

    def test_ids(self) -> None:
        assert column('{"type": "Event", "data": {"id": "e1"}}', "node:Event", "id") == ["e1"]
        assert column('{"type": "Seat", "data": {"row": 7, "on": 1}}', "node:Seat", "id") == ['["1","7"]']
        said = r'{"type": "Seat", "data": {"id": "[\"1\",\"7\"]", "row": 7, "on": "1970-01-02"}}'
        assert column(said, "node:Seat", "id") == ['["1","7"]']

    @pytest.mark.parametrize("said", ["ada", "00042", "", "Ada "])
    def test_an_id_that_the_key_does_not_give(self, said: str) -> None:
        assert problem(f'{{"type": "Person", "data": {{"id": "{said}", "name": "Ada"}}}}')

    def test_what_is_required(self) -> None:
        assert "'name' has null" in problem('{"type": "Person"}')
        assert "'row' has null" in problem('{"type": "Seat", "data": {"row": null, "on": 1}}')
        assert "'title' has null" in problem('{"type": "Doc", "data": {"meaning": [1, 2]}}')

    def test_a_vector_that_is_computed_may_be_missing(self) -> None:
        assert column('{"type": "Doc", "data": {"title": "x"}}', "node:Doc", "meaning") == [None]


class TestValues:
    @pytest.mark.parametrize(
        ("text", "name", "value"),
        [
            ('"weight": 3', "weight", 3.0),
            ('"weight": -0.0', "weight", -0.0),
            ('"weight": 1.7976931348623157e308', "weight", 1.7976931348623157e308),
            ('"size": 3.4028235e38', "size", 3.4028235e38),
            ('"big": 18446744073709551615', "big", 2**64 - 1),
            ('"words": []', "words", []),
            ('"words": ["", "é"]', "words", ["", "é"]),
            ('"v": [1, 2.5]', "v", [1.0, 2.5]),
            ('"blob": "base64:AAEC"', "blob", b"\0\1\2"),
            ('"blob": "base64:"', "blob", b""),
            ('"what": null', "what", None),
        ],
    )
    def test_what_fits(self, text: str, name: str, value: Any) -> None:
        assert column(event(text), "node:Event", name) == [value]

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ('"weight": "1"', '"1" is not a number'),
            ('"weight": true', "true is not a number"),
            ('"weight": 1e309', "exceeds F64 range"),
            (f'"weight": 1{"0" * 400}', "exceeds F64 range"),
            (f'"weight": -1{"0" * 5000}', "not JSON: Exceeds the limit"),
            ('"size": 3.5e38', "3.5e+38 exceeds F32 range"),
            (f'"size": {int(F32_MAX) - 1}', "exceeds F32 range"),  # as a float it is F32_MAX, which is infinite
            ('"big": 1.0', "1.0 is not an integer"),
            ('"big": false', "false is not an integer"),
            ('"big": -1', "-1 exceeds U64 range"),
            (f'"big": 1{"0" * 100}', "exceeds U64 range"),
            ('"what": 1', "Event.what is String?: 1 does not fit"),
            ('"what": ["a"]', '["a"] does not fit'),
            ('"words": "a"', "needs an array"),
            ('"words": ["a", null]', "null does not fit"),
            ('"words": [1]', "1 does not fit"),
            ('"v": [1]', "needs 2 numbers, not 1"),
            ('"v": [1, 2, 3]', "needs 2 numbers, not 3"),
            ('"v": [1, "2"]', '"2" is not a number'),
            ('"v": [1, 1e39]', "exceeds F32 range"),
            ('"v": {}', "needs an array"),
            ('"blob": 5', "5 does not fit"),
            ('"blob": "base64:A"', "not valid base64"),
            ('"blob": "base64:A A="', "not valid base64"),
        ],
    )
    def test_what_does_not(self, text: str, reason: str) -> None:
        assert reason in problem(event(text))

    def test_a_long_value_is_not_repeated(self) -> None:
        assert len(problem(event(f'"weight": "{"x" * 100_000}"'))) < 200

    @pytest.mark.parametrize(
        ("text", "day"),
        [('"2024-02-29"', dt.date(2024, 2, 29)), ("0", dt.date(1970, 1, 1)), ("-719162", dt.date(1, 1, 1))],
    )
    def test_dates(self, text: str, day: dt.date) -> None:
        line = f'{{"edge": "WorksAt", "from": "a", "to": "b", "data": {{"since": {text}}}}}'
        assert column(line, "edge:WorksAt", "since") == [day]

    @pytest.mark.parametrize(
        "text", ['"2023-02-29"', '"2024-2-9"', "1.5", "true", "-719163", "99999999", '"2024-01-01T00:00"']
    )
    def test_no_dates(self, text: str) -> None:
        line = f'{{"edge": "WorksAt", "from": "a", "to": "b", "data": {{"since": {text}}}}}'
        assert "WorksAt.since is Date?" in problem(line)
