"""What Arrow takes and the strict reader does not, or takes otherwise: blocks follow the strict reader."""

from __future__ import annotations

import sys

import pytest
from tests.formats.jsonl.blockchecks import GOOD, check, edge, thing

from omnigraph.formats.jsonl.records import LONGEST_LINE, MAX_STRUCTURE
from omnigraph.lang.values import F32_MAX


class TestDoubts:
    @pytest.mark.parametrize(
        "line",
        [
            *['{"type": "Thing", "data": {}} {"data": {}}', '{"edge": "Plain", "from": "a", "to": "b"}{}'],
            *[f"{GOOD} {GOOD}", f"{GOOD}{GOOD}", f"{GOOD},", f"{GOOD} ", f" {GOOD}", f"\ufeff{GOOD}"],
            *['{"type": "Thing",}', '{"type": "Thing", }', '{"type": "Thing"}', '{"type": "Thing", "data": {},}'],
            *['{"type": "Thing",, "data": {}}', '{"type": "Thing", "data": {}}}', '{"type": "Thing", "data": {}'],
            *['{"type": "Thing", "data": null}', r'{"type": "Thing", "d\u0061ta": null}'],
            *[
                '{"edge": "Plain", "from": "a", "to": "b", "data": null}',
                '{"edge": "Plain", "from": "a", "to": null}',
            ],
            *[
                '{"edge": "Plain", "from": "data", "to": "b"}',
                r'{"edge": "Plain", "from": "a", "to": "b", "d\u0061ta": null}',
            ],
            *[
                '{"edge": "Plain", "from": "a"}',
                '{"edge": "Plain", "from": null, "to": "a"}',
                '{"edge": "Plain",}',
            ],
            *['{"edge": "Plain", "data": {"from": "a", "to": "b"}}', '{"type": "Person", "data": {"name": null}}'],
            *[
                thing('"id": null'),
                thing('"id": ""'),
                thing(r'"\u0069d": null'),
                thing(r'"i\u0064": null, "s": "x"'),
            ],
            *[thing(r'"s": "\u0069"'), thing(r'"s": "\"id\""'), thing('"id": "a", "id": "a"')],
            *['{"type": "Person", "data": {"name": "Ada", "id": null}}', '{"type": "Seat", "data": {"row": 1}}'],
            *[
                '{"type": "Person", "data": {"name": "Ada", "id": "ada"}}',
                '{"type": "Doc", "data": {"meaning": [1, 2]}}',
            ],
            *['{"type": "Thing", "type": "Thing", "data": {}}', '{"type": "Thing", "data": {}, "data": {}}'],
            *['{"type": "Thing", "edge": "Plain", "data": {}}', '{"type": "Thing", "data": {}, "from": "a"}'],
            *[thing('"s": "a", "s": "a"'), thing('"s": null, "s": "a"'), thing('"zip": null'), thing('"s": "a",')],
            *[thing('"words": ["a", null]'), thing('"nums": [null]'), thing('"v": [1, null]'), thing('"v": null')],
            *[thing('"v": [1]'), thing('"v": []'), thing('"v": [1, 2, 3]'), thing('"v": [[1, 2]]')],
            *[
                thing('"g": NaN'),
                thing('"g": -Infinity'),
                thing('"g": Inf'),
                thing('"weights": [NaN]'),
                thing('"i": NaN'),
            ],
            *[thing('"g": -0'), thing('"g": -0 , "s": ""'), thing('"v": [-0, 1]'), thing('"weights": [1, -0\t]')],
            *[thing('"g": -0.0, "i": -0'), thing('"u": -0'), thing('"h": -0'), thing('"v": [1e39, 1]')],
            *[
                thing(f'"g": {int(sys.float_info.max) + 1}'),
                thing(f'"g": {sys.float_info.max!r}'),
                thing('"g": 1e400'),
            ],
            *[thing(f'"f": {F32_MAX!r}'), thing(f'"f": {int(F32_MAX) - 1}'), thing(f'"sizes": [1, {F32_MAX!r}]')],
            *[
                thing(f'"g": {"9" * 309}'),
                thing(f'"g": {"9" * 5000}'),
                thing(f'"g": 0.{"0" * 5000}1'),
                thing('"f": 1e39'),
            ],
            *[
                thing('"day": "2023-02-29"'),
                thing('"day": "0000-01-01"'),
                thing('"day": 7'),
                thing('"days": ["x"]'),
            ],
            *[thing('"at": "0000-01-01T00:00:00Z"'), thing('"at": "2024-01-01T05Z"'), thing('"at": 7')],
            *[thing('"at": "0001-01-01T00:00:00+01:00"'), thing('"times": ["2024-01-01", "x"]')],
            *[thing('"blob": "base64:A"'), thing('"blob": "s3://x"'), thing('"blob": 5'), thing('"b": 1')],
            *[thing(r'"s": "\ud83d"'), thing(r'"s": "\ude00"'), thing('"s": "a\tb"'), thing('"s": "a\x00b"')],
            *[thing(r'"words": ["\ude00\ud83d"]'), thing('"i": 1.0'), thing('"i": 01'), thing('"kind": "blue"')],
            *[
                '{"type": "Nobody", "data": {}}',
                '{"edge": "Nothing", "from": "a"}',
                r'{"type": "Th\u0069ng", "data": {}}',
            ],
            *[
                '{"data": {}, "type": "Thing"}',
                '{"data": {}, "type": "Thing", "type": "Thing"}',
                '{"data": null, "type": "Thing"}',
            ],
            *[
                '{"data": {"type": "Thing"}, "type": "Label"}',
                '{"data": {"type": "Thing"}}',
                '{"data": {"edge": "Plain"}, "type": "Thing"}',
            ],
            *['{"data": {}, "type": "Thing"} {"data": {}, "type": "Thing"}', '{"to": "b", "edge": "Plain"}'],
            *['{"data": {"type": "Label"}, "typ\\u0065": "Label"}', '{"x": "\\"type": "Thing"", "type": "Thing"}'],
            *["// comment", "", "\t", "{}", "[]", '{"type": 7, "data": {}}'],
        ],
    )
    def test_are_the_strict_readers(self, line: str) -> None:
        flat = "\n".join([GOOD, line, edge('"weight": 1, "id": "k"'), line, thing('"id": "x"')])
        check(flat)
        check(line)

    @pytest.mark.parametrize("wrong", [b"\xff", b"\xed\xa0\x80", b"\xc3", b"\xf5\x80\x80\x80", b"\xc0\x80"])
    def test_bytes_that_are_no_text(self, wrong: bytes) -> None:
        lines = [GOOD.encode(), thing('"s": "x"').encode().replace(b"x", wrong), thing('"s": "é"').encode()]
        block = check(b"\n".join(lines))
        assert [bad.line for bad in block.unreadable] == [2]
        check(b"\n".join([GOOD.encode(), wrong]))

    def test_records_over_two_lines_do_not_make_up_for_two_on_one(self) -> None:
        whole = '{"type": "Thing", "data": {"words": []}}'
        for cut in range(1, len(whole)):
            check("\n".join([whole[:cut], whole[cut:], f"{whole} {whole}", whole]))
        halves = [
            '{"type": "Thing", "data":',
            '{"type": "Thing", "s": "x"}}',
            '{"type": "Thing", "data": {}} {"data": {}}',
        ]
        assert len(check("\n".join(halves)).unreadable) == 3
        nested = ['{"type": "Thing", "data": {}', '{"type": "Thing", "data": {}}}', f"{GOOD}{GOOD}"]
        assert len(check("\n".join(nested)).unreadable) == 3

    def test_a_line_without_members_after_its_type(self) -> None:
        block = check('{"type": "Thing",}\n{"type": "Thing",  }\n')
        assert [bad.reason[:8] for bad in block.unreadable] == ["not JSON"] * 2

    def test_names_of_types_in_other_places(self) -> None:
        lines = [
            '{"data": {}, "type": "Label"}',
            '{"data": {"type": "Label"}, "type": "Tag"}',
            '{"data": {"type": "Label"}}',
            '{"data": {"type": "Label"}, "type": null}',
            '{"data": {"type": "Tag"}, "type": "Label"}',
        ]
        block = check("\n".join(lines))
        assert [typed.lines.tolist() for typed in block.records.values()] == [[1, 5], [2]]

    def test_wide_lines(self) -> None:
        brackets = thing(f'"nums": [{"1," * MAX_STRUCTURE}1]')
        wide = thing(f'"s": "{"x" * MAX_STRUCTURE}"')
        fitting = thing(f'"s": "{"x" * (MAX_STRUCTURE - 100)}"')
        block = check("\n".join([GOOD, brackets, wide, GOOD, fitting]))
        assert [bad.line for bad in block.unreadable] == [2]
        assert block.records["node:Thing"].lines.tolist() == [1, 3, 4, 5]

    def test_a_line_that_is_too_long(self) -> None:
        long = thing(f'"s": "{"x" * LONGEST_LINE}"')
        assert [bad.line for bad in check("\n".join([GOOD, long, GOOD])).unreadable] == [2]
