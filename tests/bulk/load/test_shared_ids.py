"""Tasks of one process use one index of a table's ids, and none outlives them."""

from __future__ import annotations

import gc
import pickle
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pyarrow as pa

from omnigraph.bulk.load.checking import known
from omnigraph.bulk.load.checking.known import IdIndex, SharedIds


class Noted(SharedIds):
    """Notes which tables are indexed."""

    def __init__(self, load: Any = None) -> None:
        super().__init__(load)
        self.made: list[str] = []

    def _indexed(self, table_key: str) -> IdIndex:
        self.made.append(table_key)
        return known._indexed(pa.chunked_array([[f"{table_key}-{number}" for number in range(10)]]))


def test_threads_that_need_an_index_at_the_same_time_wait_for_one() -> None:
    shared, together = Noted(), Barrier(4)

    def use(table_key: str) -> IdIndex:
        together.wait()
        return shared.staged(table_key)

    with ThreadPoolExecutor(4) as pool:
        first, second, third, other = pool.map(use, ["node:A", "node:A", "node:A", "node:B"])
    assert first is second is third
    assert other is not first
    assert sorted(shared.made) == ["node:A", "node:B"]


def test_an_index_that_no_task_uses_takes_no_memory() -> None:
    shared = Noted()
    shared.staged("node:A")
    gc.collect()
    shared.staged("node:A")
    assert shared.made == ["node:A", "node:A"]


def test_a_task_that_is_sent_elsewhere_begins_without_indexes() -> None:
    shared = SharedIds("a load")  # type: ignore[arg-type]
    sent = pickle.loads(pickle.dumps(shared))
    assert (type(sent), sent.load) == (SharedIds, "a load")
