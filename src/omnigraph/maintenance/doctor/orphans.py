"""Files of tables that nothing refers to, as a cleanup that keeps the whole history would find them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from omnigraph.errors import OmniError
from omnigraph.maintenance.cleanup.garbage import Garbage
from omnigraph.maintenance.cleanup.run import unneeded
from omnigraph.maintenance.doctor.examination import Examination
from omnigraph.maintenance.doctor.report import Finding, Severity
from omnigraph.storage.address import Scheme

_REMEDY: Final = "run `omnigraph cleanup --older-than 36500d --confirm`, which keeps the history"
_NEVER_NEEDED: Final = "/_transactions/"
"""Versions hold their transactions themselves."""


def check_orphans(exam: Examination) -> Iterator[Finding]:
    """Count the files that no state of the history needs and no writer has staged just now.

    Where a state cannot be read, nothing is known about the files that it needs; other checks say so.
    """
    if exam.repository.address.scheme is Scheme.MEMORY:
        return
    try:
        for garbage in unneeded(exam.repository):
            yield from _of_table(garbage)
    except OmniError:
        return


def _of_table(garbage: Garbage) -> Iterator[Finding]:
    sizes = [entry.size for _, entry in garbage.files if _NEVER_NEEDED not in entry.key]
    if sizes:
        yield Finding(
            "orphaned_files",
            Severity.NOTE,
            f"{len(sizes)} files of {garbage.location} with {sum(sizes)} bytes belong to no state",
            _REMEDY,
            file=garbage.location,
            count=len(sizes),
        )
