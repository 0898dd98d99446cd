"""Where large CSV files are cut: at ends of records, although values in quotes may hold line ends.

A look at the first quotes of each range nearly always tells where a record ends. Who reads the slices finds out
whether each ends with a record; if one does not, a pass over all quotes finds cuts that are certain. A file with a
quote in the middle of a value stays in one piece.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Mapping, Sequence
from typing import Final

from omnigraph.bulk.load.sources.files import SourceFile
from omnigraph.bulk.load.sources.opening import opened
from omnigraph.bulk.load.sources.slices import Slice, even_ranges, slice_size
from omnigraph.bulk.runner import Runner, TaskResult
from omnigraph.formats.quoting import QuotedRange, scanned
from omnigraph.settings import BulkSettings

_PORTION_BYTES: Final = 1 << 18
"""How much is scanned at a time: more would not stay in the processor's caches."""

_Range = tuple[SourceFile, int, int]


Cuts = Mapping[str, Sequence[int]]
"""Positions of files, by their names."""


def likely_cuts(runner: Runner, files: Sequence[SourceFile], settings: BulkSettings) -> Cuts:
    """Where CSV files that are larger than a slice are cut, by the beginnings of their ranges: most likely, but
    not for sure, at ends of records."""
    ranges = _ranges(runner, files, settings)
    beginnings = [(file, start, min(stop, start + _PORTION_BYTES)) for file, start, stop in ranges]
    return {name: _likely(found) for name, found in _scans(runner, beginnings).items()}


def certain_cuts(runner: Runner, files: Sequence[SourceFile], settings: BulkSettings) -> Cuts:
    """The ends of records at which CSV files that are larger than a slice are cut, by all of their quotes."""
    return {name: _cuts(found) for name, found in _scans(runner, _ranges(runner, files, settings)).items()}


def is_cut(part: Slice, cuts: Cuts) -> bool:
    """Ends a slice where its file was cut, and not with the file?"""
    return part.file.name in cuts and part.stop < part.file.size


def _ranges(runner: Runner, files: Sequence[SourceFile], settings: BulkSettings) -> list[_Range]:
    """The ranges of the files that are to be cut."""
    size = slice_size(files, runner.cores, settings)
    found: list[_Range] = []
    for file in files:
        ranges = even_ranges(file.size, size)
        if file.format.is_delimited and file.compression is None and len(ranges) > 1:
            found += [(file, start, stop) for start, stop in ranges]
    return found


def _scans(runner: Runner, ranges: Sequence[_Range]) -> dict[str, list[QuotedRange]]:
    """What ranges say about quotes, by the names of their files."""
    found: dict[str, list[QuotedRange]] = {}
    scans = runner.run("finding rows", _scan, ranges) if ranges else ()
    for (file, _, _), scan in zip(ranges, scans, strict=True):
        found.setdefault(file.name, []).append(scan)
    return found


def _scan(task: _Range) -> TaskResult[QuotedRange]:
    file, start, stop = task
    found = QuotedRange()
    with opened(file) as stream:
        for at in range(start, stop, _PORTION_BYTES):
            before, end = max(0, at - 1), min(at + _PORTION_BYTES, stop)
            stream.seek(before)
            text = stream.read(end + 1 - before)
            if not before and text.startswith(BOM_UTF8):
                text, before = text[len(BOM_UTF8) :], len(BOM_UTF8)
            low = max(0, at - before)
            high = max(low, min(end - before, len(text)))
            found = found.then(scanned(text, low, high, before, file.dialect))
    return TaskResult(found, bytes=stop - start)


def _cuts(ranges: Sequence[QuotedRange]) -> list[int]:
    """The first end of a record in each range but the first; none if a quote of any range is doubtful."""
    way, ends = 0, []
    for number, found in enumerate(ranges):
        if not found.is_sure[way]:
            return []
        end = found.first_end[way]
        if number and end is not None:
            ends.append(end)
        way ^= found.is_odd
    return ends


def _likely(beginnings: Sequence[QuotedRange]) -> list[int]:
    """The first end of a record in each range but the first, if its quotes fit only one way in which it may begin;
    none if the quotes of any range fit no way."""
    if not all(any(found.is_sure) for found in beginnings):
        return []
    ends = (found.first_end[not found.is_sure[0]] for found in beginnings[1:])
    return [end for end in ends if end is not None]
