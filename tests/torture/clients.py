"""How the processes of a torture run reach a store: with leases that end soon, and with less patience."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Final
from unittest.mock import patch

from obstore.store import S3Store
from tests.faults.store import IMPATIENT
from tests.stores import Store

from omnigraph.manifest import repository
from omnigraph.storage import remoteobjects
from omnigraph.storage.locks import Locks

if TYPE_CHECKING:
    from obstore.store import RetryConfig

LEASE: Final = 1.0
"""How long a dead holder's lease lasts, in seconds. Writers are stopped for longer than that."""


def short_leases() -> AbstractContextManager[object]:
    """Let graphs that are opened in a block take such leases."""
    return patch.object(repository, "Locks", partial(Locks, time_to_live=LEASE))


@contextmanager
def impatient(store: Store) -> Iterator[Store]:
    """The same store for clients that report the first failure instead of trying again."""
    once: RetryConfig = {"max_retries": 0, "retry_timeout": timedelta(seconds=1)}
    with patch.object(remoteobjects, "S3Store", partial(S3Store, retry_config=once)):
        yield Store(store.uri, {**store.options, **IMPATIENT})
