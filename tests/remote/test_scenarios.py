"""One set of scenarios, with an embedded graph and with a remote one: the same methods, results and errors."""

from __future__ import annotations

import ast
import datetime as dt
import inspect
import io
import math
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.server.running import ADD, NAMES, PEOPLE, SCHEMA, SET_AGE, TOKENS, make_graph, serving

import omnigraph
from omnigraph import Graph, OmniError, RemoteGraph
from omnigraph.remote.handle import DIRECT

ULID = re.compile("[0-9A-HJKMNP-TV-Z]{26}", re.IGNORECASE)
AnyGraph = Graph | RemoteGraph
Scenario = Callable[[AnyGraph], Any]


def queries(graph: AnyGraph) -> Any:
    by_name = "query one($n: String) { match { $p: Person { name: $n } } return { $p.name as n, $p.born as b } }"
    before = graph.snapshot()
    graph.mutate(ADD, {"n": "quin", "a": 3})
    return [
        graph.query(NAMES).rows,
        graph.query(by_name, {"n": "ada"}).rows,
        graph.query(by_name, {"n": "nobody"}).to_arrow(),
        graph.query(NAMES, at=before).rows,
        graph.query(NAMES, at=1).target,
        graph.query(NAMES, branch="main", at=graph.commits()[1].created_at).rows,
        graph.query(NAMES, at=graph.commits()[1].created_at.isoformat()).rows,
        graph.query(NAMES, at="9999-01-01T00:00Z").target,
        graph.query(NAMES, at=before.graph_commit_id).columns,
        graph.explain(NAMES),
        graph.check("query q() { match { $p: Persn } return { $p } }").count("error"),
        graph.entity("Person", "ada"),
        graph.entity("Person", "nobody"),
    ]


def parameters(graph: AnyGraph) -> Any:
    text = "query born($d: Date) { match { $p: Person  $p.born = $d } return { $p.name as n } }"
    return graph.query(text, {"d": dt.date(1815, 12, 10)}).rows


def mutations(graph: AnyGraph) -> Any:
    done = graph.mutate(SET_AGE, {"n": "ada", "a": 37})
    assert done.commit is not None
    head = done.commit.graph_commit_id
    return [
        done,
        graph.mutate(SET_AGE, {"n": "nobody", "a": 1}),
        graph.mutate(ADD, {"n": "mia"}, if_commit=head).affected_nodes,
        graph.commits(limit=2),
        graph.commit(head) == done.commit,
    ]


def loads(graph: AnyGraph) -> Any:
    return [
        graph.load(PEOPLE, mode="merge"),
        graph.load([{"type": "Person", "data": {"name": "lou", "born": dt.date(2000, 1, 2)}}], mode="append"),
        graph.ingest(b'{"type": "Person", "data": {"name": "luc"}}', "review/1", message="mine"),
        graph.load(f"{{]\n{PEOPLE}", mode="merge", branch="review/1", skip_bad=True, message="half"),
        graph.query(NAMES, branch="review/1").rows,
        graph.branch("review/1").query(NAMES).rows,
    ]


def branches(graph: AnyGraph) -> Any:
    made = graph.create_branch("dev")
    graph.mutate(ADD, {"n": "bea"}, branch="dev")
    plan = graph.preview_merge("dev")
    merged = graph.merge("dev", message="all of it")
    return [
        made,
        plan,
        merged,
        graph.merge("dev").outcome,
        [each.name for each in graph.branches()],
        graph.delete_branch("dev").name,
        [each.name for each in graph.branches()],
        graph.damaged_branches(),
        graph.damaged_tags(),
        graph.tag("v1"),
        graph.tags(),
        graph.commit("v1").kind,
        graph.delete_tag("v1"),
        graph.log(stat=True),
        graph.blame("Person", "bea"),
    ]


def undoing(graph: AnyGraph) -> Any:
    first = graph.mutate(SET_AGE, {"n": "ada", "a": 50}).commit
    assert first is not None
    second = graph.revert(first.graph_commit_id)
    again = graph.cherry_pick(first.graph_commit_id)
    graph.mutate(ADD, {"n": "uma"})
    back = graph.reset(first.graph_commit_id, message="back")
    return [second, again, back, graph.query(NAMES).rows]


def following(graph: AnyGraph) -> Any:
    start = graph.changes().cursor
    graph.mutate(SET_AGE, {"n": "ada", "a": 50})
    graph.mutate(ADD, {"n": "fay"})
    page = graph.changes(cursor=start)
    sink = io.BytesIO()
    baseline = graph.baseline(sink, kinds=["edge"])
    with tempfile.TemporaryDirectory() as folder:
        filed = graph.baseline(Path(folder) / "base.jsonl", kinds=["edge"])
        assert filed.target == str(Path(folder) / "base.jsonl")
        assert [each.read_bytes() for each in Path(folder).iterdir()] == [sink.getvalue()]
    head = graph.commits(limit=1)[0].graph_commit_id
    return [
        page.blocks,
        page.caught_up,
        graph.changes(cursor=page.cursor).blocks,
        [len(each.blocks) for each in graph.change_pages(start="beginning", limit=1)],
        graph.commit_changes(head, types=["Person"]).block,
        sink.getvalue(),
        baseline.total_entities,
    ]


