"""Results for people: aligned text for terminals, HTML for notebooks."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from typing import Any, Final

ELLIPSIS: Final = "…"
_NAMED_CONTROLS: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_CONTROLS: Final = {
    code: _NAMED_CONTROLS.get(chr(code), f"\\x{code:02x}") for code in (*range(0x20), *range(0x7F, 0xA0))
}
_WIDE: Final = ("W", "F")

to_compact_json: Final[Callable[[Any], str]] = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), allow_nan=False
).encode
"""A JSON value on one line, without spaces."""


def cell_text(value: Any) -> str:
    """A JSON value as the text of a cell: strings as they are, everything else as JSON writes it."""
    return value if isinstance(value, str) else to_compact_json(value)


def on_one_line(text: str) -> str:
    """Text in which line breaks and other control characters are spelled out, so that none reaches a terminal."""
    return text if text.isprintable() else text.translate(_CONTROLS)


def aligned(columns: Sequence[str], cells: Sequence[Sequence[Any]], max_width: int) -> Iterator[str]:
    """The lines of a table: the names, a rule, and one line per row. ``cells`` are JSON values by column."""
    shown = [
        [_cut(on_one_line(cell_text(value)), max_width) for value in (name, *values)]
        for name, values in zip(columns, cells, strict=True)
    ]
    widths = [max(map(_width, texts)) for texts in shown]
    lines = (_line(texts, widths) for texts in zip(*shown, strict=True))
    yield next(lines, "")
    yield "-+-".join("-" * width for width in widths)
    yield from lines


def wrapped(columns: Sequence[str], cells: Sequence[Sequence[Any]], max_width: int) -> Iterator[str]:
    """The lines of a table as `aligned` makes it, but a text that is too wide goes on in the next line."""
    shown = [
        [_pieces(on_one_line(cell_text(value)), max_width) for value in (name, *values)]
        for name, values in zip(columns, cells, strict=True)
    ]
    widths = [max(_width(piece) for pieces in texts for piece in pieces) for texts in shown]
    header, *rows = zip(*shown, strict=True)
    for number, row in enumerate((header, *rows)):
        if number == 1:
            yield "-+-".join("-" * width for width in widths)
        yield from (_line(pieces, widths) for pieces in zip_longest(*row, fillvalue=""))
    if not rows:
        yield "-+-".join("-" * width for width in widths)


def html_table(columns: Sequence[str], cells: Sequence[Sequence[Any]], max_width: int, caption: str) -> str:
    """An HTML table with a line below it. ``cells`` are JSON values by column."""
    head = _html_row("th", columns, max_width)
    body = "".join(_html_row("td", row, max_width) for row in zip(*cells, strict=True))
    table = f"<table><thead>{head}</thead><tbody>{body}</tbody></table>"
    import html

    return f"<div>{table}<p>{html.escape(caption)}</p></div>"


def _html_row(tag: str, values: Sequence[Any], max_width: int) -> str:
    import html

    texts = (html.escape(_cut(on_one_line(cell_text(value)), max_width)) for value in values)
    return f"<tr>{''.join(f'<{tag}>{text}</{tag}>' for text in texts)}</tr>"


def _line(texts: Sequence[str], widths: Sequence[int]) -> str:
    padded = (text + " " * (width - _width(text)) for text, width in zip(texts, widths, strict=True))
    return " | ".join(padded).rstrip()


def _width(text: str) -> int:
    """How many columns of a terminal the text takes."""
    return len(text) if text.isascii() else sum(map(_character_width, text))


def _character_width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in _WIDE else 1


def _pieces(text: str, max_width: int) -> list[str]:
    """The text in pieces that fit; an empty text is one of them."""
    found, start, taken = [], 0, 0
    for index, character in enumerate(text):
        width = _character_width(character)
        if taken + width > max_width:
            found.append(text[start:index])
            start, taken = index, 0
        taken += width
    return [*found, text[start:]]


def _cut(text: str, max_width: int) -> str:
    """The text, or as much of its beginning as fits with an ellipsis."""
    if len(text) * 2 <= max_width or _width(text) <= max_width:
        return text
    taken = 0
    for index, character in enumerate(text):
        taken += _character_width(character)
        if taken > max_width - 1:
            return text[:index] + ELLIPSIS
    return text
