"""The fragments of open versions, described once for all who look at them: a write does so several times."""

from __future__ import annotations

import threading
from typing import Final
from weakref import WeakKeyDictionary

from lance import LanceDataset
from lance.fragment import FragmentMetadata

MOST: Final = 256
MOST_ROWS: Final = 1 << 20
"""A version that has more fragments, or more rows, whose ids may be listed, is described anew each time."""

_known: WeakKeyDictionary[LanceDataset, tuple[int, tuple[FragmentMetadata, ...]]] = WeakKeyDictionary()
_describing = threading.Lock()
"""Threads that open a version at the same time wait for the first of them to describe it."""


def fragments_of(handle: LanceDataset) -> tuple[FragmentMetadata, ...]:
    """The fragments of a version, in order. They are shared: a caller that changes one makes a copy first."""
    version, found = _known.get(handle, (0, ()))
    if version == handle.version:
        return found
    with _describing:
        version, found = _known.get(handle, (0, ()))
        if version != handle.version:
            found = tuple(fragment.metadata for fragment in handle.get_fragments())
            if len(found) <= MOST and sum(each.physical_rows for each in found) <= MOST_ROWS:
                _known[handle] = (handle.version, found)
    return found