def schemas(graph: AnyGraph) -> Any:
    more = SCHEMA + "node Place { code: String @key }"
    return [
        graph.schema,
        graph.plan_schema(more),
        graph.apply_schema(more, message="places"),
        graph.schema_source(at=1),
        [each.source for each in graph.schema_history()],
        sorted(graph.catalog.nodes),
        graph.snapshot().tables,
        graph.recoveries(),
    ]


def exports(graph: AnyGraph) -> Any:
    sink = io.BytesIO()
    done = graph.export(sink, ordered=True)
    return [sink.getvalue(), done, graph.export(io.BytesIO(), types=["Knows"]).total_entities]


def blobs(graph: AnyGraph) -> Any:
    content = bytes(range(256)) * 2048
    put = graph.put_blob("Person", "ada", "photo", content)
    with graph.blob("Person", "ada", "photo") as blob:
        read = [blob.size, blob.read(3), blob.seek(-5, 2), blob.read(), blob.tell(), blob.read_range(300_000, 7)]
        again = graph.put_blob("Person", "ada", "photo", io.BytesIO(b""), if_match=blob.etag)
        blob.seek(0)
        assert blob.read() == content, "an open blob keeps the bytes it was opened with"
        assert blob.closed is False
    empty = graph.blob("Person", "ada", "photo")
    cleared = graph.put_blob("Person", "ada", "photo", None, message="no photo")
    return [put, read, again, empty.size, empty.read(), empty.cell, blob.cell, cleared]


SCENARIOS: tuple[Scenario, ...] = (
    queries,
    parameters,
    mutations,
    loads,
    branches,
    undoing,
    following,
    schemas,
    exports,
    blobs,
)


def _echoing(value: object) -> Scenario:
    return lambda graph: graph.query(ECHO, {"n": value})


ECHO = "query q($n: String) { match { $p: Person } return { $n as n } limit 1 }"
REFUSALS: dict[str, Scenario] = {
    "syntax": lambda graph: graph.query("query q() {"),
    "type": lambda graph: graph.query("query q() { match { $p: Persn } return { $p } }"),
    "mutation": lambda graph: graph.query(ADD),
    "missing parameter": lambda graph: graph.mutate(ADD),
    "memory": lambda graph: graph.query(NAMES, memory_limit=0),
    **{
        f"a parameter that is a {type(value).__name__}": _echoing(value)
        for value in (b"x", dt.date(2020, 1, 1), Decimal("1.5"), {"x"}, np.int64(1))
    },
    "bytes for a text": lambda graph: graph.mutate(ADD, {"n": b"x"}),
    "a day for an instant": lambda graph: graph.query(
        ECHO.replace("String", "DateTime"), {"n": dt.date(2020, 1, 1)}
    ),
    "a number of NumPy": lambda graph: graph.query(ECHO.replace("String", "I64"), {"n": np.int64(1)}),
    "no number": lambda graph: graph.query(ECHO.replace("String", "F64"), {"n": math.nan}),
    "name of a parameter": lambda graph: graph.query(ECHO, {"n": "x", 1: "y"}),  # type: ignore[dict-item]
    "parameters in a list": lambda graph: graph.query(ECHO, ["x"]),  # type: ignore[arg-type]
    "timeout": lambda graph: graph.query(NAMES, timeout="1"),  # type: ignore[arg-type]
    "no time": lambda graph: graph.query(NAMES, timeout=-1),
    "memory as text": lambda graph: graph.query(NAMES, memory_limit="1"),  # type: ignore[arg-type]
    "state": lambda graph: graph.query(NAMES, at=dt.date(2020, 1, 1)),  # type: ignore[arg-type]
    "state as fraction": lambda graph: graph.query(NAMES, at=1.5),  # type: ignore[arg-type]
    "kinds as text": lambda graph: graph.changes(start="beginning", kinds="edge"),  # type: ignore[arg-type]
    "operation": lambda graph: graph.changes(start="beginning", ops=["Insert"]),  # type: ignore[list-item]
    "file": lambda graph: graph.load("missing.jsonl", mode="merge"),
    "value of a record": lambda graph: graph.load([{"type": "Person", "data": dt.timedelta(1)}], mode="merge"),
    "branch": lambda graph: graph.query(NAMES, branch="mian"),
    "commit": lambda graph: graph.commit("01ARZ3NDEKTSV4RRFFQ69G5FAV"),
    "too early": lambda graph: graph.query(NAMES, at=dt.datetime(1999, 1, 1)),
    "both": lambda graph: graph.query(NAMES, branch="main", at="01ARZ3NDEKTSV4RRFFQ69G5FAV"),
    "type of an argument": lambda graph: graph.query(7),  # type: ignore[arg-type]
    "branch exists": lambda graph: [graph.create_branch("taken"), graph.create_branch("taken")],
    "main stays": lambda graph: graph.delete_branch("main"),
    "branch name": lambda graph: graph.create_branch("a b"),
    "records": lambda graph: graph.load("{]", mode="merge"),
    "rule": lambda graph: graph.load([{"type": "Person", "data": {"name": "x", "age": 900}}], mode="merge"),
    "key": lambda graph: graph.load([{"type": "Person", "data": {"name": "ada"}}], mode="append"),
    "mode": lambda graph: graph.load(PEOPLE, mode="replace"),  # type: ignore[arg-type]
    "precondition": lambda graph: graph.mutate(ADD, {"n": "x"}, if_commit="01ARZ3NDEKTSV4RRFFQ69G5FAV"),
    "cursor": lambda graph: graph.changes(cursor="nonsense"),
    "migration": lambda graph: graph.apply_schema("node Person { name: I32 @key }"),
    "schema": lambda graph: graph.plan_schema("node {"),
    "conflicts": lambda graph: _conflicts(graph),
    "entity type": lambda graph: graph.entity("Persn", "x"),
    "first commit": lambda graph: graph.commit_changes(graph.commits()[-1].graph_commit_id),
    "no blob": lambda graph: graph.blob("Person", "bob", "photo"),
    "no entity": lambda graph: graph.blob("Person", "nobody", "photo"),
    "no entity to write": lambda graph: graph.put_blob("Person", "nobody", "photo", b"x"),
    "not a blob": lambda graph: graph.blob("Person", "ada", "age"),
    "changed blob": lambda graph: graph.put_blob("Person", "bob", "photo", b"x", if_match="0" * 32),
    "commit id": lambda graph: [graph.mutate(ADD, {"n": name}, graph_commit_id=GIVEN) for name in "xy"],
}
GIVEN = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


