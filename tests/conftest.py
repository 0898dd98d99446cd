"""Fixtures that every test may use: places to keep a graph in, and one Spark session."""

from __future__ import annotations

import gc
import importlib
import os
import shutil
import warnings
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from tests import stores
from tests.copies import Copies
from tests.sampling import examples
from tests.stores import S3Server, Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MEMORY = Path("/dev/shm")
ROOM = 2 << 30
"""How many bytes the folders of tests may take."""

CLUSTER = "test_all_or_nothing.py"
ALWAYS = "test_load_command.py"
SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    # Tests are over before the better compiler pays for itself.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
}


def pytest_configure(config: pytest.Config) -> None:
    """Keep the folders of tests in memory where there is room: small writes spend most of their time on syncing a
    disk. `PYTEST_DEBUG_TEMPROOT=/tmp` has them on the disk."""
    if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))
    os.environ["OMNIGRAPH_HOME"] = os.devnull  # not the configuration of the person who runs the tests
    settings.register_profile("sampled", settings.default, max_examples=examples(40, of=100))
    settings.load_profile("sampled")


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Find the tests without looking for garbage, of which there is next to none, nor among them later."""
    gc.disable()
    _import_a_share(session.config)
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def _import_a_share(config: pytest.Config) -> None:
    """In one of several workers, import modules that the others do not begin with: where none of them is compiled
    yet, each worker then compiles some, and not each of them all."""
    worker: dict[str, object] = getattr(config, "workerinput", {})
    if not worker:
        return
    number, workers = int(str(worker["workerid"]).removeprefix("gw")), int(str(worker["workercount"]))
    folders = (config.invocation_params.dir / name for name in config.args)
    for path in sorted({path for folder in folders for path in folder.rglob("test_*.py")})[number::workers]:
        with suppress(Exception):  # pytest tells it, when it imports the module itself
            importlib.import_module(".".join(path.relative_to(config.rootpath).with_suffix("").parts))


def pytest_sessionfinish() -> None:
    """Have everything taken apart at the end: some libraries tell what is left."""
    gc.unfreeze()


def pytest_itemcollected(item: pytest.Item) -> None:
    """What needs a session, or a cluster, has a target of its own, `make long`: two workers of a test run would
    start two sessions, and wait for each other's. One module on Spark stays among the others."""
    needs_spark = isinstance(item, pytest.Function) and "spark" in item.fixturenames
    if item.path.name != ALWAYS and (needs_spark or item.path.name == CLUSTER):
        item.add_marker(pytest.mark.long)
    if "s3" in _parameters(item) and not item.get_closest_marker("quick_on_s3"):
        item.add_marker(pytest.mark.long)


def _parameters(item: pytest.Item) -> list[object]:
    return list(item.callspec.params.values()) if hasattr(item, "callspec") else []


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """An S3-compatible server, started once and only if a test asks for it."""
    with stores.s3_server() as server:
        yield server


@pytest.fixture(scope="session")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Copies:
    """Graphs that are made once and copied for each test."""
    return Copies(tmp_path_factory.mktemp("copies"))


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


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session on this machine, for small data."""
    from omnigraph.spark.sessions import spark_session

    with warnings.catch_warnings():
        # Starting Java forks, of which Lance warns; the child only becomes Java.
        warnings.filterwarnings("ignore", message="lance is not fork-safe")
        session = spark_session("local[2]", config=SETTINGS)
    yield session
    session.stop()
