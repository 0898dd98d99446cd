"""Fixtures that every test may use: places to keep a graph in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import stores
from tests.stores import S3Server, Store


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """An S3-compatible server, started once and only if a test asks for it."""
    with stores.s3_server() as server:
        yield server


@pytest.fixture
def local_store(tmp_path: Path) -> Store:
    """A place on this machine's disk."""
    return stores.local_store(tmp_path)


@pytest.fixture
def memory_store() -> Store:
    """A place in this process's memory."""
    return stores.memory_store()


@pytest.fixture
def s3_store(s3_server: S3Server) -> Store:
    """A place in a bucket."""
    return s3_server.store()


@pytest.fixture(params=["local", "memory", "s3"])
def store(request: pytest.FixtureRequest) -> Store:
    """A place of each kind in turn."""
    place: Store = request.getfixturevalue(f"{request.param}_store")
    return place


@pytest.fixture(params=["local", "s3"])
def shared_store(request: pytest.FixtureRequest) -> Store:
    """A place of each kind that other processes can reach."""
    place: Store = request.getfixturevalue(f"{request.param}_store")
    return place
