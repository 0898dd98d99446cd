"""The Lance session of one graph: the memory in which Lance keeps what it has read about tables and indexes.

Lance keeps the decoded manifest of every version it has opened or committed, and each of them lists all fragments
of its table. By default it may hold a gigabyte of those and six of index pages; here both have a smaller bound.
"""

from __future__ import annotations

import os
from typing import Final

import lance

from omnigraph.errors import RequestError

METADATA_SETTING: Final = "OMNIGRAPH_METADATA_CACHE_BYTES"
INDEX_SETTING: Final = "OMNIGRAPH_INDEX_CACHE_BYTES"

_METADATA: Final = 64 << 20
_INDEXES: Final = 512 << 20


def bounded_session() -> lance.Session:  # type: ignore[name-defined]
    """A session of its own whose caches hold as much as the settings say."""
    return lance.Session(  # type: ignore[attr-defined]
        index_cache_size_bytes=_limit(INDEX_SETTING, _INDEXES),
        metadata_cache_size_bytes=_limit(METADATA_SETTING, _METADATA),
    )


def _limit(setting: str, default: int) -> int:
    wanted = os.environ.get(setting, "").strip()
    if not wanted:
        return default
    if not wanted.isascii() or not wanted.isdecimal():
        raise RequestError(f"{setting}={wanted} is not a number of bytes; give one, such as {default}, or none")
    return int(wanted)
