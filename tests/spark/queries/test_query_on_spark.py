"""Asking a graph on Spark: the same result object, the same refusals, and what only Spark refuses."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.cli.command import omnigraph as run_command
from tests.read.agreement import close
from tests.spark.queries.keys import answers, shot_graph
from typer.testing import CliRunner

import omnigraph
from omnigraph.cli.main import app
from omnigraph.embed.mock import MockClient
from omnigraph.errors import (
    ComputationFailed,
    EmbeddingUnavailable,
    NotOnSpark,
    ParameterError,
    QueryCancelled,
    QueryTimeout,
    SumOverflow,
)
from omnigraph.graph import Graph
from omnigraph.lang.query.compile import compile_read
from omnigraph.read.limits import Cancellation
from omnigraph.spark.queries.execution import query_frame

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = """
node Person { name: String @key  age: I64?  bio: String?  face: Vector(2)?  vector: Vector(3)? @embed(bio) }
edge Knows: Person -> Person { since: Date? }
"""
NAMES = [f"p{number:02}" for number in range(40)]
FRIENDS = (
    'query q() { match { $a: Person { name: "p07" }  $a knows{1,2} $b } return { $b.name } order { $b.name } }'
)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    """Forty people in a row, each of whom knows the next."""
    created = omnigraph.init(str(tmp_path_factory.mktemp("asked") / "g.omni"), SCHEMA)
    made = omnigraph.open(created.address, embedder=MockClient())
    people = [
        {"type": "Person", "data": {"name": name, "age": number, "bio": f"red fox {name}"}}
        for number, name in enumerate(NAMES)
    ]
    knows = [{"edge": "Knows", "from": one, "to": other} for one, other in pairwise(NAMES)]
    made.load(people, mode="append")
    made.load(knows, mode="append")
    return made


def test_the_result_is_the_ordinary_one(graph: Graph, spark: SparkSession) -> None:
    embedded, found = graph.query(FRIENDS), graph.query(FRIENDS, engine="spark", spark=spark)
    assert found.rows == [{"b.name": "p08"}, {"b.name": "p09"}]
    assert found.table.equals(embedded.table)
    assert (found.query_name, found.target, found.graph_commit_id) == (
        embedded.query_name,
        embedded.target,
        embedded.graph_commit_id,
    )


def test_branches_and_snapshots_are_read(graph: Graph, spark: SparkSession) -> None:
    before = graph.snapshot().manifest_version
    graph.create_branch("side")
    change = 'query m() { insert Person { name: "new" } }'
    graph.mutate(change, branch="side")
    count = "query q() { match { $p: Person } return { count($p) as people } }"

    def people(**where: Any) -> int:
        counted: int = graph.query(count, engine="spark", spark=spark, **where).rows[0]["people"]
        return counted

    assert (people(), people(branch="side"), people(at=before)) == (40, 41, 40)


def test_sums_of_integers_are_exact_or_refused(graph: Graph, spark: SparkSession) -> None:
    graph.create_branch("rich")
    large = (
        'query m($a: I64, $b: I64) { insert Person { name: "x", age: $a }  insert Person { name: "y", age: $b } }'
    )
    graph.mutate(large, {"a": 2**53 + 1, "b": 2}, branch="rich")
    total = 'query total() { match { $p: Person  $p.name in ["x", "y"] } return { sum($p.age) as s } }'

    def on_spark() -> pa.Table:
        return graph.query(total, branch="rich", engine="spark", spark=spark).table

    assert on_spark().equals(graph.query(total, branch="rich").table)
    assert on_spark().to_pylist() == [{"s": 2**53 + 3}]
    compiled = compile_read(total, graph.catalog)
    frame = query_frame(spark, graph.snapshot("rich"), compiled, {})
    assert (frame.dtypes, frame.collect()[0]["s"]) == ([("s", "bigint")], 2**53 + 3)
    graph.mutate(large, {"a": 2**63 - 1, "b": 1}, branch="rich")
    with pytest.raises(SumOverflow, match=r"query 'total': sum\(\$p.age\) is beyond"):
        on_spark()
    with pytest.raises(Exception, match="is beyond what 64 bits can say"):
        query_frame(spark, graph.snapshot("rich"), compiled, {}).collect()


def test_a_frame_has_the_columns_of_the_query_even_if_names_repeat(graph: Graph, spark: SparkSession) -> None:
    text = "query q() { match { $a: Person  $a.age < 2 } return { $a.name as x, $a.age as x, $a } }"
    pinned = graph.snapshot()
    frame = query_frame(spark, pinned, compile_read(text, graph.catalog), {})
    assert frame.columns == ["x", "x", "a"]
    assert sorted(map(tuple, frame.collect())) == [("p00", 0, "p00"), ("p01", 1, "p01")]


def test_vectors_that_are_all_missing_come_back(graph: Graph, spark: SparkSession) -> None:
    """Arrow's own cast of such a column would end the process."""
    text = "query q() { match { $a: Person  $a.age < 3 } return { $a.face } }"
    found = graph.query(text, engine="spark", spark=spark).table
    assert found.equals(graph.query(text).table)


