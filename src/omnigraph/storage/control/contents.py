"""The content of a control object, and the token that names it; what a store lists of an object."""

from __future__ import annotations

import datetime as dt

from omnigraph.records import dataclass


@dataclass(frozen=True, slots=True)
class Versioned:
    """An object's content and its token. Another content has another token."""

    content: bytes
    token: str


@dataclass(frozen=True, slots=True)
class Entry:
    """An object or a file as a store lists it: its key, its size, and when it was written by the store's clock."""

    key: str
    size: int
    modified: dt.datetime
