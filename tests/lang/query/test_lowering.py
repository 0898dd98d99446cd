"""From checked syntax to operations: what holds for every plan, and what single plans look like."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from tests.lang.query.generated import Generated, reads
from tests.lang.query.support import CATALOG, plan, read_ir
from tests.lang.query.walk import check_variables, operations
from tests.sampling import examples

from omnigraph.lang.query import ir
from omnigraph.lang.query.compile import compile_mutation, compile_read
from omnigraph.lang.values import F64, I64, U64, Scalar, ValueType


@settings(max_examples=examples(100, of=250), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(reads())
def test_plans_are_sound(query: Generated) -> None:
    """Variables have values before they are used, and nothing that was written gets lost."""
    lowered = compile_read(query.text, CATALOG).ir
    assert isinstance(lowered, ir.QueryIR)
    check_variables(lowered)
    everything = list(operations(lowered.pipeline))
    filters = [op for op in everything if isinstance(op, ir.Filter)]
    assert sum(isinstance(op, ir.Expand) for op in everything) == query.traversals
    assert len(filters) >= query.conditions


class TestTheCheckerItself:
    """A plan that is wrong is found out."""

    SCAN = ir.NodeScan("p", "Pilot")
    EXPAND = ir.Expand("p", "q", "Trusts", ir.Direction.OUT, "Pilot")
    USE = ir.Filter(ir.Prop("q", "hours"), ir.Op.IS_NULL)

    def query(self, *pipeline: ir.Operation, returned: str = "p") -> ir.QueryIR:
        return ir.QueryIR("q", {}, pipeline, (ir.Column("x", ir.Var(returned), I64),))

    @pytest.mark.parametrize(
        "pipeline",
        [
            (SCAN, EXPAND, USE),
            (SCAN, ir.Optionally((EXPAND, USE), ("q",)), USE),
            (SCAN, ir.AntiJoin(("p",), (EXPAND, USE))),
        ],
    )
    def test_sound_plans(self, pipeline: tuple[ir.Operation, ...]) -> None:
        check_variables(self.query(*pipeline))

    @pytest.mark.parametrize(
        "pipeline",
        [
            (EXPAND, SCAN),
            (SCAN, USE, EXPAND),
            (SCAN, SCAN),
            (SCAN, EXPAND, EXPAND),
            (SCAN, ir.AntiJoin(("p",), (EXPAND,)), USE),
            (SCAN, ir.AntiJoin(("q",), (EXPAND,))),
            (SCAN, ir.Optionally((EXPAND,), ()), USE),
            (SCAN, EXPAND, ir.AntiJoin(("p",), (ir.NodeScan("q", "Pilot"),))),
            (),
        ],
    )
    def test_unsound_plans(self, pipeline: tuple[ir.Operation, ...]) -> None:
        with pytest.raises(AssertionError):
            check_variables(self.query(*pipeline))


class TestNames:
    def test_hidden_variables_have_names_no_query_can_write(self) -> None:
        lowered = read_ir("$a: Pilot  $a trusts $_  $a trusts $b  $b trusts $a")
        targets = [op.target for op in operations(lowered.pipeline) if isinstance(op, ir.Expand)]
        assert targets == ["_#1", "b", "a#1"]

    def test_a_name_used_in_a_negation_and_then_outside_means_two_variables(self) -> None:
        assert plan("$p: Pilot  not { $p trusts $x  $x.hours > 3  not { $x trusts $p } }  $x: Base") == [
            "Scan $p: Pilot",
            "Scan $x: Base",
            "AntiJoin on $p",
            "  Expand $p -Trusts-> $x#2: Pilot",
            "  Filter $x#2.hours > 3",
            "  AntiJoin on $x#2, $p",
            "    Expand $x#2 -Trusts-> $p#1: Pilot",
            "    Filter $p#1.id = $p.id",
            "Return 1 as literal",
        ]

    def test_the_same_for_edge_variables(self) -> None:
        lowered = read_ir("$p: Pilot  not { $p $e:trusts $q  $e.since is null }  $p $e:flies $f")
        check_variables(lowered)
        bound = [op.edge_variable for op in operations(lowered.pipeline) if isinstance(op, ir.Expand)]
        assert bound == ["e", "e#1"]

    def test_optional_blocks_in_a_negation_take_part(self) -> None:
        lowered = read_ir("$p: Pilot  not { $p.hours > 1  optional { $p trusts $q  $q.hours > 2 } }  $q: Base")
        check_variables(lowered)
        assert [op.introduces for op in operations(lowered.pipeline) if isinstance(op, ir.Optionally)] == [
            ("q#1",)
        ]


class TestConstants:
    def test_values_are_typed(self) -> None:
        lowered = read_ir("$p: Pilot  $p.hours > 2.5", "7 as i, [1, 2.5] as l", "limit 3")
        condition = lowered.pipeline[1]
        assert isinstance(condition, ir.Filter)
        assert condition.right == ir.Constant(2.5, F64)
        assert [column.expression for column in lowered.columns] == [
            ir.Constant(7, I64),
            ir.Constant((1.0, 2.5), ValueType(Scalar.F64, is_list=True)),
        ]
        assert lowered.limit == ir.Constant(3, U64)

    def test_now_is_a_parameter_that_no_query_declares(self) -> None:
        lowered = read_ir("$p: Pilot  $p.seen < now()", "now() as t")
        assert lowered.columns[0].expression == ir.Param(ir.NOW)
        assert ir.NOW not in lowered.params

    def test_assigned_literals_have_the_type_of_the_property(self) -> None:
        text = 'query q() { insert Pilot { call: "a", hours: 3.0, rating: 4, tags: [] } }'
        [insert] = compile_mutation(text, CATALOG).ir.ops
        assert isinstance(insert, ir.InsertOp)
        values = {a.property: a.value for a in insert.assignments}
        assert values["hours"] == ir.Constant(3, ValueType(Scalar.I32, nullable=True))
        assert values["rating"] == ir.Constant(4.0, ValueType(Scalar.F64, nullable=True))
        assert values["tags"] == ir.Constant((), ValueType(Scalar.STRING, is_list=True, nullable=True))


class TestRankings:
    @pytest.mark.parametrize(
        ("order", "descending"),
        [
            ('bm25($p.model, "x")', True),
            ('bm25($p.model, "x") asc', True),
            ('nearest($p.shape, "x")', False),
            ('rrf(bm25($p.model, "x"), nearest($p.shape, "x"))', True),
            ("text", True),
            ("text asc", False),
            ("far", False),
            ("far desc", True),
            ("reg", False),
            ("reg desc", True),
        ],
    )
    def test_the_best_comes_first_unless_an_alias_is_told_otherwise(self, order: str, descending: bool) -> None:
        returned = '$p.reg as reg, bm25($p.model, "x") as text, nearest($p.shape, "x") as far'
        lowered = read_ir("$p: Plane", returned, f"order {{ {order} }} limit 3")
        assert [key.descending for key in lowered.order] == [descending]

    def test_embedded_vectors_are_compared_by_angle_and_know_their_model(self) -> None:
        lowered = read_ir("$p: Plane", 'nearest($p.meaning, "x") as m, nearest($p.shape, [1, 2]) as s', "limit 3")
        first, second = (column.expression for column in lowered.columns)
        assert isinstance(first, ir.Nearest)
        assert isinstance(second, ir.Nearest)
        assert (first.metric, first.model, first.dimension) == ("cosine", "mini", 3)
        assert (second.metric, second.model, second.dimension) == ("l2", None, 2)
