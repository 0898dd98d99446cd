"""The lexer both languages share: text in, tokens and comments out, in one pass."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final, NamedTuple

from omnigraph.lang.diagnostics import Diagnostics
from omnigraph.lang.source import MAX_NAME_CHARS, MAX_SOURCE_CHARS, MAX_STRING_CHARS, Span
from omnigraph.records import dataclass

IDENT: Final = "name"
TYPE_NAME: Final = "type name"
VARIABLE: Final = "variable"
STRING: Final = "string"
INTEGER: Final = "integer"
FLOAT: Final = "float"
INVALID: Final = "invalid"
END: Final = "end of file"


class Token(NamedTuple):
    """One token. ``kind`` is one of the names above, or the punctuation itself."""

    kind: str
    text: str
    start: int
    end: int

    @property
    def span(self) -> Span:
        return Span(self.start, self.end)


class Comment(NamedTuple):
    """A comment with its delimiters, as written."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Tokens:
    """A lexed text. ``tokens`` always ends in one END token."""

    tokens: list[Token]
    comments: list[Comment]


_PATTERN: Final = re.compile(
    r"""
      (?P<space>[ \t\r\n]+)
    | (?P<name>[a-z_][A-Za-z0-9_]*)
    | (?P<type>[A-Z][A-Za-z0-9_]*)
    | (?P<variable>\$[a-z_][A-Za-z0-9_]*)
    | (?P<float>[0-9]+\.[0-9]+)
    | (?P<integer>[0-9]+)
    | (?P<line_comment>//[^\n]*)
    | (?P<block_comment>/\*)
    | (?P<string>")
    | (?P<punctuation>->|\.\.|>=|<=|!=|[{}()\[\]:,.@?<>=+*/%|-])
    """,
    re.VERBOSE,
)
_STRING_PART: Final = re.compile(r'[^"\\]*')
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_NAMES: Final = frozenset({"name", "type", "variable"})
_ESCAPES: Final = {'"': '"', "\\": "\\", "n": "\n", "r": "\r", "t": "\t"}
_ESCAPED: Final = str.maketrans({value: f"\\{letter}" for letter, value in _ESCAPES.items()})


def lex(diagnostics: Diagnostics) -> Tokens:
    """Split the source into tokens, reporting what is not one and going on behind it."""
    source = diagnostics.source
    text = source.text
    tokens: list[Token] = []
    comments: list[Comment] = []
    if len(text) > MAX_SOURCE_CHARS:
        diagnostics.report(
            "P004",
            "parse error",
            f"the text has {len(text):,} characters; the limit is {MAX_SOURCE_CHARS:,}",
            Span(0, 0),
            "split it into several files, and pass large values as parameters",
        )
        return Tokens([Token(END, "", 0, 0)], [])
    if half := _SURROGATE.search(text):
        diagnostics.report(
            "P005",
            "parse error",
            f"U+{ord(half.group()):04X} is half a character, which UTF-8 cannot write",
            Span(half.start(), half.end()),
            "save the file as UTF-8",
        )
        return Tokens([Token(END, "", 0, 0)], [])
    match = _PATTERN.match
    at, length = 0, len(text)
    long_names = 0
    while at < length:
        found = match(text, at)
        if found is None:
            end = _stray(text, at, diagnostics)
            if text[at] != "#":
                tokens.append(Token(INVALID, text[at:end], at, end))
            at = end
            continue
        kind = found.lastgroup
        end = found.end()
        if kind == "space":
            pass
        elif end - at > MAX_NAME_CHARS and kind in _NAMES:
            long_names += 1
            if long_names == 1:
                _refuse_long_name(at, end, diagnostics)
            tokens.append(Token(INVALID, found.group(), at, end))
        elif kind == "punctuation":
            tokens.append(Token(found.group(), found.group(), at, end))
        elif kind == "name":
            tokens.append(Token(IDENT, found.group(), at, end))
        elif kind == "variable":
            tokens.append(Token(VARIABLE, found.group()[1:], at, end))
        elif kind == "type":
            tokens.append(Token(TYPE_NAME, found.group(), at, end))
        elif kind == "integer":
            tokens.append(Token(INTEGER, found.group(), at, end))
        elif kind == "float":
            tokens.append(Token(FLOAT, found.group(), at, end))
        elif kind == "line_comment":
            comments.append(Comment(found.group().rstrip("\r"), at, end))
        elif kind == "block_comment":
            close = text.find("*/", end)
            if close < 0:
                diagnostics.report(
                    "P002", "parse error", "this comment never ends", Span(at, end), "close it with `*/`"
                )
                break
            end = close + 2
            comments.append(Comment(text[at:end], at, end))
        else:
            end, value = _string(text, at, diagnostics)
            tokens.append(Token(STRING, value, at, end))
        at = end
    tokens.append(Token(END, "", length, length))
    return Tokens(tokens, comments)


