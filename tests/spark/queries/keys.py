"""Groups by numbers and lists, whose keys and order have to be the same wherever a query runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import omnigraph
from omnigraph.graph import Graph

SCHEMA = "node Shot { name: String @key  at: F64?  tags: [String]?  spots: [F64]? }"
QUERIES = (
    "match { $s: Shot } return { $s.at as at, count($s) as n } order { n desc }",
    "match { $s: Shot } return { $s.spots as spots, count($s) as n } order { n desc }",
    "match { $s: Shot } return { $s.tags as tags, $s.at as at, count($s) as n } order { n }",
    "match { $s: Shot } return distinct { $s.at as at, $s.tags as tags } order { at }",
    "match { $s: Shot } return { $s.tags as tags, count($s) as n } order { n } limit 2",
)


def shots() -> Iterator[dict[str, Any]]:
    """-0.0 comes first, so that a group that shows its first value shows that."""
    values = [
        (-0.0, ["b"], [-0.0, 1.0]),
        (0.0, ["a", "b"], [0.0, 1.0]),
        (0.0, ["a"], [2.0]),
        (1.5, [], []),
        (None, None, [-0.0]),
        (1.5, ["a", "b"], [0.0, 1.0]),
    ]
    for number, (at, tags, spots) in enumerate(values):
        given = {"at": at, "tags": tags, "spots": spots}
        yield {"type": "Shot", "data": {"name": f"s{number}", **{k: v for k, v in given.items() if v is not None}}}


def shot_graph(folder: Path) -> Graph:
    graph = omnigraph.init(folder / "shots.omni", SCHEMA)
    graph.load(list(shots()), mode="append")
    return graph


def answers(graph: Graph, **options: Any) -> list[str]:
    """The rows as text, in which -0.0 is not 0.0."""
    return [repr(graph.query(f"query q() {{ {text} }}", **options).rows) for text in QUERIES]
