"""A new function is one row of the function table and one row of the tests: everything else follows."""

from __future__ import annotations

import uuid

import pytest
from docs.generate import functions_page
from tests.read.engine import reference_answer
from tests.read.functions import test_duckdb
from tests.read.functions.rows import KNOWN, Known

import omnigraph
from omnigraph.errors import QueryError
from omnigraph.lang.query.compile import compile_read
from omnigraph.lang.query.explain import explain_ir
from omnigraph.lang.query.format import format_queries
from omnigraph.lang.query.functions.signature import TEXT, Function, Kind, Parameter
from omnigraph.lang.query.functions.table import FUNCTIONS, ROWS

ROW = Function(
    "mirrored",
    "text",
    (Parameter("text", Kind.TEXT),),
    TEXT,
    "the text from its end to its begin",
    ('mirrored("abc")', '"cba"'),
    lambda kernels, text: kernels.pc.utf8_reverse(text),
)
TEST_ROW = Known(lambda text: text[::-1], "reverse({0})")
QUERY = """query q() {
  match { $p: Person  mirrored($p.name) != "x" }
  return { mirrored($p.name), mirrored(lower($p.name)) + "!" as m }
  order { m }
}
"""


def test_one_row_and_one_test_row_are_all_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = "node Person { name: String @key  full: String? }"
    graph = omnigraph.init(f"memory://{uuid.uuid4().hex}/g", schema)
    graph.load([{"type": "Person", "data": {"name": name}} for name in ("Ada", "Züri")], mode="append")
    with pytest.raises(QueryError, match="unknown function `mirrored`"):
        graph.query(QUERY)

    for table in (FUNCTIONS, ROWS):
        monkeypatch.setitem(table, ROW.name, ROW)
    monkeypatch.setitem(KNOWN, ROW.name, TEST_ROW)

    text = QUERY.replace("query q", "query again")
    expected = [{"mirrored($p.name)": "adA", "m": "ada!"}, {"mirrored($p.name)": "irüZ", "m": "irüz!"}]
    assert graph.query(text).rows == reference_answer(graph, text, {}).dictionaries == expected
    assert format_queries(format_queries(text)) == format_queries(text)
    assert "mirrored(lower($p.name))" in explain_ir(compile_read(text, graph.catalog).ir)
    assert "| `mirrored(text: String)` | the text from its end to its begin |" in functions_page()
    assert "mirrored" in test_duckdb.functions_by_result()["text"]
    graph.mutate('query full() { update Person set { full: mirrored(name) } where mirrored(name) = "adA" }')
    assert graph.query("query f() { match { $p: Person } return { $p.full } order { $p.name } }")["p.full"] == [
        "adA",
        None,
    ]
    mistake = graph.check(text.replace("mirrored($p.name) !=", "mirrored(1) !=")).results[0].error
    assert mistake is not None
    assert "write `mirrored(text: String)`" in str(mistake)
