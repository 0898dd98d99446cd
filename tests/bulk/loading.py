"""Loads for tests: what becomes of the same files on either engine, in a form in which outcomes can be compared.

`load_by_tasks` is a load as Spark runs it, with `InlineRunner` in the place of Spark: tasks run in this
process, and are pickled as for Spark. So the job itself can be tried many times a second, and Spark is only there
where it matters.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from pyspark import cloudpickle
from tests.bulk.everything import content
from ulid import ULID

import omnigraph
from omnigraph.bulk.load.checking.rejected import LocalJoins
from omnigraph.bulk.load.job import LoadEngine, load
from omnigraph.bulk.load.local import LoadData
from omnigraph.bulk.load.options import LoadOptions, LoadResult, Mode
from omnigraph.bulk.load.sources.description import Location
from omnigraph.bulk.load.staging.held import BegunRows, SpooledRows
from omnigraph.bulk.runner import Engine, TaskResult
from omnigraph.errors import ConstraintViolation, ErrorGroup, KeyConflict, OmniError, RecordError
from omnigraph.graph import Graph
from omnigraph.settings import BulkSettings, Settings
from omnigraph.write.vectors import warn_unembedded

_GENERATED = re.compile(r"\b[0-9A-HJKMNP-TV-Z]{26}\b")

_LONG_AGO = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)

Record = Mapping[str, Any]
Outcome = dict[str, Any]
Task = TypeVar("Task")
Value = TypeVar("Value")


class InlineRunner:
    """Runs the tasks of a job one after the other, in this process."""

    engine: Final = Engine.SPARK
    cores: Final = 2

    def __init__(self) -> None:
        self.job = str(ULID())

    def run(self, step: str, work: Callable[[Task], TaskResult[Value]], tasks: Sequence[Task]) -> list[Value]:
        sent = _sent(work)
        return [_sent(sent(_sent(task)).value) for task in tasks]


def _sent(value: Value) -> Value:
    """What arrives of a value at a worker, or of its result here."""
    received: Value = cloudpickle.loads(cloudpickle.dumps(value))  # type: ignore[no-untyped-call]
    return received


def load_by_tasks(
    graph: Graph,
    data: Location | Sequence[Location] | None = None,
    *,
    mode: str,
    nodes: Mapping[str, Any] | None = None,
    edges: Mapping[str, Any] | None = None,
    branch: str = "main",
    from_: str | None = None,
    actor: str | None = None,
    message: str | None = None,
    max_errors: int | None = None,
    bad_records: str | None = None,
    skip_bad: bool = False,
) -> LoadResult:
    """Load as Spark does, with the tasks in this process; keys have to fit its memory."""
    repository = graph._repository
    settings = graph._settings.bulk
    options = LoadOptions(
        Mode(mode), branch, from_, actor, message, max_errors, bad_records, skip_bad, settings=settings
    )
    catalog = repository.catalog(branch, or_of=from_)
    given = LoadData(data, nodes or {}, edges or {})
    found = given.find(catalog, repository.address.options)
    held = [BegunRows(rows) for rows in given.held(found, catalog)]

    def start() -> LoadEngine:
        runner = InlineRunner()
        return LoadEngine(runner, LocalJoins(), [SpooledRows(runner, repository.address, one) for one in held])

    done = load(repository, found.files, options, graph._embedder(), start)
    warn_unembedded(done.warnings)
    return done


def load_with(engine: str, graph: Graph, data: Any, **options: Any) -> LoadResult:
    """Load on an engine of the graph, or by tasks in this process."""
    if engine == "tasks":
        return load_by_tasks(graph, data, **options)
    return graph.load(data, engine=engine, **options)  # type: ignore[arg-type]


def small_slices(size: int, **others: int) -> BulkSettings:
    """Settings that cut files into slices of about so many bytes."""
    return BulkSettings(slice_bytes=size, smallest_slice=1, **others)


def node(type_name: str, **data: Any) -> Record:
    return {"type": type_name, "data": data}


def edge(type_name: str, source: str, target: str, **data: Any) -> Record:
    return {"edge": type_name, "from": source, "to": target, "data": data}


def text_of(records: Iterable[Record | str]) -> str:
    """Records as lines; what is a text already stays as it is."""
    return "".join(f"{r if isinstance(r, str) else json.dumps(r)}\n" for r in records)


def write(path: Path, records: Iterable[Record | str] | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(records if isinstance(records, bytes) else text_of(records).encode())
    return path


def new_graph(
    place: Path, schema: str, base: Iterable[Record] = (), settings: BulkSettings | None = None
) -> Graph:
    """A graph on disk that has some records, by two commits, so that tables consist of several parts."""
    graph = omnigraph.init(place, schema, settings=Settings(bulk=settings or BulkSettings()))
    records = list(base)
    for part in (records[: len(records) // 2], records[len(records) // 2 :]):
        if part:
            graph.load(part, mode="append")
    return graph


def rows_of(graph: Graph, branch: str = "main") -> dict[str, list[dict[str, Any]]]:
    """All rows of a graph, bit for bit, in a comparable order; ids that nobody gave are all the same."""
    found: dict[str, list[dict[str, Any]]] = {}
    for key, rows in content(graph, branch).items():
        known = [{**row, "id": _GENERATED.sub("<new>", row["id"])} for row in rows]
        found[key] = sorted(known, key=repr)
    return found


def outcome(
    graph: Graph, data: Any, mode: Any, *, shown: str = "", engine: str = "local", **options: Any
) -> Outcome:
    """What a load did: what it counted and what is there now, or what it objected to.

    ``shown`` is left out of names of files, and how they are packed, so that their records compare equal.
    """
    branch = options.get("branch", "main")
    try:
        done = load_with(engine, graph, data, mode=mode, **options)
    except OmniError as error:
        summary = _summary(getattr(error, "groups", ()))
        return {"error": _told(error, shown), "summary": summary, "branches": [b.name for b in graph.branches()]}
    return {
        "counts": (dict(done.nodes), dict(done.edges)),
        "warnings": done.warnings,
        "commit": done.commit and (done.commit.kind, done.commit.actor_id, done.commit.message),
        "edges without identity": done.edges_without_identity,
        "branch": (done.branch, done.base_branch, done.branch_created),
        "rows": rows_of(graph, branch),
    }


def _told(error: OmniError, shown: str) -> tuple[Any, ...]:
    """An error without ids that were generated: its type, its total, and all it lists."""
    if isinstance(error, ConstraintViolation):
        listed = [
            (_place(v.source, shown), v.line, v.rule, v.table_key, _masked(v.row_id), _masked(v.message))
            for v in error.violations
        ]
        return "ConstraintViolation", error.total, listed
    if isinstance(error, RecordError):
        problems = [(_place(p.source, shown), p.line, p.column, p.message) for p in error.problems]
        return "RecordError", error.total, problems
    if isinstance(error, KeyConflict):
        return "KeyConflict", error.total, error.table_key, sorted(error.ids)
    return type(error).__name__, str(error)


def _summary(groups: Sequence[ErrorGroup]) -> list[tuple[Any, ...]]:
    """How many errors there are of each reason, and of each missing id."""
    return sorted((group.rule, group.reason, group.count, _summary(group.ids)) for group in groups)


def _place(source: str | None, shown: str) -> str | None:
    return None if source is None else source.removeprefix(shown).removesuffix(".gz")


def _masked(text: str | None) -> str | None:
    """A text without ids that were generated, nor what their order decides."""
    if text is None:
        return None
    before, held, holders = _GENERATED.sub("<new>", text).partition(" held by ")
    return before + held + " and ".join(sorted(holders.split(" and ")))


def left_behind(graph: Graph) -> list[str]:
    """What jobs left that are over: records, notes, and data files with their names that no table refers to."""
    root = Path(graph.address)
    jobs = [str(path.relative_to(root)) for path in (root / "__jobs").rglob("*") if path.is_file()]
    used: set[str] = set()
    for branch in graph.branches():
        for pin in graph.snapshot(branch.name).tables.values():
            used |= graph._repository.tables.data_files(pin.location, pin.table_branch, _LONG_AGO)
    staged = [path for kind in ("nodes", "edges") for path in (root / kind).rglob("data/*.lance")]
    own = [path for path in staged if _GENERATED.match(path.name)]
    return jobs + [str(path.relative_to(root)) for path in own if path.name not in used]
