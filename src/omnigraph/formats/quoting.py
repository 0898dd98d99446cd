"""Where the records of CSV end, although values in quotes may hold line ends, and on which lines they begin.

Quotes count as Arrow's reader counts them: one at the start of a value opens it, two within it stand for one, and
one in the middle of a value is an ordinary letter. Where no such letter is, which is checked, every other quote
opens a value, and NumPy finds the ends; elsewhere a pattern goes through the text.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from omnigraph.formats.dialect import Dialect

Positions = npt.NDArray[np.int64]
Content = bytes | bytearray
"""Bytes of a file. Those that are cut at ends of records are changed in place, as copies are large."""
_NEWLINE: Final = ord("\n")
_RETURN: Final = ord("\r")
_SPARSE_BYTES: Final = 1 << 10
"""Quotes are searched one by one if there is no more than one in so many bytes."""
_COUNTED_BYTES: Final = 1 << 17
"""Line ends are counted in so many bytes at a time, which stay in the processor's caches."""


@dataclass(frozen=True, slots=True)
class QuotedRange:
    """What a range of a CSV file says about quotes, for the two ways in which it may begin: outside of a value in
    quotes, and inside of one.

    ``is_sure`` tells that every quote of it opens or closes a value, and ``first_end`` where in the file its first
    record ends.
    """

    is_odd: bool = False
    is_sure: tuple[bool, bool] = (True, True)
    first_end: tuple[int | None, int | None] = (None, None)

    def then(self, other: QuotedRange) -> QuotedRange:
        """This range and the one after it."""
        ways = (int(self.is_odd), int(not self.is_odd))
        sure = [mine and other.is_sure[way] for mine, way in zip(self.is_sure, ways, strict=True)]
        ends = [
            other.first_end[way] if mine is None else mine for mine, way in zip(self.first_end, ways, strict=True)
        ]
        return QuotedRange(self.is_odd != other.is_odd, (sure[0], sure[1]), (ends[0], ends[1]))


def scanned(text: bytes, low: int, high: int, start: int, dialect: Dialect) -> QuotedRange:
    """What the bytes from ``low`` to ``high`` say, of a text that is at ``start`` in its file.

    The bytes beside them tell whether quotes at their edges open or close a value.
    """
    quotes, opens, closes = _quotes(text, dialect)
    mine = slice(*np.searchsorted(quotes, (low, high)).tolist())
    quotes, opens, closes = quotes[mine], opens[mine], closes[mine]
    sure = [bool(opens[way::2].all() and closes[1 - way :: 2].all()) for way in (0, 1)]
    ends = [_first_end(text, low, high, quotes, way) for way in (0, 1)]
    first, second = (None if end is None else start + end for end in ends)
    return QuotedRange(len(quotes) % 2 == 1, (sure[0], sure[1]), (first, second))


def _first_end(text: bytes, low: int, high: int, quotes: Positions, way: int) -> int | None:
    """Where the first line ends that is outside of quotes."""
    if len(quotes) <= (high - low) // _SPARSE_BYTES:
        stretches = list(pairwise([low - 1, *quotes.tolist(), high]))
        found = (text.find(b"\n", after + 1, before) for after, before in stretches[way::2])
        return next((at + 1 for at in found if at >= 0), None)
    lines = np.flatnonzero(np.frombuffer(text, np.uint8)[low:high] == _NEWLINE) + low
    ends = lines[(np.searchsorted(quotes, lines) + way) % 2 == 0]
    return int(ends[0]) + 1 if len(ends) else None


def last_end(data: Content, dialect: Dialect) -> int:
    """Where the last whole record ends, of bytes that begin with a record; 0 if none ends there."""
    quotes = _sure_quotes(data, dialect)
    if quotes is None or (b"\n" not in data and b"\r" in data):
        return _last_match(data, dialect)
    at = data.rfind(b"\n")
    while at >= 0:
        count = int(np.searchsorted(quotes, at))
        if count % 2 == 0:
            return at + 1
        at = data.rfind(b"\n", 0, int(quotes[count - 1]))
    return 0


def _last_match(data: Content, dialect: Dialect) -> int:
    end = 0
    for match in _record(dialect).finditer(data):
        is_open = match["end"] == b"\r" and match.end() == len(data)  # a newline may follow
        if match["end"] and not is_open:
            end = match.end()
    return end


def is_open(record: Content, dialect: Dialect) -> bool:
    """Opens a quote of the last record of a file that nothing closes? A line end after it would be part of it."""
    found = _record(dialect).match(record + b"\n")
    return found is not None and not found["end"]


def record_ends(data: Content, dialect: Dialect) -> Positions:
    """Where each record ends, blank ones included. The last one may lack its line end."""
    quotes = _sure_quotes(data, dialect)
    if quotes is None or _has_lone_return(data):
        found = [match.end() for match in _record(dialect).finditer(data) if match.end() > match.start()]
        return np.array(found, np.int64)
    lines = np.flatnonzero(np.frombuffer(data, np.uint8) == _NEWLINE)
    ends = lines[np.searchsorted(quotes, lines) % 2 == 0] + 1
    if data and (not len(ends) or ends[-1] < len(data)):
        ends = np.append(ends, len(data))
    return np.asarray(ends, np.int64)


