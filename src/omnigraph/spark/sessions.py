"""The Spark session of the pipeline: the caller's own, one that runs already, or a quiet one of our own."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
import uuid
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

from omnigraph.errors import MissingExtra, OmniError, SparkUnavailable
from omnigraph.spark.addresses import CONNECT, require_reachable
from omnigraph.spark.java import find_java
from omnigraph.spark.pythons import require_pandas, use_this_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER: Final = "OMNIGRAPH_SPARK_MASTER"
REMOTE: Final = "OMNIGRAPH_SPARK_REMOTE"
_SOURCE: Final = Path(__file__).parent.parent
_QUIET: Final = Path(__file__).with_name("log4j2.properties")
_CONNECT_CORES: Final = 8
_LOGGED: Final = re.compile(r"^[\d:]+ [A-Z]+ \S+: ")
_GRPC_STATUS: Final = re.compile(r"status = StatusCode\.(\w+)")
_GRPC_DETAILS: Final = re.compile(r'details = "(.*)"')
_starting = threading.Lock()
_supplied: WeakSet[SparkSession] = WeakSet()
"""The sessions whose workers have this package."""

_DEFAULTS: Final = {
    "spark.app.name": "omnigraph",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
}
_LOCAL_DEFAULTS: Final = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "4g",
    "spark.sql.shuffle.partitions": str(4 * (os.cpu_count() or 1)),
}


def spark_session(
    spark: SparkSession | str | None = None, *, config: Mapping[str, str] | None = None
) -> SparkSession:
    """The session to work in: the one given, else one at the address given, else the active one, else a new one.

    An address is a Spark master (`local[*]`, `spark://host:port`) or a Spark Connect server (`sc://host:port`);
    where none is given, `OMNIGRAPH_SPARK_MASTER` and `OMNIGRAPH_SPARK_REMOTE` name one, and else it is `local[*]`.
    """
    session_class = _session_class()
    if spark is not None and not isinstance(spark, str):
        return _prepared(spark)
    with _starting:
        active = _active(session_class)
        is_remote = spark is not None and spark.startswith(CONNECT)
        if active is not None and not is_remote:
            return _prepared(_fitting(active, spark))
        address = spark or os.environ.get(REMOTE) or os.environ.get(MASTER) or "local[*]"
        require_reachable(address)
        if address.startswith(CONNECT):
            return _connected(session_class, address, config or {})
        return _started(session_class, address, config or {})


def is_started(spark: SparkSession | str | None) -> bool:
    """Is the session there already that `spark_session` would return?"""
    if spark is not None and not isinstance(spark, str):
        return True
    is_remote = spark is not None and spark.startswith(CONNECT)
    return not is_remote and _active(_session_class()) is not None


def _active(session_class: type[SparkSession]) -> SparkSession | None:
    try:
        return session_class.getActiveSession()
    except Exception as error:  # Java no longer answers
        raise _ended() from error


def _ended() -> SparkUnavailable:
    reason = "the Java process of this process's session has ended"
    return SparkUnavailable("this process", reason, "start the program again, with more spark.driver.memory")


def _prepared(session: SparkSession) -> SparkSession:
    """A session that the caller has started, whose workers can run our tasks as far as that can be known here."""
    if not is_connect(session):
        try:
            use_this_python(session)
        except OmniError:
            raise
        except Exception as error:
            raise _ended() from error
    return session


def _fitting(active: SparkSession, master: str | None) -> SparkSession:
    """The session that is active, if it is where the caller wants to work: a process has one at a time."""
    if master is None or is_connect(active) or active.sparkContext.master == master:
        return active
    there = active.sparkContext.master
    raise SparkUnavailable(master, f"a session at {there} is active in this process", "stop it, or work in it")


def _session_class() -> type[SparkSession]:
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise MissingExtra("pyspark", "spark", "the data pipeline") from error
    require_pandas()
    return SparkSession


def _connected(session_class: type[SparkSession], address: str, config: Mapping[str, str]) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = session_class.builder.remote(address)
    for name, value in config.items():
        builder = builder.config(name, value)
    log = _log_file()
    session = None
    try:
        with _errors_to(log):
            session = builder.getOrCreate()
            session.range(1).count()
    except ImportError as error:
        raise MissingExtra("pyspark[connect]", "connect", "Spark Connect") from error
    except Exception as error:
        if session is not None:
            _abandon(session)
        raise SparkUnavailable(address, _why_unreachable(error)) from error
    _ship_package(session)
    return session


def _abandon(session: SparkSession) -> None:
    """Leave a session of Spark Connect without telling its server: Spark would try to for minutes, at the end of
    this process too."""
    with suppress(Exception):
        session.client.close()
    with suppress(Exception):
        session.stop()


def _why_unreachable(error: Exception) -> str:
    """What went wrong with a call of Spark Connect: an error of gRPC says it in the middle of its text."""
    status, details = _GRPC_STATUS.search(str(error)), _GRPC_DETAILS.search(str(error))
    if status is None or details is None:
        return _first_line(str(error))
    return f"the server did not answer as Spark Connect does: {status[1]}, {details[1]}"


def _started(session_class: type[SparkSession], master: str, config: Mapping[str, str]) -> SparkSession:
    """A session of our own: Java is looked for first, and what the JVM prints goes to a file."""
    java = find_java()
    os.environ["JAVA_HOME"] = str(java.home)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    is_local = master.startswith("local")
    settings = {**_DEFAULTS, **(_LOCAL_DEFAULTS if is_local else {}), **config}
    if "SPARK_CONF_DIR" not in os.environ:
        given = settings.get("spark.driver.extraJavaOptions", "")
        settings["spark.driver.extraJavaOptions"] = f"-Dlog4j2.configurationFile={_QUIET.as_uri()} {given}".strip()
    builder = session_class.builder.master(master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    log = _log_file()
    try:
        with _errors_to(log), _signals_kept():
            session = builder.getOrCreate()
    except Exception as error:
        reason = _last_line(log.read_text(errors="replace")) or _first_line(str(error))
        raise SparkUnavailable(master, f"{reason} (all of it is in {log})") from error
    if not is_local:
        _ship_package(session)
    return session


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Keep what Ctrl-C does in this process: a new context of Spark would take it over."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _log_file() -> Path:
    """A file for what Java prints."""
    descriptor, name = tempfile.mkstemp(prefix="omnigraph-spark-", suffix=".log")
    os.close(descriptor)
    return Path(name)


@contextmanager
def _errors_to(path: Path) -> Iterator[None]:
    """Let processes that are started meanwhile write their errors to a file, for as long as they live."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with path.open("ab") as target:
            os.dup2(target.fileno(), 2)
        with warnings.catch_warnings():
            # Java is started by a fork, of which Lance warns; the child only becomes Java.
            warnings.filterwarnings("ignore", message="lance is not fork-safe")
            yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _ship_package(session: SparkSession) -> None:
    """Give the workers of a cluster this very version of the package, once; what it needs they must have."""
    if session in _supplied or not _SOURCE.is_dir():
        return
    session.addArtifacts(str(_packed()), pyfile=True)
    _supplied.add(session)


@lru_cache(maxsize=1)
def _packed() -> Path:
    """The package as one file. Spark reads it whenever an executor starts, so it stays until this process ends; on
    a server that others use too, its name must be unique."""
    folder = Path(tempfile.mkdtemp(prefix="omnigraph-ship-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    target = folder / f"omnigraph-{uuid.uuid4().hex}.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(_SOURCE.rglob("*.py")):
            archive.write(file, Path("omnigraph") / file.relative_to(_SOURCE))
    return target


def cores(session: SparkSession) -> int:
    """How many tasks the session runs at a time; over Spark Connect as far as its settings say."""
    if is_connect(session):
        return int(session.conf.get("spark.default.parallelism", str(_CONNECT_CORES)) or _CONNECT_CORES)
    return max(1, session.sparkContext.defaultParallelism)


def is_connect(session: SparkSession) -> bool:
    """Is the session a client of Spark Connect, which has neither a context nor accumulators?"""
    return type(session).__module__.startswith("pyspark.sql.connect")


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "it did not say why")


def _last_line(text: str) -> str:
    """The line that tells most in what a JVM printed before it went: the last error, else the last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "Error" in line or "Exception" in line or " ERROR " in line]
    return _LOGGED.sub("", (errors or lines or [""])[-1])