def _refuse_long_name(start: int, end: int, diagnostics: Diagnostics) -> None:
    """Report the first name that is too long; the others are mostly the same one again."""
    diagnostics.report(
        "P004",
        "parse error",
        f"this name has {end - start:,} characters; the limit is {MAX_NAME_CHARS}",
        Span(start, end),
        "choose a shorter name",
    )


def _string(text: str, start: int, diagnostics: Diagnostics) -> tuple[int, str]:
    """Read one string literal: where it ends, and its value."""
    at = start + 1
    parts: list[str] = []
    while True:
        run = _STRING_PART.match(text, at)
        assert run is not None  # noqa: S101  the pattern matches the empty string
        parts.append(run.group())
        at = run.end()
        if at >= len(text):
            diagnostics.report(
                "P002", "parse error", "this string never ends", Span(start, start + 1), 'close it with `"`'
            )
            return at, ""
        if text[at] == '"':
            at += 1
            break
        escape = text[at + 1 : at + 2]
        if escape not in _ESCAPES or not escape:
            diagnostics.report(
                "P002",
                "parse error",
                f"unsupported escape sequence `\\{escape}`",
                Span(at, at + 2),
                r"strings know `\"`, `\\`, `\n`, `\r` and `\t`",
            )
        parts.append(_ESCAPES.get(escape, ""))
        at += 2
    value = "".join(parts)
    if len(value) > MAX_STRING_CHARS:
        diagnostics.report(
            "P004",
            "parse error",
            f"this string has {len(value):,} characters; the limit is {MAX_STRING_CHARS:,}",
            Span(start, start + 1),
            "pass long values as parameters or load them from a data file",
        )
    return at, value


def _stray(text: str, at: int, diagnostics: Diagnostics) -> int:
    """Report a character that begins no token; the offset to go on from."""
    character = text[at]
    message = f"unexpected character {character!r}"
    remedy = None
    if character == "#":
        remedy = "comments start with `//`"
        line_end = text.find("\n", at)
        diagnostics.report("P002", "parse error", message, Span(at, at + 1), remedy)
        return len(text) if line_end < 0 else line_end
    if character == "'":
        remedy = 'strings are written in double quotes: `"text"`'
        close = text.find("'", at + 1, at + 200)
        diagnostics.report("P002", "parse error", message, Span(at, at + 1), remedy)
        return close + 1 if close > 0 and "\n" not in text[at:close] else at + 1
    if character == "$":
        remedy = "a variable is `$` and a name that starts with a lower-case letter, such as `$person`"
    elif character == "&":
        remedy = "conditions are joined by `and`, or by standing side by side"
    elif character == "!":
        remedy = "a condition is turned round by `not`, and values that differ are written `!=`"
    end = at + 1
    diagnostics.report("P002", "parse error", message, Span(at, end), remedy)
    return end


def spell_string(value: str) -> str:
    """A string literal with this value."""
    return f'"{value.translate(_ESCAPED)}"'


def spell_float(value: float) -> str:
    """A float literal with this value; the languages have no exponents."""
    digits = format(Decimal(repr(value)), "f")
    return digits if "." in digits else digits + ".0"
