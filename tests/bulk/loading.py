"""Loads for tests: what becomes of the same files on either engine, in a form in which outcomes can be compared.

`InlineRunner` runs a job's tasks in this process instead of on Spark; what it sends is pickled as Spark does. So
the pipeline itself can be tried many times a second, and Spark is only there where it matters.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle
from tests.bulk.everything import content
from ulid import ULID

import omnigraph
from omnigraph.bulk.load import job as load_module
from omnigraph.bulk.load import sources
from omnigraph.bulk.runner import Done, Engine
from omnigraph.errors import ConstraintViolation, KeyConflict, OmniError, RecordError
from omnigraph.graph import Graph
from omnigraph.spark import choice as choice_module
from omnigraph.spark.loads import requests as requests_module

_GENERATED = re.compile(r"\b[0-9A-HJKMNP-TV-Z]{26}\b")

_LONG_AGO = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)

Record = Mapping[str, Any]
Outcome = dict[str, Any]


class InlineRunner:
    """Runs the stages of a job one task after the other, in this process."""

    engine = Engine.SPARK

    def __init__(self, *_: Any, **__: Any) -> None:
        self.job = str(ULID())
        self.stages: list[str] = []

    def run(self, stage: str, work: Callable[[Any], Done], tasks: Sequence[Any]) -> list[Any]:
        self.stages.append(stage)
        sent = _sent(work)
        return [_sent(sent(_sent(task)).outcome) for task in tasks]

    @contextmanager
    def watched(self, *_: Any) -> Iterator[None]:
        yield


def _sent(value: Any) -> Any:
    """What arrives of a value at a worker, or of its result here."""
    return cloudpickle.loads(cloudpickle.dumps(value))  # type: ignore[no-untyped-call]


@pytest.fixture
def inline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loads with engine="spark" run their tasks in this process."""
    monkeypatch.setattr(choice_module, "SparkRunner", InlineRunner)
    monkeypatch.setattr(choice_module, "spark_session", lambda *_, **__: None)
    monkeypatch.setattr(requests_module, "cores", lambda _: 2)


def cut_small(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Cut files into slices of about so many bytes."""
    monkeypatch.setattr(sources, "SMALLEST_SLICE", 1)
    monkeypatch.setattr(load_module, "cut", lambda files, cores: sources.cut(files, 1, size))


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


def new_graph(place: Path, schema: str, base: Iterable[Record] = ()) -> Graph:
    """A graph on disk that has some records, by two commits, so that tables consist of several parts."""
    graph = omnigraph.init(place, schema)
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


def outcome(graph: Graph, data: Any, mode: Any, *, shown: str = "", **options: Any) -> Outcome:
    """What a load did: what it counted and what is there now, or what it objected to.

    ``shown`` is left out of names of files, and how they are packed, so that their records compare equal.
    """
    branch = options.get("branch", "main")
    try:
        done = graph.load(data, mode=mode, **options)
    except OmniError as error:
        return {"error": _told(error, shown), "branches": [b.name for b in graph.branches()]}
    return {
        "counts": (dict(done.nodes), dict(done.edges)),
        "warnings": done.warnings,
        "commit": (done.commit.kind, done.commit.actor_id, done.commit.message),
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
