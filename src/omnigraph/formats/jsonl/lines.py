"""Bytes into lines, and lines into groups that name the same type in the same way."""

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
from omnigraph.formats.jsonl.records import MAX_STRUCTURE
from omnigraph.lang.schema.catalog import Catalog, EntityType

_WORD: Final = 8
_OPENING: Final = int.from_bytes(b"{       ", "little")
_BLANKS: Final = int.from_bytes(b"        ", "little")
_NEWLINE: Final = 10
_RETURN: Final = 13
_WINDOW: Final = 1 << 16
_MAX_GROUPS: Final = 64
_BEGINNING: Final = re.compile(rb'\{[ \t]*"(type|edge)"[ \t]*:[ \t]*"([^"\\]*)"[ \t]*,')
_INSIDE: Final = re.compile(rb'"(type|edge)"[ \t]*:[ \t]*"([^"\\]*)"')

Lines = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Whole lines of a block. ``before`` is the number of lines before them; ``stops`` are the line ends."""

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
    """The lines of a chunk that name one type in the same way.

    If lines begin with the name, the text has blanks in its place; if not, ``named`` is the member with the name.
    """

    entity: EntityType
    lines: Lines
    text: Text
    named: Named | None = None


def chunks(content: npt.NDArray[np.uint8], size: int) -> Iterator[Chunk]:
    """A block in chunks of about that many bytes, cut at line ends."""
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
        yield Chunk(part, before, offsets, stops)
        before += len(stops)
        start = stop


def _line_end(content: npt.NDArray[np.uint8], at: int) -> int:
    """The end of the line that has the byte before ``at``."""
    at -= 1
    while at < len(content):
        window = content[at : at + _WINDOW] == _NEWLINE
        if window.any():
            return at + int(window.argmax()) + 1
        at += _WINDOW
    return len(content)


def groups(chunk: Chunk, catalog: Catalog) -> Iterator[Group]:
    """The lines of a chunk that look like records of known types; all others are for the strict reader."""
    lines = Text(chunk.content, chunk.offsets).lines()
    left = regular(chunk)
    found = 0
    while found < _MAX_GROUPS and left.any():
        first = int(left.argmax())
        beginning, inside = _name(chunk.line(first), catalog)
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
        text = chosen(chunk, lines, same)
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
    """Which of the lines that are left contain a text."""
    at = np.flatnonzero(left)
    found = pc.match_substring(lines.take(pa.array(at)), part).to_numpy(zero_copy_only=False)
    same = np.zeros(len(left), np.bool_)
    same[at[found]] = True
    return same


def regular(chunk: Chunk) -> npt.NDArray[np.bool_]:
    """Which lines begin and end as records do, are not too long, and are UTF-8 for sure."""
    ends = chunk.content[chunk.stops - 1]
    returns = ends == _RETURN
    if returns.any():
        ends = np.where(returns, chunk.content[chunk.stops - 2], ends)
    found: npt.NDArray[np.bool_] = (ends == ord("}")) & (np.diff(chunk.offsets) <= MAX_STRUCTURE)
    found &= chunk.content[chunk.offsets[:-1]] == ord("{")
    whole = Text(chunk.content, np.array([0, len(chunk.content)])).lines()
    try:
        whole.cast(pa.large_string())
    except pa.ArrowInvalid:
        odd = np.flatnonzero(chunk.content > 127)
        found[np.searchsorted(chunk.offsets, odd, side="right") - 1] = False
    return found


def _entity(name: re.Match[bytes] | None, catalog: Catalog) -> EntityType | None:
    if name is None:
        return None
    text = name.group(2).decode()
    return catalog.nodes.get(text) if name.group(1) == b"type" else catalog.edge(text)


def chosen(chunk: Chunk, lines: pa.Array, same: npt.NDArray[np.bool_]) -> Text:
    """A copy of some lines."""
    if same.all():
        return Text(chunk.content.copy(), chunk.offsets)
    kept = lines.filter(pa.array(same))
    offsets = np.frombuffer(kept.buffers()[1], np.int64, len(kept) + 1)
    return Text(np.frombuffer(kept.buffers()[2], np.uint8, offsets[-1]), offsets)


def _blank(text: Text, length: int) -> None:
    """Put `{` and blanks in place of how the lines begin, in words of eight bytes, of which the last overlap."""
    starts, content = text.offsets[:-1], text.content
    words = np.ndarray((len(content) - _WORD + 1,), dtype="<u8", buffer=content, strides=(1,))
    words[starts] = _OPENING
    for position in (*range(_WORD, length - _WORD, _WORD), length - _WORD):
        words[starts + position] = _BLANKS
