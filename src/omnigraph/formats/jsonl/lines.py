"""Bytes into lines, and lines into groups of one type, told apart by how they name it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.formats.jsonl.parse import Named, Text
from omnigraph.formats.jsonl.records import MOST_STRUCTURE
from omnigraph.lang.schema.catalog import Catalog, EntityType

_NEWLINE: Final = 10
_RETURN: Final = 13
_WINDOW: Final = 1 << 16
_MOST_GROUPS: Final = 64
_BEGINNING: Final = re.compile(rb'\{[ \t]*"(type|edge)"[ \t]*:[ \t]*"([^"\\]*)"[ \t]*,')
_INSIDE: Final = re.compile(rb'"(type|edge)"[ \t]*:[ \t]*"([^"\\]*)"')

Lines = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Piece:
    """Whole lines of a block. ``before`` is the number of lines in front of it; ``stops`` are the line ends."""

    content: npt.NDArray[np.uint8]
    before: int
    offsets: npt.NDArray[np.int64]
    stops: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.stops)

    def line(self, index: int) -> bytes:
        """One line, without its end."""
        return self.content[self.offsets[index] : self.stops[index]].tobytes().removesuffix(b"\r")


@dataclass(frozen=True, slots=True)
class Group:
    """The lines of a piece that name one type in the same way.

    The text is without that name if lines begin with it; if not, ``named`` is the member and what it has to say.
    """

    entity: EntityType
    lines: Lines
    text: Text
    named: Named | None = None


def pieces(content: npt.NDArray[np.uint8], size: int) -> Iterator[Piece]:
    """A block in pieces of about that many bytes, cut at line ends."""
    start = before = 0
    while start < len(content):
        stop = _line_end(content, start + size)
        part = content[start:stop]
        stops = np.flatnonzero(part == _NEWLINE)
        offsets = np.empty(len(stops) + 1, np.int64)
        offsets[0] = 0
        np.add(stops, 1, out=offsets[1:])
        if offsets[-1] < len(part):
            offsets = np.append(offsets, len(part))
            stops = np.append(stops, len(part))
        yield Piece(part, before, offsets, stops)
        before += len(stops)
        start = stop


def _line_end(content: npt.NDArray[np.uint8], at: int) -> int:
    """Where the line that has the byte before ``at`` is over."""
    at -= 1
    while at < len(content):
        window = content[at : at + _WINDOW] == _NEWLINE
        if window.any():
            return at + int(window.argmax()) + 1
        at += _WINDOW
    return len(content)


def groups(piece: Piece, catalog: Catalog) -> Iterator[Group]:
    """Those lines of a piece that look like records of known types; the others are for the strict reader."""
    lines = Text(piece.content, piece.offsets).lines()
    left = _regular(piece)
    found = 0
    while found < _MOST_GROUPS and left.any():
        first = int(left.argmax())
        beginning, inside = _name(piece.line(first), catalog)
        if beginning is not None:
            same = pc.starts_with(lines, beginning.group()).to_numpy(zero_copy_only=False) & left
        elif inside is not None:
            same = _having(lines, left, inside.group())
        else:
            left[first] = False
            continue
        found += 1
        left &= ~same
        entity = _entity(beginning or inside, catalog)
        if entity is None:
            continue
        text = _chosen(piece, lines, same)
        if beginning is not None:
            _blank(text, len(beginning.group()))
            yield Group(entity, np.flatnonzero(same), text)
        elif inside is not None:
            yield Group(entity, np.flatnonzero(same), text, (inside.group(1).decode(), inside.group(2).decode()))


def _name(line: bytes, catalog: Catalog) -> tuple[re.Match[bytes] | None, re.Match[bytes] | None]:
    """Where a line seems to name its type: at the beginning, or else in the last place that names a known type."""
    beginning = _BEGINNING.match(line)
    if beginning is not None:
        return beginning, None
    known = [match for match in _INSIDE.finditer(line) if _entity(match, catalog) is not None]
    return None, known[-1] if known else None


def _having(lines: pa.Array, left: npt.NDArray[np.bool_], part: bytes) -> npt.NDArray[np.bool_]:
    """Which of the lines that are left have a part."""
    at = np.flatnonzero(left)
    found = pc.match_substring(lines.take(pa.array(at)), part).to_numpy(zero_copy_only=False)
    same = np.zeros(len(left), np.bool_)
    same[at[found]] = True
    return same


def _regular(piece: Piece) -> npt.NDArray[np.bool_]:
    """Which lines begin and end as records do, are not too long, and are UTF-8 for sure."""
    ends = piece.content[piece.stops - 1]
    returns = ends == _RETURN
    if returns.any():
        ends = np.where(returns, piece.content[piece.stops - 2], ends)
    regular: npt.NDArray[np.bool_] = (ends == ord("}")) & (np.diff(piece.offsets) <= MOST_STRUCTURE)
    regular &= piece.content[piece.offsets[:-1]] == ord("{")
    whole = Text(piece.content, np.array([0, len(piece.content)])).lines()
    try:
        whole.cast(pa.large_string())
    except pa.ArrowInvalid:
        odd = np.flatnonzero(piece.content > 127)
        regular[np.searchsorted(piece.offsets, odd, side="right") - 1] = False
    return regular


def _entity(name: re.Match[bytes] | None, catalog: Catalog) -> EntityType | None:
    if name is None:
        return None
    text = name.group(2).decode()
    return catalog.nodes.get(text) if name.group(1) == b"type" else catalog.edge(text)


def _chosen(piece: Piece, lines: pa.Array, same: npt.NDArray[np.bool_]) -> Text:
    """A copy of some lines."""
    if same.all():
        return Text(piece.content.copy(), piece.offsets)
    chosen = lines.filter(pa.array(same))
    offsets = np.frombuffer(chosen.buffers()[1], np.int64, len(chosen) + 1)
    return Text(np.frombuffer(chosen.buffers()[2], np.uint8, offsets[-1]).copy(), offsets)


def _blank(text: Text, length: int) -> None:
    """Put `{` and blanks in place of how the lines begin."""
    starts = text.offsets[:-1]
    text.content[starts] = ord("{")
    for position in range(1, length):
        text.content[starts + position] = ord(" ")
