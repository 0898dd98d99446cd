"""What the tests of the schema language share."""

from __future__ import annotations

from omnigraph.errors import SchemaError
from omnigraph.lang.diagnostics import Diagnostics
from omnigraph.lang.schema.identity import SchemaIR, first_identities
from omnigraph.lang.schema.migration import MigrationPlan, plan_migration
from omnigraph.lang.schema.parser import parse_schema
from omnigraph.lang.schema.resolve import compile_schema
from omnigraph.lang.schema.shape import Shape
from omnigraph.lang.schema.syntax import Declaration
from omnigraph.lang.source import Source


def parsed(text: str) -> tuple[Declaration, ...]:
    """The declarations of a schema without syntax errors."""
    diagnostics = Diagnostics(Source(text))
    syntax, _ = parse_schema(diagnostics)
    diagnostics.raise_if_any(SchemaError)
    return syntax.declarations


def shape(text: str) -> Shape:
    """The shape of a schema that makes sense."""
    return compile_schema(text).shape


def ir(text: str) -> SchemaIR:
    """The schema as a new graph would accept it."""
    return first_identities(compile_schema(text))


def planned(old: str, new: str, *, hard: bool = False) -> MigrationPlan:
    """What it takes to get from one schema to the other."""
    return plan_migration(ir(old), compile_schema(new), allow_data_loss=hard)


def problems(text: str) -> list[str]:
    """Every problem of a schema, as `CODE line:column message`."""
    try:
        compile_schema(text)
    except SchemaError as error:
        return [f"{d.code} {d.line}:{d.column} {d.message}" for d in error.diagnostics]
    return []


def places(text: str) -> list[str]:
    """Every problem of a schema, as `CODE line:column`."""
    return [" ".join(problem.split()[:2]) for problem in problems(text)]