WRONG: Mapping[str, tuple[str, dict[str, Any]]] = {
    "limit": ("query q($n: I64) { match { $p: Person } return { $p.name } limit $n }", {"n": -1}),
    "edits": ('query q($n: I32) { match { $p: Person  fuzzy($p.bio, "x", $n) } return { $p.name } }', {"n": -1}),
    "edits inside": (
        'query q($n: I32) { match { $p: Person  not { $p knows $f  fuzzy($f.bio, "x", $n) } } return { $p } }',
        {"n": -1},
    ),
    "rrf": (
        'query q($n: I64) { match { $p: Person } return { $p.name, rrf(bm25($p.bio, "x"), bm25($p.bio, "y"), $n)'
        " as s } order { s } limit 3 }",
        {"n": 0},
    ),
    "missing": ("query q($n: I64) { match { $p: Person { age: $n } } return { $p.name } }", {}),
}


@pytest.mark.parametrize("case", WRONG)
def test_parameters_that_fit_nothing_are_refused_as_by_the_embedded_engine(
    case: str, graph: Graph, spark: SparkSession
) -> None:
    text, params = WRONG[case]
    with pytest.raises(ParameterError) as embedded:
        graph.query(text, params)
    with pytest.raises(ParameterError) as found:
        graph.query(text, params, engine="spark", spark=spark)
    assert found.value.problems == embedded.value.problems


def test_a_text_needs_an_embedding_client(graph: Graph, spark: SparkSession) -> None:
    text = 'query q() { match { $p: Person } return { $p.name } order { nearest($p.vector, "fox") } limit 3 }'
    assert graph.query(text, engine="spark", spark=spark).table.equals(graph.query(text).table)
    with pytest.raises(EmbeddingUnavailable, match="no embedding provider"):
        omnigraph.open(graph.address).query(text, engine="spark", spark=spark)


