"""The Python of Spark's workers. Spark starts `python3` of the path, which need not be the one that runs here."""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from omnigraph.errors import MissingExtra, SparkUnavailable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NEEDED: Final = "import lance, numpy, obstore, omnigraph, pandas, pyarrow, ulid, xxhash"
_SECONDS: Final = 60


def require_pandas() -> None:
    """Raise MissingExtra if this Python has no pandas, without which Spark sends no columns to its workers."""
    if find_spec("pandas") is None:
        raise MissingExtra("pandas", "spark", "the data pipeline")


def use_this_python(session: SparkSession) -> None:
    """Let the workers of a session on this machine run this Python, if theirs lacks what tasks need.

    A session that the caller has started has the Python of its time. On a cluster nothing is known about theirs.
    """
    context = session.sparkContext
    master = context.master or ""
    if not master.startswith("local"):
        return
    chosen = str(context.pythonExec)
    if _same(chosen, sys.executable) or _has_needed(chosen):
        return
    if not _has_needed(sys.executable):
        remedy = "set PYSPARK_PYTHON to a Python with omnigraph before the session starts"
        raise SparkUnavailable(master, f"its workers run {chosen}, which lacks omnigraph's packages", remedy)
    context.pythonExec = sys.executable


def _same(one: str, other: str) -> bool:
    found = shutil.which(one)
    return found is not None and Path(found).absolute() == Path(other).absolute()


@cache
def _has_needed(python: str) -> bool:
    """Can a Python import what tasks need?"""
    try:
        done = subprocess.run(  # noqa: S603  the Python that Spark would start
            [python, "-c", _NEEDED], capture_output=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
