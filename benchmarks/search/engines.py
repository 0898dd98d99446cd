"""The engines that search: OmniGraph without and with indexes, LanceDB with several, bm25s.

Each is imported in its own process only. A store is a folder; it keeps how long which part of it took to make.
"""

from __future__ import annotations

import importlib
import json
import shutil
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, Protocol

from benchmarks.contest import Engine, Question, Row, Session
from benchmarks.search.data import BEST, FILTERS, KINDS, TEXT, VECTORS, read

_TIMES: Final = "times.json"
_GRAPH: Final = "docs.omni"
_INDEXES: Final = "_indices"
_TOGETHER: Final = 100_000
"""A load brings so many documents."""


class Searching(Engine, Protocol):
    """An engine that can answer some kinds of questions."""

    @property
    def kinds(self) -> Sequence[str]: ...


@contextmanager
def _timed(store: Path, part: str) -> Iterator[None]:
    """Note in a store how long something took."""
    start = time.perf_counter()
    yield
    path = store / _TIMES
    known = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**known, part: time.perf_counter() - start}))


def times_of(store: Path) -> Mapping[str, float]:
    """How long the parts of a store took to make."""
    times: dict[str, float] = json.loads((store / _TIMES).read_text())
    return times


def bytes_of(store: Path) -> tuple[int, int]:
    """What the rows of a store take, and what its indexes take."""
    sizes = {path: path.stat().st_size for path in store.rglob("*") if path.is_file() and path.name != _TIMES}
    indexes = sum(size for path, size in sizes.items() if _INDEXES in path.parts)
    return sum(sizes.values()) - indexes, indexes


@dataclass(frozen=True, slots=True)
class OmniGraph:
    """OmniGraph through `Graph.query`."""

    dimension: int
    indexed: bool
    kinds: Sequence[str] = KINDS

    @property
    def name(self) -> str:
        return "omnigraph, indexed" if self.indexed else "omnigraph"

    @property
    def modules(self) -> Sequence[str]:
        return ["omnigraph.graph"]

    def version(self) -> str:
        return version("omnigraph")

    def store(self) -> str:
        return "omnigraph-indexed" if self.indexed else "omnigraph"

    def build(self, home: Path, to: Path) -> None:
        import omnigraph

        if self.indexed:
            shutil.copytree(home / OmniGraph(self.dimension, False).store(), to)
            graph = omnigraph.open(to / _GRAPH)
            with _timed(to, "indexes"):
                graph.ensure_indices()
            return
        to.mkdir()
        graph = omnigraph.init(to / _GRAPH, self._schema())
        documents = read(home)
        with _timed(to, "rows"):
            for low in range(0, documents.count, _TOGETHER):
                graph.load(nodes={"Doc": documents.arrow(low, low + _TOGETHER)}, mode="append")

    def _schema(self) -> str:
        vector = f"Vector({self.dimension})"
        return f"node Doc {{ name: String @key  group: I32 @index  text: String @index  vector: {vector} @index }}"

    def open(self, home: Path) -> Session:
        return self.open_at(home / self.store(), read_only=True)

    def open_at(self, store: Path, *, read_only: bool) -> OmniSession:
        """A store that may be a copy."""
        import omnigraph

        vector = f"Vector({self.dimension})"
        conditions = {kind: f"$d.group < {FILTERS[kind]}" if kind in FILTERS else "" for kind in VECTORS}
        texts = {kind: _query(vector, only, "nearest($d.vector, $q)") for kind, only in conditions.items()}
        texts[TEXT] = _query("String", "", "bm25($d.text, $q)")
        return OmniSession(omnigraph.open(store / _GRAPH, read_only=read_only), texts)


def _query(kind: str, condition: str, ranking: str) -> str:
    return (
        f"query search($q: {kind}) {{ match {{ $d: Doc {condition} }} return {{ $d.name as name }} "
        f"order {{ {ranking} }} limit {BEST} }}"
    )


@dataclass(frozen=True, slots=True)
class OmniSession:
    """An open graph, and the query for each kind of questions."""

    graph: Any
    texts: Mapping[str, str]

    def ask(self, question: Question) -> Sequence[Row]:
        params = {"q": question.params.get("vector", question.params.get("text"))}
        result = self.graph.query(self.texts[question.texts["kind"]], params)
        return [tuple(row.values()) for row in result.rows]


