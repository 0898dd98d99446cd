"""Where things stand in a text, how bytes become one, and how a problem is shown in it."""

from __future__ import annotations

import pytest

from omnigraph.errors import LanguageError
from omnigraph.lang.source import Source, Span, decode


def rendered(text: str, start: int, end: int, remedy: str | None = None) -> list[str]:
    """The shown problem below its headline and place."""
    problem = Source(text, "s.pg").diagnostic("S999", "parse error", "wrong", Span(start, end), remedy)
    return problem.render().split("\n")[3:]


def test_lines_and_columns_count_from_one() -> None:
    source = Source("ab\n\ncd")
    assert [source.position(at) for at in range(7)] == [(1, 1), (1, 2), (1, 3), (2, 1), (3, 1), (3, 2), (3, 3)]


def test_spans_join() -> None:
    assert Span(1, 3).to(Span(7, 9)) == Span(1, 9)


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    source = Source("\ufeffab\ncd")
    assert source.text == "ab\ncd"
    assert source.position(1) == (1, 2)
    assert Source("a\ufeff").text == "a\ufeff"


class TestRendering:
    def test_headline_place_line_underline_and_remedy(self) -> None:
        source = Source("node A {\n  x: Strin\n}\n", "city.pg")
        problem = source.diagnostic(
            "P001", "parse error", "unknown type `Strin`", Span(14, 19), "did you mean `String`?"
        )
        assert problem.render() == (
            "parse error: P001: unknown type `Strin`\n"
            " --> city.pg:2:6\n"
            "  |\n"
            "2 |   x: Strin\n"
            "  |      ^^^^^\n"
            "  = help: did you mean `String`?"
        )

    def test_the_gutter_grows_with_the_line_number(self) -> None:
        problem = Source("\n" * 99 + "x").diagnostic("P001", "parse error", "wrong", Span(99, 100), None)
        assert problem.render().split("\n")[1:] == ["   --> <text>:100:1", "    |", "100 | x", "    | ^"]

    def test_tabs_before_the_mark_stay_tabs_so_that_the_underline_stays_below(self) -> None:
        assert rendered("\ta\tbad", 3, 6) == ["1 | \ta\tbad", "  | \t \t^^^"]

    def test_wide_characters_take_two_cells(self) -> None:
        assert rendered("日本 bad", 3, 6) == ["1 | 日本 bad", "  |      ^^^"]
        assert rendered("日本", 0, 2) == ["1 | 日本", "  | ^^^^"]

    def test_combining_marks_take_no_cell(self) -> None:
        assert rendered("e\u0301 bad", 3, 6) == ["1 | e\u0301 bad", "  |   ^^^"]

    def test_the_end_of_the_file_has_a_mark_behind_the_last_character(self) -> None:
        assert rendered("node", 4, 4) == ["1 | node", "  |     ^"]
        assert rendered("node\n", 5, 5) == ["2 |", "  | ^"]

    def test_a_span_over_several_lines_is_marked_on_its_first(self) -> None:
        assert rendered("ab cd\nef", 3, 8) == ["1 | ab cd", "  |    ^^"]

    def test_windows_line_ends_do_not_show(self) -> None:
        assert rendered("ab\r\ncd\r\n", 4, 6) == ["2 | cd", "  | ^^"]

    def test_control_characters_are_shown_as_replacement_characters(self) -> None:
        assert rendered("a\x1b[31mb", 0, 1)[0] == "1 | a\ufffd[31mb"

    def test_a_very_long_line_is_cut_around_the_mark(self) -> None:
        line, underline = rendered("a" * 5000 + "BAD" + "z" * 5000, 5000, 5003)
        assert line == "1 | …" + "a" * 60 + "BAD" + "z" * 117 + "…"
        assert underline == "  | " + " " * 61 + "^^^"

    def test_a_very_long_span_is_marked_as_far_as_it_is_shown(self) -> None:
        line, underline = rendered("x" * 9999, 0, 9999)
        assert len(line) == len(underline) + 1 == 4 + 120 + 1


class TestDecoding:
    def test_utf8_with_and_without_a_mark(self) -> None:
        assert decode("größe".encode(), "s.pg") == Source("größe", "s.pg")
        assert decode(b"\xef\xbb\xbfnode", "s.pg") == Source("node", "s.pg")

    @pytest.mark.parametrize(
        ("data", "byte", "offset", "place"),
        [
            (b"\xff", "0xff", 0, (1, 1)),
            (b"node A {}\n// gr\xf6\xdfe", "0xf6", 15, (2, 6)),
            ("é日".encode() + b"\x80", "0x80", 5, (1, 3)),
            (b"\xef\xbb\xbfab\xc3", "0xc3", 5, (1, 3)),
        ],
    )
    def test_the_first_byte_that_is_not_utf8_is_named(
        self, data: bytes, byte: str, offset: int, place: tuple[int, int]
    ) -> None:
        with pytest.raises(LanguageError) as raised:
            decode(data, "old.pg")
        [problem] = raised.value.diagnostics
        assert problem.code == "P005"
        assert problem.message == f"old.pg is not UTF-8: byte {byte} at offset {offset}"
        assert (problem.line, problem.column) == place
        assert problem.help == "save the file as UTF-8"
