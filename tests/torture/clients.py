"""How the processes of a torture run reach a store: with leases that end soon, and with less patience."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import partial
from typing import Final
from unittest.mock import patch

from tests.faults.store import IMPATIENT
from tests.stores import Store

from omnigraph.manifest import repository
from omnigraph.storage.locks import Locks

LEASE: Final = 1.0
"""How long a dead holder's lease lasts, in seconds. Writers are stopped for longer than that."""


def short_leases() -> AbstractContextManager[object]:
    """Let graphs that are opened in a block take such leases."""
    return patch.object(repository, "Locks", partial(Locks, time_to_live=LEASE))


def impatient(store: Store) -> Store:
    """The same store for clients that report the first failure instead of trying again."""
    return Store(store.uri, {**store.options, **IMPATIENT})
