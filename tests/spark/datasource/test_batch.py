"""`df.write.format("omnigraph")`: a DataFrame into a graph, as one commit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

import omnigraph
from omnigraph.graph import Graph
from omnigraph.spark.datasource.source import register

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "node Person { name: String @key  age: I32? }  edge Knows: Person -> Person { since: I32? }"


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return omnigraph.init(tmp_path / "social.omni", SCHEMA)


def people(spark: SparkSession, *rows: tuple[str, int | None]) -> DataFrame:
    return spark.createDataFrame(list(rows), "name string, age int")


def ages(graph: Graph) -> dict[str, int | None]:
    found = graph.query("query q() { match { $p: Person } return { $p.name as name, $p.age as age } }")
    return {row["name"]: row["age"] for row in found.rows}


def test_save_modes_are_load_modes(spark: SparkSession, graph: Graph) -> None:
    register(spark)

    def save(frame: DataFrame, mode: str, **options: str) -> None:
        writer = frame.write.format("omnigraph").mode(mode).option("type", "Person")
        for name, value in options.items():
            writer = writer.option(name, value)
        writer.save(graph.address)

    save(people(spark, ("Ada", 36), ("Bo", None)), "append", actor="etl", message="nightly")
    save(people(spark, ("Bo", 25), ("Cy", 7)), "append", merge="true")
    assert ages(graph) == {"Ada": 36, "Bo": 25, "Cy": 7}
    save(people(spark, ("Di", 1)), "overwrite")
    assert ages(graph) == {"Di": 1}
    newest, _, first, _ = graph.commits()
    assert (first.kind, first.actor_id, first.message) == ("load", "etl", "nightly")
    assert newest.kind == "load"
    assert graph.jobs() == []


def test_a_write_that_breaks_a_rule_leaves_nothing(spark: SparkSession, graph: Graph) -> None:
    register(spark)
    people(spark, ("Ada", 36)).write.format("omnigraph").mode("append").option("type", "Person").save(
        graph.address
    )
    knows = spark.createDataFrame([("Ada", "Ada"), ("Ada", "Zoe")], "src string, dst string")
    before = graph.snapshot().manifest_version
    with pytest.raises(PySparkException, match="dst 'Zoe' not found in Person") as raised:
        knows.write.format("omnigraph").mode("append").option("edge", "Knows").save(graph.address)
    assert "Traceback" not in str(raised.value).split("Zoe")[0]
    assert graph.snapshot().manifest_version == before
    assert graph.jobs() == []


def test_rows_that_exist_can_be_left_alone_or_refused(spark: SparkSession, graph: Graph) -> None:
    """Spark's modes `error` and `ignore`, which it does not pass on to a source in Python, are an option."""
    register(spark)

    def save(name: str, exists: str) -> None:
        writer = people(spark, (name, 1)).write.format("omnigraph").mode("append")
        writer.options(type="Person", exists=exists).save(graph.address)

    save("Ada", "error")
    with pytest.raises(PySparkException, match="Person has rows already"):
        save("Bo", "error")
    save("Cy", "ignore")
    assert ages(graph) == {"Ada": 1}
    assert (len(graph.commits()), graph.jobs()) == (2, [])
    with pytest.raises(PySparkException, match="UNSUPPORTED_DATA_SOURCE_SAVE_MODE"):
        people(spark, ("Di", 1)).write.format("omnigraph").option("type", "Person").save(graph.address)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"type": "Persn"}, "did you mean `Person`"),
        ({"type": "Person", "colour": "red"}, "there is no option 'colour'"),
        ({}, "which type"),
        ({"edge": "Knows"}, "Knows has no property 'name'"),
        ({"type": "Person", "merge": "maybe"}, "the option 'merge' is true or false"),
    ],
)
def test_what_cannot_be_written_is_named(
    spark: SparkSession, graph: Graph, options: dict[str, str], reason: str
) -> None:
    register(spark)
    writer = people(spark, ("Ada", 36)).write.format("omnigraph").mode("append").options(**options)
    with pytest.raises(PySparkException, match=reason):
        writer.save(graph.address)
