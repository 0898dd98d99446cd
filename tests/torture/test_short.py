"""Short torture runs; `make torture` has the long one."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from pathlib import Path

import pytest
from tests.stores import S3Server
from tests.torture.arenas import Arena, Bucket, Directory
from tests.torture.roles import PROFILES, Profile
from tests.torture.run import torture


@pytest.mark.long
def test_nothing_is_lost_or_halved_on_disk(tmp_path: Path) -> None:
    _run(Directory(tmp_path), tmp_path)


@pytest.mark.long
def test_nothing_is_lost_or_halved_in_a_bucket(s3_server: S3Server, tmp_path: Path) -> None:
    _run(Bucket(s3_server), tmp_path)


@pytest.mark.long
def test_nothing_is_lost_or_halved_while_the_graph_is_looked_after(tmp_path: Path) -> None:
    _run(Directory(tmp_path), tmp_path, replace(PROFILES["maintenance"], crew=("editor", "editor", "keeper")))


def _run(arena: Arena, folder: Path, profile: Profile = PROFILES["writers"]) -> None:
    logs = folder / "logs"
    logs.mkdir()
    seed = int(os.environ.get("OMNIGRAPH_TEST_SEED") or random.randrange(2**32))
    print(f"OMNIGRAPH_TEST_SEED={seed}")  # noqa: T201
    (contest,) = torture([arena], logs, seconds=8, seed=seed, profile=profile)
    print("\n".join(contest.lines()))  # noqa: T201
    assert contest.counts["complete checks"]
    assert contest.counts["snapshots"]
    assert contest.kills
    assert contest.model.counts["acknowledged mutation"] + contest.model.counts["acknowledged load"]
