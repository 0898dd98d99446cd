"""The root of the tree of errors, and what an error says about the write it ended."""

from __future__ import annotations

from enum import StrEnum
from typing import Any


class Outcome(StrEnum):
    """What became of the write that an error ended."""

    NOTHING_WRITTEN = "nothing_written"
    WRITTEN = "written"
    UNKNOWN = "unknown"


class OmniError(Exception):
    """The root of everything OmniGraph raises on purpose.

    ``outcome`` says whether the write that failed is in the graph. For all errors but the few that say otherwise,
    and for reads, nothing was written.
    """

    outcome: Outcome = Outcome.NOTHING_WRITTEN

    def as_json(self) -> dict[str, Any]:
        """The error as a JSON object."""
        return {"error": str(self)}
