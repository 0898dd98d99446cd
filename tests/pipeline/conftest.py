"""One Spark session for all tests of the pipeline."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from omnigraph.pipeline.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).parent
CLUSTER = "test_all_or_nothing.py"
ALWAYS = "test_load_command.py"
SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    # Tests are over before the better compiler pays for itself.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
}


def pytest_itemcollected(item: pytest.Item) -> None:
    """What needs a session, or a cluster, has a target of its own, `make long`: two workers of a test run would
    start two sessions, and wait for each other's. One module on Spark stays among the others."""
    needs_spark = isinstance(item, pytest.Function) and "spark" in item.fixturenames
    if item.path.is_relative_to(HERE) and item.path.name != ALWAYS and (needs_spark or item.path.name == CLUSTER):
        item.add_marker(pytest.mark.long)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session on this machine, for small data."""
    with warnings.catch_warnings():
        # Starting Java forks, of which Lance warns; the child only becomes Java.
        warnings.filterwarnings("ignore", message="lance is not fork-safe")
        session = spark_session(master="local[2]", config=SETTINGS)
    yield session
    session.stop()
