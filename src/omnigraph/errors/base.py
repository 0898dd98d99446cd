"""The root of the tree of errors."""

from __future__ import annotations

from typing import Any


class OmniError(Exception):
    """The root of everything OmniGraph raises on purpose."""

    def as_json(self) -> dict[str, Any]:
        """The error as a JSON object."""
        return {"error": str(self)}
