"""The root of the tree of errors, and what became of the write that an error ended."""

from __future__ import annotations

from enum import StrEnum
from typing import Any


class Outcome(StrEnum):
    """What became of the write that an error ended."""

    NOTHING_WRITTEN = "nothing_written"
    WRITTEN = "written"
    UNKNOWN = "unknown"


class OmniError(Exception):
    """The root of all errors that OmniGraph raises.

    ``outcome`` says whether the write that failed is in the graph. Nothing was written unless a subclass says
    otherwise.
    """

    outcome: Outcome = Outcome.NOTHING_WRITTEN

    def as_json(self) -> dict[str, Any]:
        """The error as a JSON object."""
        return {"error": str(self)}
