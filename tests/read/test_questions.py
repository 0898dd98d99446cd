"""The people of the documentation: every query of its pages runs, and gives the rows that SQL gives."""

from __future__ import annotations

import importlib
import re
import uuid
from pathlib import Path
from typing import Any, Final

import pytest

import omnigraph
from omnigraph.graph import Graph
from omnigraph.lang.query.compile import parse_query_file
from omnigraph.lang.query.format import format_queries

ROOT: Final = Path(__file__).parent.parent.parent
PEOPLE: Final = ROOT / "examples/people"
QUESTION: Final = re.compile(
    r"^## (\d+)\. (.*?)\n\n```cypher\n(.*?)```\n\n```sql\n(.*?)```\n\n```gq\n(.*?)```", re.DOTALL | re.MULTILINE
)
ASKED: Final = QUESTION.findall((ROOT / "docs/questions.md").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def graph() -> Graph:
    made = omnigraph.init(f"memory://{uuid.uuid4().hex}/g", (PEOPLE / "schema.pg").read_text(encoding="utf-8"))
    made.load((PEOPLE / "people.jsonl").read_bytes(), mode="append")
    return made


@pytest.fixture(scope="module")
def database(graph: Graph) -> Any:
    connection = importlib.import_module("duckdb").connect()
    for node in graph.catalog.nodes.values():
        _table(connection, graph, node.name, f"match {{ $x: {node.name} }} return {{ $x.* }}")
    for edge in graph.catalog.edges.values():
        spelled = edge.name[0].lower() + edge.name[1:]
        _table(connection, graph, edge.name, f"match {{ $a $x:{spelled} $b }} return {{ $x.* }}")
    return connection


def _table(connection: Any, graph: Graph, name: str, body: str) -> None:
    """One table per type: its rows are what `$x.*` returns, the ends of edges as `src` and `dst`."""
    rows = graph.query(f"query q() {{ {body} }}").to_arrow().flatten()
    named = [column.removeprefix("x.").replace("from", "src").replace("to", "dst") for column in rows.column_names]
    connection.register("given", rows.rename_columns(named))
    spelled = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    connection.execute(f"create table {spelled} as select * from given")


def test_there_are_twenty() -> None:
    assert [int(number) for number, *_ in ASKED] == list(range(1, 21))


@pytest.mark.parametrize(("sql", "ours"), [one[3:] for one in ASKED], ids=[one[1] for one in ASKED])
def test_sql_and_ours_agree(graph: Graph, database: Any, sql: str, ours: str) -> None:
    expected = database.execute(sql).fetchall()
    found = [tuple(row.values()) for row in graph.query(ours).rows]
    width = len(expected[0])
    assert expected
    if "order by" in sql:
        assert [row[:width] for row in found] == expected
    else:
        assert sorted(row[:width] for row in found) == sorted(expected)
    assert format_queries(ours)


GIVEN: Final[dict[str, dict[str, Any]]] = {
    "friends": {"name": "Ada", "k": 5},
    "recent": {"names": ["Ada"]},
    "found": {"words": "ada"},
    "hire": {"name": "Ida", "firm": "Bolt"},
    "raise": {"firm": "Acme"},
    "leave": {"name": "Ida"},
}
"""The parameters of the queries of docs/query-language.md."""


def test_every_query_of_the_guide_runs_on_the_people(graph: Graph) -> None:
    guide = (ROOT / "docs/query-language.md").read_text(encoding="utf-8")
    asked = 0
    for text in re.findall(r"```gq\n(.*?)```", guide, re.DOTALL):
        for query in parse_query_file(text).queries:
            name = query.name.text
            if query.is_mutation:
                assert graph.mutate(text, GIVEN.get(name), name=name).commit is not None
            else:
                assert graph.query(text, GIVEN.get(name), name=name).rows, name
            asked += 1
    assert asked > 10
