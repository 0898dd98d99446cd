"""The content of a control object, and the token that names it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Versioned:
    """An object's content and its token. Another content has another token."""

    content: bytes
    token: str
