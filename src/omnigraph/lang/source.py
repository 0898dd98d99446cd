"""Source texts: where things stand in them, and how big they may be."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import field
from functools import cached_property
from typing import Final, NamedTuple

from omnigraph.errors import Diagnostic, LanguageError
from omnigraph.records import dataclass

MAX_SOURCE_CHARS: Final = 4 << 20
"""A schema or query file larger than this is refused before it is read."""

MAX_STRING_CHARS: Final = 64 << 10
"""A string literal longer than this is refused: such values belong in parameters or data files."""

MAX_NAME_CHARS: Final = 255
"""A name longer than this is refused: names become columns, tables and parts of messages."""

MAX_DEPTH: Final = 48
"""How deep blocks, lists and calls may nest."""

_CONTEXT: Final = 60
_BYTE_ORDER_MARK: Final = "\ufeff"


class Span(NamedTuple):
    """A stretch of a source text, as character offsets ``[start, end)``."""

    start: int
    end: int

    def to(self, other: Span) -> Span:
        """The stretch from the start of this one to the end of the other."""
        return Span(self.start, other.end)


NOWHERE: Final = Span(0, 0)
"""The span of syntax that was made by a program and never stood in a text."""


@dataclass(frozen=True, slots=True)
class Name:
    """A name and where it stands."""

    text: str
    span: Span = field(default=NOWHERE, compare=False)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Source:
    """A named text in one of the two languages, without the byte-order mark that it may begin with."""

    text: str
    name: str = "<text>"

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", self.text.removeprefix(_BYTE_ORDER_MARK))

    @cached_property
    def line_starts(self) -> list[int]:
        """The offset at which each line begins."""
        starts = [0]
        at = self.text.find("\n")
        while at >= 0:
            starts.append(at + 1)
            at = self.text.find("\n", at + 1)
        return starts

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset, both counted from 1."""
        line = bisect_right(self.line_starts, offset)
        return line, offset - self.line_starts[line - 1] + 1

    def diagnostic(self, code: str, stage: str, message: str, span: Span, remedy: str | None) -> Diagnostic:
        """A problem at a span of this text, with as much of its line as is worth showing."""
        line, column = self.position(span.start)
        line_start = self.line_starts[line - 1]
        line_end = self.line_starts[line] - 1 if line < len(self.line_starts) else len(self.text)
        left = max(line_start, span.start - _CONTEXT)
        right = min(line_end, span.start + 2 * _CONTEXT)
        excerpt = ("…" if left > line_start else "") + self.text[left:right].rstrip("\r")
        start = span.start - left + (left > line_start)
        end = start + max(1, min(span.end, right) - span.start)
        if right < line_end:
            excerpt += "…"
        shown = "".join(c if c == "\t" or c.isprintable() else "\ufffd" for c in excerpt)
        return Diagnostic(code, stage, message, self.name, line, column, shown, (start, end), remedy)


def decode(data: bytes, name: str) -> Source:
    """The text of a file, or an error that names the first byte that is not UTF-8."""
    try:
        return Source(data.decode("utf-8"), name)
    except UnicodeDecodeError as error:
        readable = Source(data[: error.start].decode("utf-8") + "\ufffd", name)
        at = Span(len(readable.text) - 1, len(readable.text))
        message = f"{name} is not UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}"
        problem = readable.diagnostic("P005", "parse error", message, at, "save the file as UTF-8")
        raise LanguageError([problem]) from None
