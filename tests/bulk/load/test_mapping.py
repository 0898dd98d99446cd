"""Mapping files: what they say, what is wrong with them, and that all of it is known before anything is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.bulk.load.sources.description import Source
from omnigraph.bulk.load.sources.mapping import parse_typed, read_map
from omnigraph.errors import RequestError
from omnigraph.lang.schema.catalog import load_catalog

CATALOG = load_catalog(
    "node Person { name: String @key  age: I32? }  edge Knows: Person -> Person { since: I32? }"
)


def test_a_mapping_file(tmp_path: Path) -> None:
    path = tmp_path / "map.yaml"
    path.write_text(
        """
data: more.jsonl
nodes:
  Person: {data: [a.csv, s3://b/c.csv], columns: {name: NAME, age: 2015}, delimiter: ";", nulls: ["", NA]}
edges:
  Knows:
    data: knows/*.parquet
    from: a
    to: b
    columns: [since]
"""
    )
    found = read_map(path)
    assert found.data == (f"{tmp_path}/more.jsonl",)
    assert found.nodes == {
        "Person": Source(
            [f"{tmp_path}/a.csv", "s3://b/c.csv"],
            columns={"name": "NAME", "age": "2015"},
            delimiter=";",
            nulls=["", "NA"],
        )
    }
    assert found.edges == {"Knows": Source(f"{tmp_path}/knows/*.parquet", from_="a", to="b", columns=["since"])}
    found.check(CATALOG)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "it is empty"),
        ("nodes: {}", "it names nothing to load"),
        ("nodes:\n  Person: [", "map.yaml:2: it is not YAML"),
        ("node: {}", "map.yaml:1: the file has no 'node'; did you mean 'nodes'?"),
        ("nodes: [a]", "map.yaml:1: nodes is a mapping"),
        ("nodes:\n  Person: {columns: {}}", "map.yaml:2: nodes.Person does not say which files"),
        (
            "nodes:\n  Person: {data: a.csv, form: x}",
            "map.yaml:2: .*has no 'form'; did you mean 'format'?",
        ),
        ("nodes:\n  Person: a.csv\n  Person: b.csv", "map.yaml:3: nodes has 'Person' twice"),
        (
            "nodes:\n  Person: {data: a.csv, delimiter: ';', quote: ';'}",
            "nodes.Person: .*is the delimiter as well",
        ),
        ("nodes:\n  Person: {data: a.csv, delimiter: ab}", "map.yaml:2: nodes.Person: .*it is one character"),
        ("nodes:\n  Person: {data: {}}", "a path is a text"),
    ],
)
def test_what_is_wrong_with_a_mapping_file(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "map.yaml").write_text(text)
    with pytest.raises(RequestError, match=told.replace("?", "[?]").replace("\n", "")):
        read_map(tmp_path / "map.yaml")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("nodes:\n  Persn: a.csv", "map.yaml:2: there is no node type 'Persn'; did you mean"),
        ("nodes:\n  Person: {data: a.csv, columns: {nam: x}}", "map.yaml:2: .*'nam'"),
        ("nodes:\n  Person: {data: a.csv, columns: {age: x}}", "map.yaml:2: Person needs 'name', its key"),
        ("nodes:\n  Person: {data: a.csv, from: x}", "map.yaml:2: from_ and to are for edges"),
        ("edges:\n  Knows: {data: a.csv, columns: {since: x}}", "map.yaml:2: rows of edge Knows need the columns"),
    ],
)
def test_a_mapping_is_compared_with_the_schema_before_anything_is_read(
    tmp_path: Path, text: str, told: str
) -> None:
    (tmp_path / "map.yaml").write_text(text)
    with pytest.raises(RequestError, match=told):
        read_map(tmp_path / "map.yaml").check(CATALOG)


def test_a_type_on_the_command_line() -> None:
    assert parse_typed("Person=people.csv") == ("Person", Source("people.csv"))
    assert parse_typed("Knows=s3://b/k.csv:from=a,to=b") == ("Knows", Source("s3://b/k.csv", from_="a", to="b"))
    assert parse_typed("Knows=x:y.csv:from=a,to=b,since=s") == (
        "Knows",
        Source("x:y.csv", from_="a", to="b", columns={"since": "s"}),
    )
    assert parse_typed("Person=s3://b/day=1/x.csv") == ("Person", Source("s3://b/day=1/x.csv"))
    for entry in ("Person", "=x", "Person=", "Knows=x.csv:from=", "Knows=x.csv:from=a,from=b"):
        with pytest.raises(RequestError):
            parse_typed(entry)
