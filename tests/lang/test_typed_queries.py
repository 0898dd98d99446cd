"""Every query that fits the schema compiles, and its plan uses no variable before it has a value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from tests.lang.typed_queries import SCHEMA, typed_reads
from tests.sampling import examples

from omnigraph.lang.query import ir
from omnigraph.lang.query.compile import compile_read
from omnigraph.lang.query.explain import explain_ir
from omnigraph.lang.query.format import format_queries
from omnigraph.lang.schema.catalog import load_catalog

CATALOG = load_catalog(SCHEMA)


def check_order(operations: Iterable[ir.Operation], known: set[str]) -> set[str]:
    """The variables that have a value behind the operations, each of which uses only those it has before it."""
    known = set(known)
    for operation in operations:
        match operation:
            case ir.NodeScan(variable, _, filters):
                assert variable not in known
                known.add(variable)
                check_order(filters, known)
            case ir.Expand():
                assert operation.source in known
                assert operation.target not in known
                known.add(operation.target)
                check_order(operation.target_filters, known)
                if operation.edge_variable is not None:
                    assert operation.edge_variable not in known
                    known.add(operation.edge_variable)
            case ir.Filter():
                assert set(_variables(operation.left)) | set(_variables(operation.right)) <= known
            case ir.Optionally(inner, introduces):
                inside = check_order(inner, known)
                assert {name for name in inside - known if "#" not in name} == {
                    name for name in introduces if "#" not in name
                }
                known |= set(introduces)
            case ir.AntiJoin(outer, inner):
                assert set(outer) <= known
                check_order(inner, known)
    return known


def _variables(expression: ir.Expr | None) -> Iterator[str]:
    match expression:
        case ir.Prop(variable) | ir.TextMatch(_, variable) | ir.Score(variable):
            yield variable
        case ir.Var(name):
            yield name


def check_plan(text: str) -> str:
    """Compile a query, check its plan, and return it as text."""
    plan = compile_read(text, CATALOG).ir
    for read in plan.reads if isinstance(plan, ir.UnionIR) else (plan,):
        known = check_order(read.pipeline, set())
        for column in read.columns:
            assert set(_variables(column.expression)) <= known
    return explain_ir(plan)


@settings(
    max_examples=examples(50, of=120),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(typed_reads())
def test_what_fits_compiles_and_formatting_does_not_change_its_plan(text: str) -> None:
    assert check_plan(text) == check_plan(format_queries(text))


@pytest.mark.parametrize(
    "clauses",
    [
        "$a: Pilot  optional { $a trusts $b }  $b trusts $c  optional { $c trusts $d }",
        "$a: Pilot  optional { $a trusts $b }  $b trusts $c  $c.hours = 3",
        "$a: Pilot  optional { $a trusts $b }  $b $w:trusts $c  optional { $w.since is null  $a trusts $d }",
        "$a: Base  $b trusts $c  optional { $a.code = $c.call  $d: Pilot }  $d trusts $b",
        "$a: Pilot  $c trusts $d  optional { $d trusts $z }  optional { $a trusts $b }  $b trusts $c",
        "$c trusts $d  optional { $d trusts $z }  $z trusts $y  optional { $y trusts $b }  $b trusts $c",
    ],
)
def test_an_optional_block_may_need_a_traversal_that_needs_another_optional_block(clauses: str) -> None:
    check_plan(f"query q() {{ match {{ {clauses} }} return {{ 1 as one }} }}")