@dataclass(frozen=True, slots=True)
class LanceDB:
    """LanceDB with one kind of index, or none; ``refine`` makes it look at so many times more vectors exactly, and
    ``probes`` in so many partitions, where it has defaults."""

    name: str
    index: str | None
    kinds: Sequence[str]
    refine: int | None = None
    probes: int | None = None

    @property
    def modules(self) -> Sequence[str]:
        return ["lancedb"]

    def version(self) -> str:
        return version("lancedb")

    def store(self) -> str:
        return f"lancedb-{self.index or 'plain'}"

    def build(self, home: Path, to: Path) -> None:
        lancedb, index = importlib.import_module("lancedb"), importlib.import_module("lancedb.index")
        to.mkdir()
        rows = read(home).arrow()
        with _timed(to, "rows"):
            table = lancedb.connect(str(to)).create_table("docs", rows)
        if self.index is None:
            return
        with _timed(to, "indexes"):
            if self.index == "FTS":
                table.create_index("text", config=index.FTS())
            else:
                table.create_index("group", config=index.BTree())
                table.create_index("vector", config=getattr(index, self.index)(distance_type="l2"))

    def open(self, home: Path) -> Session:
        lancedb = importlib.import_module("lancedb")
        table = lancedb.connect(str(home / self.store())).open_table("docs")
        return _LanceSession(table, self.refine, self.probes)


@dataclass(frozen=True, slots=True)
class _LanceSession:
    table: Any
    refine: int | None
    probes: int | None

    def ask(self, question: Question) -> Sequence[Row]:
        return asked_of_lancedb(self.table, question, self.refine, self.probes)


def asked_of_lancedb(table: Any, question: Question, refine: int | None, probes: int | None) -> list[Row]:
    """A search in a table of LanceDB."""
    kind = question.texts["kind"]
    if kind == TEXT:
        search = table.search(question.params["text"], query_type="fts")
    else:
        search = table.search(question.params["vector"])
        if kind in FILTERS:
            search = search.where(f"`group` < {FILTERS[kind]}", prefilter=True)
        if refine is not None:
            search = search.refine_factor(refine)
        if probes is not None:
            search = search.nprobes(probes)
    score = "_score" if kind == TEXT else "_distance"
    found = search.select(["name", score]).limit(BEST).to_arrow()
    return [(name,) for name in found["name"].to_pylist()]


@dataclass(frozen=True, slots=True)
class Bm25s:
    """bm25s with the parameters of BM25 that the others have."""

    name: str = "bm25s"
    kinds: Sequence[str] = (TEXT,)

    @property
    def modules(self) -> Sequence[str]:
        return ["bm25s"]

    def version(self) -> str:
        return version("bm25s")

    def store(self) -> str:
        return "bm25s"

    def build(self, home: Path, to: Path) -> None:
        bm25s = importlib.import_module("bm25s")
        texts = read(home).texts
        to.mkdir()
        with _timed(to, "indexes"):
            tokens = bm25s.tokenize(texts, stopwords=None, show_progress=False)
            engine = bm25s.BM25(k1=1.2, b=0.75)
            engine.index(tokens, show_progress=False)
            engine.save(str(to / _INDEXES))

    def open(self, home: Path) -> Session:
        bm25s = importlib.import_module("bm25s")
        # Its progress bars, also those that are not shown, would share a semaphore between processes.
        importlib.import_module("tqdm").tqdm.set_lock(threading.RLock())
        return _Bm25Session(bm25s, bm25s.BM25.load(str(home / self.store() / _INDEXES)))


@dataclass(frozen=True, slots=True)
class _Bm25Session:
    bm25s: Any
    engine: Any

    def ask(self, question: Question) -> Sequence[Row]:
        tokens = self.bm25s.tokenize(question.params["text"], stopwords=None, show_progress=False)
        found, scores = self.engine.retrieve(tokens, k=BEST, show_progress=False)
        return [(f"d{number}",) for number, score in zip(found[0], scores[0], strict=True) if score > 0]


def competitors(dimension: int) -> list[Searching]:
    """Everybody; those that build upon another's store come after it."""
    return [
        OmniGraph(dimension, indexed=False),
        OmniGraph(dimension, indexed=True),
        LanceDB("lancedb, no index", None, VECTORS),
        LanceDB("lancedb, IVF_PQ", "IvfPq", VECTORS),
        LanceDB("lancedb, IVF_PQ refined 10", "IvfPq", VECTORS, refine=10),
        LanceDB("lancedb, IVF_RQ refined 4", "IvfRq", VECTORS, refine=4),
        *(LanceDB(f"lancedb, IVF_FLAT in {n} partitions", "IvfFlat", VECTORS, probes=n) for n in (20, 40, 80)),
        LanceDB("lancedb, IVF_HNSW_SQ", "HnswSq", VECTORS),
        LanceDB("lancedb, FTS", "FTS", (TEXT,)),
        Bm25s(),
    ]
