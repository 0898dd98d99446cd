"""What the tests of the query language share: a schema, and short ways to compile against it."""

from __future__ import annotations

from typing import Final

from omnigraph.errors import QueryError
from omnigraph.lang.query.compile import CompiledQuery, CompiledRead, compile_query, compile_read
from omnigraph.lang.query.explain import explain_ir
from omnigraph.lang.query.ir import QueryIR
from omnigraph.lang.schema.catalog import load_catalog

SCHEMA: Final = """
node Pilot {
  call: String @key
  hours: I32?  rating: F64?  born: Date?  seen: DateTime?  active: Bool?
  rank: enum(cadet, captain)?  tags: [String]?  photo: Blob?
}
node Base { code: String @key  size: I32? }
node Plane { reg: String @key  model: String  shape: Vector(2)?  meaning: Vector(3)? @embed(model, model="mini") }
edge Trusts: Pilot -> Pilot { since: Date? }
edge StationedAt: Pilot -> Base
edge Flies: Pilot -> Plane
"""
CATALOG: Final = load_catalog(SCHEMA)


def compiled(text: str, name: str | None = None) -> CompiledQuery:
    """A query of the test schema."""
    return compile_query(text, CATALOG, name)


def read(match: str, returned: str = "1", behind: str = "", params: str = "") -> CompiledRead:
    """A read with these clauses and columns."""
    text = f"query q({params}) {{ match {{ {match} }} return {{ {returned} }} {behind} }}"
    return compile_read(text, CATALOG)


def plan(match: str, returned: str = "1", behind: str = "", params: str = "") -> list[str]:
    """The lines of the plan of such a read."""
    return explain_ir(read(match, returned, behind, params).ir).splitlines()


def read_ir(match: str, returned: str = "1", behind: str = "", params: str = "") -> QueryIR:
    """The IR of such a read."""
    found = read(match, returned, behind, params).ir
    assert isinstance(found, QueryIR)
    return found


def problems(text: str, name: str | None = None) -> list[str]:
    """The codes and messages of a query that is refused, in order."""
    try:
        compiled(text, name)
    except QueryError as error:
        return [f"{d.code} {d.message}" for d in error.diagnostics]
    return []
