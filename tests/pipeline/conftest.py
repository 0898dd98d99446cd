"""One Spark session for all tests of the pipeline, and one worker that runs them."""

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
LONG = ("test_all_or_nothing.py", "test_streaming.py")
SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    # Tests are over before the better compiler pays for itself.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With `--dist loadgroup` one worker runs what is in here, so that one session is enough; xdist looks for
    groups in the same hook, and has to see them.

    What takes longer has a target of its own, `make long`: queries and streams, and clusters that are killed.
    """
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.xdist_group("spark"))
            if item.path.name in LONG or item.path.parent.name == "queries":
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
