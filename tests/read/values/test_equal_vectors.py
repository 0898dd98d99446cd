"""Equal vectors are equally far, wherever they lie in a table: their order is that of their ids."""

from __future__ import annotations

import json

import pytest
from tests.write.support import new_graph

from omnigraph.embed.mock import MockClient

SCHEMA = """
node Doc { slug: String @key  text: String  meaning: Vector(16)? @embed(text)  shape: Vector(16) }
"""
QUERY = """
query q($q: String) {{
  match {{ $d: Doc }}
  return {{ $d.slug, nearest($d.{property}, $q) as far }}
  order {{ far }}
  limit 100
}}
"""


@pytest.mark.parametrize("vector", ["meaning", "shape"])
@pytest.mark.parametrize("count", [2, 5, 17, 63])
def test_ties_of_distances_are_ties(vector: str, count: int) -> None:
    graph = new_graph(SCHEMA, MockClient())
    shape = [0.1 * i * i - 0.7 for i in range(16)]
    for word in ("fox", "hen", "wolf", "duck"):
        documents = [{"slug": f"{i:02}", "text": word, "shape": shape} for i in range(count)]
        lines = [json.dumps({"type": "Doc", "data": document}) for document in documents]
        graph.load("\n".join(lines).encode(), mode="overwrite")
        for asked in ("red", "frog", "hen and fox"):
            rows = graph.query(QUERY.format(property=vector), {"q": asked}).rows
            assert len({row["far"] for row in rows}) == 1
            assert [row["d.slug"] for row in rows] == [f"{i:02}" for i in range(count)]
