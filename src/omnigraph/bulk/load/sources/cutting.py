"""Where large CSV files are cut: at ends of records, which a quick pass over the quotes of each range finds.

A cut is made only where it is certain. A file with a quote in the middle of a value stays in one piece.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Mapping, Sequence
from typing import Final

from omnigraph.bulk.load.sources.files import SourceFile
from omnigraph.bulk.load.sources.opening import opened
from omnigraph.bulk.load.sources.slices import even_ranges, slice_size
from omnigraph.bulk.runner import Runner, TaskResult
from omnigraph.formats.quoting import QuotedRange, scanned
from omnigraph.settings import BulkSettings

_PORTION_BYTES: Final = 1 << 18
"""How much is scanned at a time: more would not stay in the processor's caches."""

_Range = tuple[SourceFile, int, int]


def cut_files(runner: Runner, files: Sequence[SourceFile], settings: BulkSettings) -> Mapping[str, Sequence[int]]:
    """The ends of records at which the CSV files are cut that are larger than a slice, by their names."""
    size = slice_size(files, runner.cores, settings)
    tasks: list[_Range] = []
    for file in files:
        ranges = even_ranges(file.size, size)
        if file.format.is_delimited and file.compression is None and len(ranges) > 1:
            tasks += [(file, start, stop) for start, stop in ranges]
    if not tasks:
        return {}
    found: dict[str, list[QuotedRange]] = {}
    for (file, _, _), scan in zip(tasks, runner.run("finding rows", _scan, tasks), strict=True):
        found.setdefault(file.name, []).append(scan)
    return {name: _cuts(ranges) for name, ranges in found.items()}


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
