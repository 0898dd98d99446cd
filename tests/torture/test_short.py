"""A short torture run; `make torture` has the long one."""

from __future__ import annotations

import os
import random
from pathlib import Path

from tests.stores import Store
from tests.torture.run import torture


def test_nothing_is_lost_or_halved(local_store: Store, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    seed = int(os.environ.get("OMNIGRAPH_TEST_SEED") or random.randrange(2**32))
    print(f"OMNIGRAPH_TEST_SEED={seed}")  # noqa: T201
    report = torture(local_store, logs, seconds=12, seed=seed, writers=3)
    print("\n".join(report.lines()))  # noqa: T201
    assert report.checks
    assert report.snapshots
    assert sum(report.kills.values())
    assert report.model.counts["mutation"] + report.model.counts["load"]