def record_lines(data: Content, dialect: Dialect, records: int) -> tuple[Positions, int]:
    """The lines, from 1, on which that many records begin that are not blank, and how many lines there are."""
    lines = _line_ends(data) + (len(data) > 0 and not data.endswith(b"\n"))
    if lines == records and not _has_lone_return(data):
        return np.arange(1, records + 1), lines
    ends = record_ends(data, dialect)
    if not len(ends):
        return ends, 0
    text, first = np.frombuffer(data, np.uint8), _first_lines(data, ends)
    starts = np.concatenate([[0], ends[:-1]])
    is_blank = (text[starts] == _NEWLINE) | (text[starts] == _RETURN)
    return first[:-1][~is_blank], int(first[-1]) - 1


def records_on(data: Content, dialect: Dialect, lines: Collection[int]) -> dict[int, bytes]:
    """The records that begin on some lines, from 1, without their line ends."""
    ends = record_ends(data, dialect)
    if not len(ends):
        return {}
    first = _first_lines(data, ends)[:-1]
    found = np.flatnonzero(np.isin(first, list(lines)))
    starts = np.concatenate([[0], ends[:-1]])
    return {int(first[at]): bytes(data[starts[at] : ends[at]].rstrip(b"\r\n")) for at in found}


def _first_lines(data: Content, ends: Positions) -> Positions:
    """The lines, from 1, on which records begin, and the one behind them."""
    text = np.frombuffer(data, np.uint8)
    newlines = np.searchsorted(np.flatnonzero(text == _NEWLINE), ends)
    taken = np.diff(newlines, prepend=0) + (text[ends - 1] != _NEWLINE)
    return np.concatenate([[1], 1 + np.cumsum(taken)])


def _line_ends(data: Content) -> int:
    text = np.frombuffer(data, np.uint8)
    starts = range(0, len(text), _COUNTED_BYTES)
    return sum(int(np.count_nonzero(text[at : at + _COUNTED_BYTES] == _NEWLINE)) for at in starts)


def _has_lone_return(data: Content) -> bool:
    """Does a carriage return end a line, or lie within a value?"""
    return b"\r" in data and data.count(b"\r") != data.count(b"\r\n")


def header_end(data: Content, dialect: Dialect) -> int:
    """Where the first record ends that is not blank; 0 if there is none."""
    for match in _record(dialect).finditer(data):
        if match.group().strip(b"\r\n"):
            return match.end()
    return 0


@cache
def _record(dialect: Dialect) -> re.Pattern[bytes]:
    """A record with its line end, exactly as Arrow's reader finds it."""
    quote, delimiter = (re.escape(letter.encode()) for letter in (dialect.quote, dialect.delimiter))
    quoted = rb"(?:%b(?:[^%b]++|%b%b)*+(?:%b|\Z))?+" % ((quote,) * 5)
    value = quoted + rb"[^%b\r\n]*+" % delimiter
    return re.compile(rb"%b(?:%b%b)*+(?P<end>\r\n|\n|\r|\Z)" % (value, delimiter, value))


def _sure_quotes(data: Content, dialect: Dialect) -> Positions | None:
    """Where quotes are, if each of them for sure opens or closes a value in turns."""
    quotes, opens, closes = _quotes(data, dialect)
    return quotes if opens[0::2].all() and closes[1::2].all() else None


def _quotes(data: Content, dialect: Dialect) -> tuple[Positions, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Where quotes are, and whether the bytes beside them allow them to open and to close a value."""
    quote = dialect.quote.encode()
    if quote not in data:
        nothing = np.zeros(0, np.bool_)
        return np.zeros(0, np.int64), nothing, nothing
    text = np.frombuffer(data, np.uint8)
    at = _found(data, quote)
    beside = np.zeros(256, np.bool_)
    beside[[_NEWLINE, _RETURN, quote[0], ord(dialect.delimiter)]] = True
    opens = beside[text[np.maximum(at - 1, 0)]] | (at == 0)
    closes = beside[text[np.minimum(at + 1, len(text) - 1)]] | (at == len(text) - 1)
    return at, opens, closes


def _found(data: Content, quote: bytes) -> Positions:
    """Where a byte is. The few of a text are searched one by one, which is faster than to look at every byte."""
    few: list[int] = []
    at, most = data.find(quote), len(data) // _SPARSE_BYTES
    while at >= 0 and len(few) < most:
        few.append(at)
        at = data.find(quote, at + 1)
    first = np.array(few, np.int64)
    if at < 0:
        return first
    return np.concatenate([first, np.flatnonzero(np.frombuffer(data, np.uint8)[at:] == quote[0]) + at])
