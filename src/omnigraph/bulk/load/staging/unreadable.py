"""Records that cannot be read, counted by reason."""

from __future__ import annotations

from dataclasses import replace

from omnigraph.errors import ErrorGroup, RecordProblem
from omnigraph.formats.jsonl.blocks import Unreadable


def unreadable_group(source: str, bad: Unreadable) -> ErrorGroup:
    """One record that cannot be read, to be counted with others of the same reason: without the value that is
    wrong."""
    beginning, colon, _ = bad.reason.partition(": ")
    reason = f"{beginning}: …" if colon else beginning
    return ErrorGroup("unreadable", reason, 1, RecordProblem(source, bad.line, bad.column, bad.reason))


def later(group: ErrorGroup, lines: int) -> ErrorGroup:
    """A group of a slice that begins after some lines of its source."""
    first = group.first
    return (
        group
        if not isinstance(first, RecordProblem)
        else replace(group, first=replace(first, line=first.line + lines))
    )
