"""Conditional and partial requests, as HTTP has them: entity tags, and ranges of bytes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from omnigraph.errors import RangeUnsatisfiable

_TAG: Final = re.compile(r'(W/)?"([^"]*)"')
_RANGE: Final = re.compile(r"bytes=[ \t]*([0-9]*)-([0-9]*)[ \t]*", re.IGNORECASE)
_ANY: Final = "*"
_LONGEST_NUMBER: Final = 18
_LARGEST: Final = 10**_LONGEST_NUMBER


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes from ``start`` up to ``end``, which is not among them, of ``size`` bytes in all."""

    start: int
    end: int
    size: int

    @property
    def length(self) -> int:
        return self.end - self.start

    @property
    def header(self) -> str:
        """The `Content-Range` of an answer with these bytes."""
        return f"bytes {self.start}-{self.end - 1}/{self.size}"


def quoted(etag: str) -> str:
    """An entity tag as headers have it."""
    return f'"{etag}"'


def matches(header: str, etag: str | None) -> bool:
    """Does a condition `If-Match` hold? ``etag`` is None if there are no bytes. Weak tags match nothing."""
    if header.strip() == _ANY:
        return etag is not None
    return etag is not None and any(not weak and tag == etag for weak, tag in _TAG.findall(header))


def is_known(header: str, etag: str) -> bool:
    """Does the caller have these bytes, by its `If-None-Match`? Weak tags count."""
    return header.strip() == _ANY or any(tag == etag for _, tag in _TAG.findall(header))


def single_tag(header: str) -> str | None:
    """The tag of a condition that names one; None if it names any other number of them, or a weak one."""
    found = _TAG.findall(header)
    return found[0][1] if len(found) == 1 and not found[0][0] else None


def _number(digits: str) -> int | None:
    """A number as a header has it; None if it is left out. No blob has as many bytes as the largest says."""
    digits, given = digits.lstrip("0"), bool(digits)
    if len(digits) > _LONGEST_NUMBER:
        return _LARGEST
    return int(digits or "0") if given else None


def wanted_span(header: str | None, if_range: str | None, etag: str, size: int) -> Span | None:
    """The one range that a caller asks for; None for all bytes.

    Several ranges, and what is no range at all, stand for all bytes; RangeUnsatisfiable if there are none in it.
    """
    if header is None or (if_range is not None and not matches(if_range, etag)):
        return None
    found = _RANGE.fullmatch(header.strip())
    if found is None or not any(found.groups()):
        return None
    first, last = (_number(digits) for digits in found.groups())
    if first is not None:
        start, end = first, size if last is None else last + 1
        if last is not None and last < start:
            return None
    else:
        start, end = max(0, size - (last or 0)), size
    if start >= size or start >= end:
        raise RangeUnsatisfiable(header.strip(), size, start, end)
    return Span(start, min(end, size), size)
