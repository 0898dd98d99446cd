"""Printing with comments: a tree becomes lines and blocks, and the comments of its text are put back among them.

A comment stays at the end of the line it stood at, if that line ended an item, or else goes in front of the
item it preceded; one inside an item goes in front of that item. Single blank lines between items stay.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from omnigraph.lang.source import NOWHERE, Source, Span
from omnigraph.lang.tokens import Comment, Tokens

WIDTH: Final = 100
"""What is written on one line if it fits is written on several if the line would be longer than this."""

_INDENT: Final = "  "
_BLANK_LINE: Final = re.compile(r"\n[ \t\r]*\n")


@dataclass(frozen=True, slots=True)
class Line:
    """An item on a line of its own. ``wrapped`` is how it is written where it does not fit."""

    text: str
    span: Span = NOWHERE
    wrapped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Block:
    """Items between a first and a last line, all on one line if ``inline`` allows it and they fit."""

    head: Line
    items: tuple[Item, ...]
    tail: Line
    separator: str = ""
    inline: bool = False


Item = Line | Block


class Original:
    """The text a tree was read from: its comments, and the places the tree does not remember."""

    def __init__(self, source: Source, tokens: Tokens) -> None:
        self.text = source.text
        self.comments = tokens.comments
        self._tokens = tokens.tokens
        self._token_starts = [token.start for token in tokens.tokens]
        self._comment_starts = [comment.start for comment in tokens.comments]

    def before(self, place: Span, count: int = 1) -> Span:
        """The token so many tokens in front of a place."""
        return self._at(bisect_left(self._token_starts, place.start) - count)

    def behind(self, place: Span, count: int = 1) -> Span:
        """The token so many tokens behind a place."""
        return self._at(bisect_left(self._token_starts, place.end) + count - 1)

    def closing(self, last: Span) -> Span:
        """The brace behind the last item of a block, which a comma may follow."""
        index = bisect_left(self._token_starts, last.end)
        if index < len(self._tokens) and self._tokens[index].kind == ",":
            index += 1
        return self._at(index)

    def _at(self, index: int) -> Span:
        return self._tokens[index].span if 0 <= index < len(self._tokens) else NOWHERE

    def has_comment(self, start: int, end: int) -> bool:
        """Does a comment begin in this stretch?"""
        index = bisect_left(self._comment_starts, start)
        return index < len(self._comment_starts) and self._comment_starts[index] < end

    def has_blank_line(self, start: int, end: int) -> bool:
        """Is a line of this stretch empty?"""
        return _BLANK_LINE.search(self.text, start, end) is not None

    def on_one_line(self, start: int, end: int) -> bool:
        """Does this stretch lie within one line?"""
        return self.text.find("\n", start, end) < 0


def no_original() -> Original:
    """What there is to know about a tree that was never text."""
    return Original(Source(""), Tokens([], []))


def render(items: Iterable[Item], original: Original) -> str:
    """The items as text, with one blank line between those of the outermost level and all comments in place."""
    rows: list[_Row] = []
    for item in items:
        _add_rows(rows, item, 0, "", original)
    end = len(original.text)
    rows.append(_Row((), Span(end, end), 0, closes=True))
    writer = _Writer(original)
    for row, following in zip(rows, [*rows[1:], rows[-1]], strict=True):
        writer.write(row, following)
    return "\n".join([*writer.lines, ""]) if writer.lines else ""


@dataclass(frozen=True, slots=True)
class _Row:
    """An item, or the first or last line of a block, in the layout it will have."""

    lines: tuple[str, ...]
    span: Span
    depth: int
    opens: bool = False
    closes: bool = False


def _add_rows(rows: list[_Row], item: Item, depth: int, separator: str, original: Original) -> None:
    if isinstance(item, Line):
        rows.append(_Row(_layout(item, depth, separator), item.span, depth))
        return
    body = item.head.span.end, item.tail.span.start
    text = None if original.has_comment(*body) else _on_one_line(item)
    whole = item.head.span.to(item.tail.span)
    if text is not None and _fits(text + separator, depth):
        rows.append(_Row((text + separator,), whole, depth))
        return
    if text is not None and not item.items:
        *above, last = _layout(item.head, depth, "")
        rows.append(_Row((*above, last + item.tail.text + separator), whole, depth))
        return
    rows.append(_Row(_layout(item.head, depth, ""), item.head.span, depth, opens=True))
    for index, inner in enumerate(item.items):
        follows = item.separator if index < len(item.items) - 1 else ""
        _add_rows(rows, inner, depth + 1, follows, original)
    rows.append(_Row(_layout(item.tail, depth, separator), item.tail.span, depth, closes=True))


def _layout(line: Line, depth: int, separator: str) -> tuple[str, ...]:
    if not line.wrapped or _fits(line.text + separator, depth):
        return (line.text + separator,)
    return (*line.wrapped[:-1], line.wrapped[-1] + separator)


def _on_one_line(item: Item) -> str | None:
    """An item without line breaks, or None if it may not be written so."""
    if isinstance(item, Line):
        return item.text
    if not item.items:
        return item.head.text + item.tail.text
    if not item.inline:
        return None
    inner: list[str] = []
    for one in item.items:
        text = _on_one_line(one)
        if text is None:
            return None
        inner.append(text)
    return f"{item.head.text} {f'{item.separator} '.join(inner)} {item.tail.text}"


def _fits(text: str, depth: int) -> bool:
    return depth * len(_INDENT) + len(text) <= WIDTH and "\n" not in text


@dataclass(slots=True)
class _Writer:
    """The lines written so far, and how far into the original they reach."""

    original: Original
    lines: list[str] = field(default_factory=list)
    comment: int = 0
    reached: int = 0
    opened: bool = True

    def write(self, row: _Row, following: _Row) -> None:
        """Write a row, behind the comments that belong in front of it and with those behind it on its line."""
        first = row.depth == 0 and not (row.closes and row.lines)
        comments = self.original.comments
        before = row.span.end if row.lines else len(self.original.text)
        while self.comment < len(comments) and comments[self.comment].start < before:
            comment = comments[self.comment]
            self._separate(first, min(comment.start, row.span.start))
            self._put(_comment_text(comment), row.depth + (row.closes and bool(row.lines)))
            self.comment += 1
            self.reached = comment.end
            first = False
        if not row.lines:
            return
        if not row.closes:
            self._separate(first, row.span.start)
        for line in row.lines:
            self._put(line, row.depth)
        self.reached = max(self.reached, row.span.end)
        self.opened = row.opens
        self._write_behind(row, following)

    def _write_behind(self, row: _Row, following: _Row) -> None:
        """Write the comments that stand on the same line; in front of another item they belong to that one."""
        comments, original = self.original.comments, self.original
        index, at = self.comment, row.span.end
        while (
            index < len(comments)
            and comments[index].start < following.span.start
            and original.on_one_line(at, comments[index].start)
        ):
            at = comments[index].end
            index += 1
        if index == self.comment or (not following.closes and original.on_one_line(at, following.span.start)):
            return
        behind = [_comment_text(comment) for comment in comments[self.comment : index]]
        self.lines[-1] = " ".join([self.lines[-1], *behind])
        self.comment, self.reached = index, at

    def _separate(self, first: bool, place: int) -> None:
        """Leave a line empty: always between declarations, elsewhere where the author did."""
        if first:
            if self.lines:
                self.lines.append("")
        elif not self.opened and self.original.has_blank_line(self.reached, place):
            self.lines.append("")

    def _put(self, line: str, depth: int) -> None:
        self.lines.append(_INDENT * depth + line)
        self.opened = False


def _comment_text(comment: Comment) -> str:
    return comment.text.rstrip(" \t\r") if comment.text.startswith("//") else comment.text