REFUSED: Mapping[str, tuple[str, dict[str, Any], str]] = {
    "many hops": ("query q() { match { $a: Person  $a knows{1,33} $b } return { $b } }", {}, "Knows.* 33 hops"),
    "many hops inside": (
        "query q() { match { $a: Person  not { $a knows{1,99} $b } } return { $a } }",
        {},
        "Knows.* 40 hops",
    ),
    "a large limit": (
        f"query q() {{ match {{ $a: Person }} return {{ $a }} limit {2**31} }}",
        {},
        "limit 2147483648",
    ),
    "a large offset": (
        f"query q() {{ match {{ $a: Person }} return {{ $a }} limit 1 offset {2**31} }}",
        {},
        "offset 2147483648",
    ),
    "memory": ("query q() { match { $a: Person } return { $a } }", {"memory_limit": 1}, "memory limit"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_spark_cannot_do_is_refused_by_name(case: str, graph: Graph, spark: SparkSession) -> None:
    text, allowed, said = REFUSED[case]
    with pytest.raises(NotOnSpark, match=said):
        graph.query(text, engine="spark", spark=spark, **allowed)


def test_a_graph_in_memory_is_refused(spark: SparkSession) -> None:
    graph = omnigraph.init(f"memory://{uuid.uuid4().hex}/g", SCHEMA)
    with pytest.raises(NotOnSpark, match="in memory"):
        graph.query(FRIENDS, engine="spark", spark=spark)


def test_a_query_can_be_cancelled_and_has_a_time(graph: Graph, spark: SparkSession) -> None:
    with pytest.raises(QueryTimeout, match="query 'q' was stopped"):
        graph.query(FRIENDS, engine="spark", spark=spark, timeout=0.001)
    cancelled = Cancellation()
    cancelled.cancel()
    with pytest.raises(QueryCancelled):
        graph.query(FRIENDS, engine="spark", spark=spark, cancellation=cancelled)
    assert len(graph.query(FRIENDS, engine="spark", spark=spark, timeout=600)) == 2


def test_the_command_asks_spark_too(graph: Graph, spark: SparkSession) -> None:
    """In this process, whose session is the active one."""
    assert spark.getActiveSession() is not None
    asked = ["query", "--store", graph.address, "-e", FRIENDS, "--json"]
    embedded, found = CliRunner().invoke(app, asked), CliRunner().invoke(app, [*asked, "--engine", "spark"])
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout) == json.loads(embedded.stdout)


def test_the_command_wants_spark_where_a_master_is_named(graph: Graph) -> None:
    ran = run_command(
        "query", "--store", graph.address, "-e", FRIENDS, "--engine", "local", "--master", "local[1]"
    )
    assert ran.code == 2
    assert "--master and --remote are for Spark; leave out --engine local" in ran.err


def test_keys_of_groups_are_the_same_and_so_is_the_order_of_ties(tmp_path: Path, spark: SparkSession) -> None:
    """-0.0 and 0.0 are one number, which is written 0.0; lists are ordered item by item."""
    graph = shot_graph(tmp_path)
    assert answers(graph, spark=spark) == answers(graph)


@pytest.mark.long
def test_numbers_at_the_ends_of_their_types(tmp_path: Path, spark: SparkSession) -> None:
    """The embedded engine and Spark give the same numbers there, or the same error."""
    schema = "node N { name: String @key  i: I64  u: U64  x: F64  y: F64 }  edge Near: N -> N"
    graph = omnigraph.init(str(tmp_path / "g.omni"), schema)
    rows = [(-(2**63), 2**64 - 1, 1.5e308, 1e-200), (2**63 - 1, 0, 1.5e308, 3e-200), (-7, 5, -1.5e308, 2e-200)]
    graph.load(
        [
            {"type": "N", "data": {"name": f"n{at}", "i": i, "u": u, "x": x, "y": y}}
            for at, (i, u, x, y) in enumerate(rows)
        ],
        mode="append",
    )
    graph.load([{"edge": "Near", "from": "n2", "to": "n0"}], mode="append")
    asked = [
        *(f"return {{ {one} as v }}" for one in ("avg($n.i)", "avg($n.u)", "median($n.x)", "sum($n.u) + 1")),
        *(f"return {{ {one} as v }}" for one in ("stddev($n.x * 0.5)", "stddev($n.y)", "stddev($n.x * 0.0)")),
        *(f"return {{ {one} as v }}" for one in ("round($n.x, -307)", "exp($n.u % 1000)", "max($n.i) + 1")),
        "return { $n.u as v } union all match { $n: N } return { $n.i as v }",
        "return { $n.u as v } union match { $n: N } return { $n.y as v }",
        "return { $n.u % 2 as k, sum($n.x) as v } having { k = 1 }",
        "return { $n as k, count(*) as v } having { k is not null  $n is not null }",
    ]
    texts = [f"query q() {{ match {{ $n: N }} {rest} order {{ v }} }}" for rest in asked]
    texts += [
        "query q() { match { $n near $m } return { $n.u + 1 as v, $n.i + $n.u as w } }",
        "query q() { match { $n near $m } return { $n.i + $m.i as v } }",
        "query q() { match { $n near $m  $n.u > 3 } return { sum($n.u * 2) as v } order { max($n.u + 1) } }",
        "query q() { match { $n: N { u: 0 }  optional { $n near $m } } return { $m.u + 1 as v, $m is null } }",
    ]
    for text in texts:
        found = [_outcome(graph, text), _outcome(graph, text, engine="spark", spark=spark)]
        assert close(*found), (text, found)


def _outcome(graph: Graph, text: str, **how: Any) -> object:
    try:
        return graph.query(text, **how).rows
    except (ComputationFailed, SumOverflow) as error:
        return type(error), error.args
