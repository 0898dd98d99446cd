"""Places for graphs in tests: a directory, a memory store, and a bucket on a real S3-compatible server."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph.storage.address import Address, parse_address
from omnigraph.storage.control.contents import Versioned
from omnigraph.storage.locking.leases import TIME_TO_LIVE
from omnigraph.storage.locks import DEFAULT_WAIT, Locks
from omnigraph.storage.objects import ObjectStore, open_objects

if TYPE_CHECKING:
    from omnigraph.storage.tables import Tables

BUCKET = "bucket"
VARIABLES = {
    "AWS_ACCESS_KEY_ID": "aws_access_key_id",
    "AWS_SECRET_ACCESS_KEY": "aws_secret_access_key",
    "AWS_REGION": "aws_region",
    "AWS_ENDPOINT_URL": "aws_endpoint",
    "AWS_ALLOW_HTTP": "allow_http",
}


@dataclass(frozen=True)
class Store:
    """A place of its own for one graph. It is plain data, so that another process can open the same place."""

    uri: str
    options: dict[str, str] = field(default_factory=dict)

    @property
    def address(self) -> Address:
        return parse_address(self.uri, self.options)

    def environment(self) -> dict[str, str]:
        """The options of a bucket as the variables that say the same."""
        return {name: self.options[option] for name, option in VARIABLES.items()}

    def objects(self) -> ObjectStore:
        """A new client for control objects."""
        return open_objects(self.address)

    def tables(self, **limits: int) -> Tables:
        """A new client for tables, with empty caches and perhaps other limits for open handles."""
        from omnigraph.storage.handles import HandleLimits  # children that need no tables start faster without
        from omnigraph.storage.tables import Tables

        return Tables(self.address, self.objects(), HandleLimits(**limits))

    def locks(self, wait: float = DEFAULT_WAIT, time_to_live: float = TIME_TO_LIVE) -> Locks:
        """The locks as a new process would see them."""
        return Locks(self.address, self.objects(), wait, time_to_live)


def present(objects: ObjectStore, key: str) -> Versioned:
    """An object that must be there."""
    found = objects.get(key)
    assert found is not None, f"there is no {key}"
    return found


def local_store(folder: Path) -> Store:
    """A graph's place on this machine's disk."""
    return Store(str(folder / "g"))


def memory_store() -> Store:
    """A graph's place in this process's memory."""
    return Store(f"memory://{uuid.uuid4().hex}/g")


@dataclass(frozen=True)
class S3Server:
    """A running server and its ports: one that works, and four that do not always do as they should."""

    port: int
    careless_port: int
    refusing_port: int
    moody_port: int
    faulty_port: int

    def store(self) -> Store:
        """A graph's place in the bucket."""
        return self._store(self.port)

    def careless_store(self) -> Store:
        """A place where two writers can both win."""
        return self._store(self.careless_port)

    def refusing_store(self) -> Store:
        """A place where nobody is let in."""
        return self._store(self.refusing_port)

    def moody_store(self) -> Store:
        """A place that works until `lose_patience` says how many more requests it will answer."""
        return self._store(self.moody_port)

    def faulty_store(self) -> Store:
        """A place that works but for what the rules of `tests.faults.store` say."""
        return self._store(self.faulty_port)

    def lose_patience(self, after: float) -> None:
        """Make the moody store refuse everything after some more requests, or never, after infinitely many."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.moody_port}/patience/{after}", timeout=60):
            pass

    def _store(self, port: int) -> Store:
        return Store(f"s3://{BUCKET}/{uuid.uuid4().hex}/g", self.options(port))

    def options(self, port: int | None = None) -> dict[str, str]:
        """The `storage_options` that reach this server."""
        return {
            "aws_access_key_id": "test",
            "aws_secret_access_key": "test",
            "aws_region": "us-east-1",
            "aws_endpoint": f"http://127.0.0.1:{port or self.port}",
            "allow_http": "true",
        }


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """A server in a process of its own, with one bucket, for as long as it is needed."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.s3server", BUCKET],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[1],
    ) as process:
        assert process.stdin
        assert process.stdout
        server = S3Server(*(int(process.stdout.readline()) for _ in range(5)))
        create = urllib.request.Request(f"http://127.0.0.1:{server.port}/{BUCKET}", method="PUT")
        with urllib.request.urlopen(create, timeout=60):
            pass
        try:
            yield server
        finally:
            process.stdin.close()