def _conflicts(graph: AnyGraph) -> Any:
    graph.create_branch("side")
    graph.mutate(SET_AGE, {"n": "ada", "a": 60})
    graph.mutate(SET_AGE, {"n": "ada", "a": 61}, branch="side")
    return graph.merge("side")


UNSCRIPTED = frozenset(
    {"address", "close", "is_closed"}  # they differ by their nature; tests/remote/test_connecting.py has them
)


def test_every_served_method_is_in_a_scenario() -> None:
    tree = ast.parse(inspect.getsource(sys.modules[__name__]))
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "graph"
    }
    public = {name for name in dir(Graph) if not name.startswith("_")}
    served = {name for name in public if hasattr(RemoteGraph, name)}
    assert served - used == UNSCRIPTED
    assert public - served == DIRECT, "a method is served, or it is named as one that no server does"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two graphs to which the same happens: one in this process, one behind a server."""

    embedded: Graph
    remote: RemoteGraph


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("pair")
    for name in ("one", "other"):
        make_graph(folder / f"{name}.omni")
    with (
        omnigraph.open(folder / "one.omni", actor="ada") as one,
        serving(folder / "other.omni") as server,
        omnigraph.connect(server.url, token=TOKENS["ada"]) as other,
    ):
        yield Pair(one, other)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.__name__)
def test_a_scenario_comes_to_the_same(scenario: Scenario, pair: Pair) -> None:
    assert plain(scenario(pair.remote)) == plain(scenario(pair.embedded))


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_is_the_same(name: str, pair: Pair) -> None:
    with pytest.raises(OmniError) as expected:
        REFUSALS[name](pair.embedded)
    with pytest.raises(OmniError) as found:
        REFUSALS[name](pair.remote)
    assert type(found.value) is type(expected.value)
    assert plain(vars(found.value)) == plain(vars(expected.value))
    assert plain(str(found.value)) == plain(str(expected.value))
    assert found.value.outcome is expected.value.outcome


def plain(value: Any) -> Any:
    """A value that can be compared: ids and times of two graphs differ, and so do their addresses."""
    if isinstance(value, str):
        return ULID.sub("ID", value)
    if isinstance(value, dt.datetime):
        return "TIME"
    if isinstance(value, dict) or hasattr(value, "items"):
        return {str(plain(name)): plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if is_dataclass(value) and not isinstance(value, type):
        shown = {each.name: plain(getattr(value, each.name)) for each in fields(value) if each.compare}
        return {"a": type(value).__name__, **{k: v for k, v in shown.items() if k not in ("location", "address")}}
    return value
