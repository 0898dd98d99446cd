"""The alphabet of both languages: what is a token, what is a comment, and what is neither."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.lang.diagnostics import Diagnostics
from omnigraph.lang.source import MAX_SOURCE_CHARS, MAX_STRING_CHARS, Source
from omnigraph.lang.tokens import (
    END,
    FLOAT,
    IDENT,
    INTEGER,
    INVALID,
    STRING,
    TYPE_NAME,
    VARIABLE,
    Token,
    Tokens,
    lex,
)


def lexed(text: str) -> tuple[Tokens, Diagnostics]:
    diagnostics = Diagnostics(Source(text))
    return lex(diagnostics), diagnostics


def tokens(text: str) -> list[tuple[str, str]]:
    """Kind and text of the tokens of a text that has no mistakes, without the end."""
    found, diagnostics = lexed(text)
    assert diagnostics.listed == []
    return [(token.kind, token.text) for token in found.tokens[:-1]]


def mistakes(text: str) -> list[tuple[str, int, str]]:
    """Code, column and remedy of each mistake."""
    _, diagnostics = lexed(text)
    return [(d.code, d.column, d.help or "") for d in diagnostics.listed]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name", [(IDENT, "name")]),
        ("_private9 camelCase", [(IDENT, "_private9"), (IDENT, "camelCase")]),
        ("Person P_9", [(TYPE_NAME, "Person"), (TYPE_NAME, "P_9")]),
        ("$p $_", [(VARIABLE, "p"), (VARIABLE, "_")]),
        ("0 42 007", [(INTEGER, "0"), (INTEGER, "42"), (INTEGER, "007")]),
        ("4.50", [(FLOAT, "4.50")]),
        ('"text"', [(STRING, "text")]),
        ("nodefoo", [(IDENT, "nodefoo")]),
        ("- 5", [("-", "-"), (INTEGER, "5")]),
        ("1..2", [(INTEGER, "1"), ("..", ".."), (INTEGER, "2")]),
        ("1.5..2.5", [(FLOAT, "1.5"), ("..", ".."), (FLOAT, "2.5")]),
        ("a.b", [(IDENT, "a"), (".", "."), (IDENT, "b")]),
        ("A->B", [(TYPE_NAME, "A"), ("->", "->"), (TYPE_NAME, "B")]),
        (">= <= != < > =", [(p, p) for p in (">=", "<=", "!=", "<", ">", "=")]),
        ("{}()[]:,.@?", [(p, p) for p in "{}()[]:,.@?"]),
    ],
)
def test_each_kind_of_token(text: str, expected: list[tuple[str, str]]) -> None:
    assert tokens(text) == expected


def test_a_text_ends_in_one_end_token() -> None:
    assert lexed("")[0].tokens == [Token(END, "", 0, 0)]
    assert lexed("a ")[0].tokens[-1] == Token(END, "", 2, 2)


def test_tokens_know_where_they_stand() -> None:
    assert [tuple(t.span) for t in lexed('ab "c\\n" 1')[0].tokens] == [(0, 2), (3, 8), (9, 10), (10, 10)]


def test_space_tab_and_both_line_ends_separate_and_mean_nothing() -> None:
    assert tokens("a \t\r\n b") == tokens("a\nb") == [(IDENT, "a"), (IDENT, "b")]


@pytest.mark.parametrize("space", ["\u00a0", "\u2028", "\f", "\v"])
def test_other_blanks_are_not_whitespace(space: str) -> None:
    assert mistakes(f"a{space}b") == [("P002", 2, "")]


def test_a_byte_order_mark_is_skipped_at_the_beginning_only() -> None:
    assert tokens("\ufeffnode A") == [(IDENT, "node"), (TYPE_NAME, "A")]
    assert mistakes("\ufeffnode ;") == mistakes("node ;") == [("P002", 6, "")]
    assert mistakes("node \ufeff") == [("P002", 6, "")]


class TestComments:
    def test_both_kinds_are_kept_beside_the_tokens(self) -> None:
        found, _ = lexed("a // to the end\nb /* with * and\nlines */ c")
        assert [token.text for token in found.tokens] == ["a", "b", "c", ""]
        assert [c.text for c in found.comments] == ["// to the end", "/* with * and\nlines */"]

    def test_a_carriage_return_is_not_part_of_a_comment(self) -> None:
        assert lexed("// x\r\na")[0].comments[0].text == "// x"

    def test_block_comments_do_not_nest(self) -> None:
        assert tokens("/* /* */ a") == [(IDENT, "a")]

    def test_the_shortest_comment_needs_both_of_its_stars(self) -> None:
        assert tokens("/**/a") == [(IDENT, "a")]
        assert mistakes("/*/") == [("P002", 1, "close it with `*/`")]

    def test_comment_marks_inside_a_string_are_text(self) -> None:
        assert tokens('"http://x /* y */"') == [(STRING, "http://x /* y */")]


class TestStrings:
    def test_five_escapes(self) -> None:
        assert tokens(r'"\" \\ \n \r \t"') == [(STRING, '" \\ \n \r \t')]

    def test_a_string_may_span_lines(self) -> None:
        assert tokens('"one\ntwo"') == [(STRING, "one\ntwo")]

    @pytest.mark.parametrize("escape", ["a", "0", "u", "'", "/", "é"])
    def test_any_other_escape_is_refused_and_the_string_goes_on(self, escape: str) -> None:
        found, diagnostics = lexed(f'"x\\{escape}y" z')
        [problem] = diagnostics.listed
        assert problem.message == f"unsupported escape sequence `\\{escape}`"
        assert [token.kind for token in found.tokens] == [STRING, IDENT, END]

    @pytest.mark.parametrize("text", ['"', '"abc', '"abc\n'])
    def test_an_open_string_is_reported_where_it_begins(self, text: str) -> None:
        assert mistakes(text) == [("P002", 1, 'close it with `"`')]

    def test_a_backslash_at_the_very_end(self) -> None:
        assert [(code, column) for code, column, _ in mistakes('"a\\')] == [("P002", 1), ("P002", 3)]


class TestStrayCharacters:
    @pytest.mark.parametrize(
        ("text", "remedy"),
        [
            ("# note", "comments start with `//`"),
            ("'text'", "double quotes"),
            ("$Person", "lower-case letter"),
            ("a & b", "joined by `and`"),
            ("größe", ""),
        ],
    )
    def test_the_remedy_names_what_was_probably_meant(self, text: str, remedy: str) -> None:
        code, _, said = mistakes(text)[0]
        assert code == "P002"
        assert remedy in said

    def test_a_hash_comment_hides_the_rest_of_its_line_only(self) -> None:
        found, diagnostics = lexed("a # b c\nd")
        assert len(diagnostics.listed) == 1
        assert [token.text for token in found.tokens] == ["a", "d", ""]

    def test_what_is_no_token_is_kept_as_one_so_that_parsers_do_not_stumble_over_the_gap(self) -> None:
        found, diagnostics = lexed("a 'b c' d ; e")
        assert len(diagnostics.listed) == 2
        assert [token.kind for token in found.tokens] == [IDENT, INVALID, IDENT, INVALID, IDENT, END]
        assert [token.text for token in found.tokens] == ["a", "'b c'", "d", ";", "e", ""]

    def test_all_of_them_are_reported(self) -> None:
        assert [column for _, column, _ in mistakes("a ^ b ; c ~")] == [3, 7, 11]


class TestLimits:
    def test_a_text_too_large_is_not_read(self) -> None:
        found, diagnostics = lexed(" " * (MAX_SOURCE_CHARS + 1))
        assert [d.code for d in diagnostics.listed] == ["P004"]
        assert found.tokens == [Token(END, "", 0, 0)]

    def test_a_text_of_the_largest_size_is(self) -> None:
        assert tokens(" " * (MAX_SOURCE_CHARS - 1) + "a") == [(IDENT, "a")]

    def test_a_string_too_long_is_refused(self) -> None:
        assert mistakes('"' + "x" * MAX_STRING_CHARS + '"') == []
        assert mistakes('"' + "x" * (MAX_STRING_CHARS + 1) + '"')[0][0] == "P004"


@given(st.text(alphabet=st.sampled_from("ab AZ09$\"\\/*#\n.-<>{}é'@")))
def test_any_text_is_read_to_its_end_in_order(text: str) -> None:
    found, _ = lexed(text)
    edges = [edge for token in found.tokens for edge in token.span]
    assert edges == sorted(edges)
    assert edges[-1] == len(text)
