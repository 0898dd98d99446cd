"""Groups are those a dictionary would make, however rows come in: in one frame or many, added or taken away."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.spark.queries.keys import answers, shot_graph
from tests.write.support import new_graph

from omnigraph.errors import CountOverflow, SumOverflow
from omnigraph.graph import Graph
from omnigraph.lang.query import ir
from omnigraph.lang.schema.catalog import NodeType, load_catalog
from omnigraph.read.data.rows import Rows
from omnigraph.read.limits import Limits
from omnigraph.read.run.expressions import Expressions
from omnigraph.read.run.frame import Frame
from omnigraph.read.run.groups.grouping import Grouping, distinct_rows
from omnigraph.read.values.columns import Column
from omnigraph.read.values.counting import MANY
from omnigraph.settings import READ_DEFAULTS, ReadSettings

CATALOG = load_catalog("node Thing { slug: String @key  a: I64?  b: String?  c: F64?  d: Bool? }")


class Table(Rows):
    """Rows in memory."""

    def __init__(self, entity: NodeType, columns: Mapping[str, pa.Array]) -> None:
        super().__init__(entity, len(next(iter(columns.values()))))
        self._columns = {name: Column(array) for name, array in columns.items()}

    def column(self, name: str) -> Column:
        return self._columns[name]


def table_of(values: Mapping[str, Sequence[Any]]) -> Table:
    kinds = {"slug": pa.string(), "a": pa.int64(), "b": pa.string(), "c": pa.float64(), "d": pa.bool_()}
    arrays = {name: pa.array(values[name], kinds[name]) for name in values}
    arrays["id"] = arrays["slug"]
    return Table(CATALOG.nodes["Thing"], arrays)


def random_table(random: Random, rows: int) -> tuple[Table, dict[str, list[Any]]]:
    values: dict[str, list[Any]] = {
        "slug": random.sample([f"s{i}" for i in range(rows)], rows),
        "a": [random.choice((None, -1, 0, 2**53 + 1)) for _ in range(rows)],
        "b": [random.choice((None, "", "x", "ä")) for _ in range(rows)],
        "c": [random.choice((None, 0.0, -0.0, 1.5)) for _ in range(rows)],
        "d": [random.choice((None, True, False)) for _ in range(rows)],
    }
    return table_of(values), values


def grouping(keys: Sequence[ir.Expr], *aggregates: ir.Agg, settings: ReadSettings = READ_DEFAULTS) -> Grouping:
    limits = Limits("q")
    return Grouping(keys, aggregates, CATALOG, Expressions("q", {}, lambda: None), limits, settings)


def prop(name: str, variable: str = "t") -> ir.Prop:
    return ir.Prop(variable, name)


def frame_of(table: Table, positions: Sequence[int], weights: Sequence[int] | None = None) -> Frame:
    counted = None if weights is None else np.array(weights, dtype=np.int64)
    return Frame.of("t", table, np.array(positions, dtype=np.int32), counted)


def result(made: Grouping, keys: Sequence[ir.Expr]) -> dict[tuple[Any, ...], list[Any]]:
    """The groups by their keys. No two may have the same ones."""
    groups = made.finish()
    values = []
    for key in keys:
        assert isinstance(key, ir.Prop)
        values.append(
            groups.frame.rows[key.variable].column(key.property).take(groups.frame.positions[key.variable])
        )
    rows = [tuple(value.as_py() for value in row) for row in zip(*values, strict=True)] if keys else [()]
    found = dict(zip(rows, zip(*(one.to_pylist() for one in groups.aggregates), strict=True), strict=True))
    assert len(found) == len(rows)
    return {key: list(numbers) for key, numbers in found.items()}


COUNT = ir.Agg("count", ir.Var("t"), False)
AGGREGATES = (
    COUNT,
    ir.Agg("count", prop("a"), False),
    ir.Agg("count", prop("b"), True),
    ir.Agg("sum", prop("c"), False),
    ir.Agg("avg", prop("c"), False),
    ir.Agg("min", prop("a"), False),
    ir.Agg("max", prop("b"), False),
)


def expected(
    keys: Sequence[ir.Prop], values: Mapping[str, list[Any]], counted: Sequence[tuple[int, int]]
) -> dict[tuple[Any, ...], list[Any]]:
    """All aggregates by hand, from positions and how often each counts."""
    groups: dict[tuple[Any, ...], list[tuple[int, int]]] = defaultdict(list)
    for position, weight in counted:
        groups[tuple(values[key.property][position] for key in keys)].append((position, weight))

    def of(name: str, rows: Sequence[tuple[int, int]]) -> list[tuple[Any, int]]:
        return [(values[name][row], weight) for row, weight in rows if values[name][row] is not None]

    def aggregates(rows: Sequence[tuple[int, int]]) -> list[Any]:
        a, b, c = (of(name, rows) for name in "abc")
        total, often = sum(value * weight for value, weight in c), sum(weight for _, weight in c)
        return [
            sum(weight for _, weight in rows),
            sum(weight for _, weight in a),
            len({value for value, _ in b}),
            total if c else None,
            total / often if c else None,
            min((value for value, _ in a), default=None),
            max((value for value, _ in b), default=None, key=lambda value: value.encode()),
        ]

    return {key: aggregates(rows) for key, rows in groups.items()}


KEYS: Sequence[tuple[str, ...]] = (
    ("a",),
    ("b",),
    ("c",),
    ("d",),
    ("slug",),
    ("a", "b"),
    ("b", "c", "d"),
    ("slug", "a"),
)


@pytest.mark.parametrize("names", KEYS, ids=" ".join)
@pytest.mark.parametrize("weighted", [False, True], ids=["each once", "weighted"])
@pytest.mark.parametrize("chunks", [1, 2, 7])
def test_any_keys_in_any_number_of_frames(names: tuple[str, ...], weighted: bool, chunks: int) -> None:
    settings = ReadSettings(pending_groups=5, dense_groups=2) if chunks == 7 else READ_DEFAULTS
    random, keys = Random(f"{names} {weighted} {chunks}"), [prop(name) for name in names]
    table, values = random_table(random, 20)
    made, counted = grouping(keys, *AGGREGATES, settings=settings), list[tuple[int, int]]()
    for _ in range(chunks):
        positions = [random.randrange(20) for _ in range(random.randint(1, 40))]
        weights = [random.choice((1, 2, 2**40)) for _ in positions] if weighted else [1] * len(positions)
        counted += zip(positions, weights, strict=True)
        made.consume(frame_of(table, positions, weights if weighted else None))
    assert result(made, keys) == expected(keys, values, counted)


def test_every_entity_at_most_once() -> None:
    """Then nothing has to be grouped, as long as another frame does not bring them again."""
    table, values = random_table(Random(3), 30)
    keys = [prop("slug"), prop("b")]
    made = grouping(keys, *AGGREGATES)
    made.consume(Frame.of("t", table, table.everything))
    assert result(made, keys) == expected(keys, values, [(row, 1) for row in range(30)])
    made.consume(frame_of(table, [5, 3]))
    made.consume(frame_of(table, [5, 5]))
    counted = [(row, 1) for row in (*range(30), 5, 3, 5, 5)]
    assert result(made, keys) == expected(keys, values, counted)


def test_nulls_are_a_group_of_their_own() -> None:
    table = table_of({"slug": ["x", "y", "z"], "a": [None, None, 0], "b": [None, "", None]})
    keys = [prop("a"), prop("b")]
    made = grouping(keys, COUNT)
    made.consume(frame_of(table, [0, 1, 2, 0]))
    assert result(made, keys) == {(None, None): [2], (None, ""): [1], (0, None): [1]}


def test_a_variable_without_a_row_is_null() -> None:
    """As an optional block leaves it."""
    table = table_of({"slug": ["x", "y"], "a": [1, 2]})
    made = grouping([prop("a")], COUNT, ir.Agg("sum", prop("a"), False))
    made.consume(frame_of(table, [-1, 0, -1, 1, 0]))
    assert result(made, [prop("a")]) == {(None,): [0, None], (1,): [2, 2.0], (2,): [1, 2.0]}
    nobody = grouping([prop("a")], COUNT)
    nobody.consume(frame_of(table_of({"slug": [], "a": []}), [-1, -1]))
    assert result(nobody, [prop("a")]) == {(None,): [0]}


class TestTakingAway:
    def test_what_is_taken_away_is_gone(self) -> None:
        table = table_of({"slug": ["x", "y", "z"], "a": [1, 1, 2]})
        made = grouping([prop("a")], COUNT)
        made.consume(frame_of(table, [0, 1, 2, 2]))
        made.consume(frame_of(table, [0, 2, 2]), sign=-1)
        assert result(made, [prop("a")]) == {(1,): [1]}

    @settings(deadline=None)
    @given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 2**61)), min_size=1, max_size=8), st.data())
    def test_signs_add_up_exactly(self, added: list[tuple[int, int]], data: st.DataObject) -> None:
        """Also far beyond what a float can say."""
        table = table_of({"slug": list("vwxyz"), "a": [0, 0, 1, 1, 2]})
        made, left = grouping([prop("a")], COUNT), defaultdict[tuple[Any, ...], int](int)
        for position, weight in added:
            made.consume(frame_of(table, [position], [weight]))
            less = data.draw(st.integers(0, weight))
            made.consume(frame_of(table, [position], [less or 1]), sign=-1)
            left[(position // 2,)] += weight - (less or 1)
        if any(total >= MANY for total in left.values()):
            return
        assert result(made, [prop("a")]) == {key: [total] for key, total in left.items() if total}

    def test_one_group_stays_also_if_nothing_is_left_of_it(self) -> None:
        table = table_of({"slug": ["x"], "a": [1]})
        made = grouping([], COUNT)
        made.consume(frame_of(table, [0]))
        made.consume(frame_of(table, [0]), sign=-1)
        assert result(made, []) == {(): [0]}


class TestNothing:
    def test_without_keys_there_is_one_group(self) -> None:
        made = grouping([], COUNT, ir.Agg("sum", prop("a"), False), ir.Agg("min", prop("b"), False))
        groups = made.finish()
        assert [array.to_pylist() for array in groups.aggregates] == [[0], [None], [None]]

    def test_with_keys_there_is_none(self) -> None:
        made = grouping([prop("a")], COUNT)
        made.consume(frame_of(table_of({"slug": [], "a": []}), []))
        assert made.finish().frame.count == 0


class TestNumbering:
    """Rows are numbered by the combination of their codes."""

    @settings(deadline=None)
    @given(st.lists(st.tuples(*[st.integers(-1, 3)] * 3), max_size=30))
    def test_equal_rows_have_equal_numbers(self, rows: list[tuple[int, int, int]]) -> None:
        self.check(rows)

    def test_more_combinations_than_64_bits_have_room_for(self) -> None:
        random, large = Random(1), 2**31 - 1
        some = [tuple(random.choice((-1, 0, 1, large - 1, large)) for _ in range(5)) for _ in range(2_000)]
        self.check(some)

    def test_far_more_combinations_than_rows(self) -> None:
        random = Random(2)
        self.check([(random.randrange(10_000), random.randrange(10_000)) for _ in range(500)] * 2)

    def test_no_keys_and_no_rows(self) -> None:
        for codes, count in (([], 3), ([], 0), ([np.zeros(0, dtype=np.int64)], 0)):
            first, inverse = distinct_rows(codes, count)
            assert (len(first), inverse.tolist()) == (min(count, 1), [0] * count)

    def check(self, rows: Sequence[tuple[int, ...]]) -> None:
        if not rows:
            return
        codes = [np.array(column, dtype=np.int64) for column in zip(*rows, strict=True)]
        first, inverse = distinct_rows(codes, len(rows))
        assert [rows[row] for row in first.tolist()] == [rows[rows.index(rows[row])] for row in first.tolist()]
        assert [rows[first[number]] for number in inverse.tolist()] == list(rows)
        assert len(first) == len(set(rows))


SCHEMA = "node Person { slug: String @key  score: F64 }\nedge Knows: Person -> Person"
PEOPLE = 33


@pytest.fixture(scope="module")
def friends() -> Graph:
    """Thirty-three people who all know each other and themselves: every hop multiplies by 33, an odd number."""
    graph = new_graph(SCHEMA)
    names = [f"p{i}" for i in range(PEOPLE)]
    records: list[dict[str, Any]] = [{"type": "Person", "data": {"slug": name, "score": 1.0}} for name in names]
    records += [{"edge": "Knows", "from": a, "to": b, "data": {}} for a in names for b in names]
    graph.load(records, mode="append")
    return graph


def hops(number: int, start: str = "$a0: Person") -> str:
    return " ".join([start, *(f"$a{i} knows $a{i + 1}" for i in range(number))])


class TestHugeCounts:
    def ask(self, graph: Graph, match: str, returns: str, rest: str = "") -> list[dict[str, Any]]:
        return graph.query(f"query paths() {{ match {{ {match} }} return {{ {returns} }} {rest} }}").rows

    def test_counts_are_exact_where_floats_are_not(self, friends: Graph) -> None:
        for number in (10, 11):
            [row] = self.ask(friends, hops(number), "count($a0) as n")
            assert row["n"] == 33 ** (number + 1) != int(float(row["n"]))
        [row] = self.ask(friends, hops(11) + " $a0.slug != $a1.slug  not { $a3 knows $a4 }", "count($a0) as n")
        assert row["n"] == 0
        [row] = self.ask(friends, hops(11) + " $a0.slug != $a1.slug", "count($a0) as n")
        assert row["n"] == 33**11 * 32
        [row] = self.ask(friends, hops(12, '$a0: Person { slug: "p0" }'), "count($a0) as n")
        assert row["n"] == 33**12

    @pytest.mark.parametrize("number", [12, 13, 20, 26])
    @pytest.mark.parametrize("returns", ["count($a0) as n", "sum($a0.score) as n", "avg($a0.score) as n"])
    def test_beyond_it_there_is_an_error_and_no_wrong_number(
        self, friends: Graph, number: int, returns: str
    ) -> None:
        with pytest.raises(CountOverflow) as refused:
            self.ask(friends, hops(number), returns)
        assert refused.value.query == "paths"
        assert "counts more than 9,223,372,036,854,775,806 matches" in str(refused.value)
        assert refused.value.as_json() == {"error": str(refused.value), "query": "paths"}

    @pytest.mark.parametrize(
        "match",
        [
            "$a0: Person $b0: Person" + hops(6, "") + "".join(f" $b{i} knows $b{i + 1}" for i in range(6)),
            hops(13) + " $a0.slug != $a13.slug",
            hops(13) + " not { $a0 knows $a13 }",
            hops(13) + " $a0 knows $a2",
            hops(13) + " optional { $a0 knows $b  $b knows $c }",
        ],
        ids=["product", "unequal", "unconnected", "triangle", "optional"],
    )
    def test_whatever_the_way_to_count(self, friends: Graph, match: str) -> None:
        with pytest.raises(CountOverflow):
            self.ask(friends, match, "count($a0) as n")

    def test_by_group(self, friends: Graph) -> None:
        rows = self.ask(friends, hops(12), "$a0.slug, count($a1) as n")
        assert [row["n"] for row in rows] == [33**12] * PEOPLE
        with pytest.raises(CountOverflow):
            self.ask(friends, hops(13), "$a0.slug, count($a1) as n")

    def test_who_does_not_ask_for_the_number_is_not_bothered_with_it(self, friends: Graph) -> None:
        far = hops(40)
        assert self.ask(friends, far, "count(distinct $a0) as n") == [{"n": PEOPLE}]
        assert self.ask(friends, far, "min($a0.slug) as first, max($a0.score) as best") == [
            {"first": "p0", "best": 1.0}
        ]
        assert len(friends.query(f"query q() {{ match {{ {far} }} return distinct {{ $a0.slug }} }}")) == PEOPLE
        assert len(self.ask(friends, far, "$a0.slug", "limit 5")) == 5
        walk = " ".join(f"$b{i} knows $b{i + 1}" for i in range(30))
        nobody = f"$b0: Person not {{ {walk} }}"
        assert self.ask(friends, nobody, "count($b0) as n") == [{"n": 0}]


class TestIntegerSums:
    """Sums of integers are integers: exact, or refused where 64 bits cannot say them."""

    SCHEMA = (
        "node Account { owner: String @key  cents: I64?  units: U64?  few: I32? }\nedge Paid: Account -> Account"
    )

    def graph(self, *accounts: dict[str, Any]) -> Graph:
        graph = new_graph(self.SCHEMA)
        graph.load(
            [{"type": "Account", "data": {"owner": str(i), **one}} for i, one in enumerate(accounts)],
            mode="append",
        )
        return graph

    def sums(self, graph: Graph, argument: str, match: str = "$a: Account") -> list[Any]:
        result = graph.query(f"query total() {{ match {{ {match} }} return {{ sum({argument}) as s }} }}")
        return [row["s"] for row in result.rows]

    def test_the_types(self) -> None:
        graph = self.graph({"cents": 2**53 + 1, "units": 1, "few": 1}, {"cents": 2, "units": 2**64 - 2, "few": 2})
        returned = "sum($a.cents) as c, sum($a.units) as u, sum($a.few) as f"
        table = graph.query(f"query q() {{ match {{ $a: Account }} return {{ {returned} }} }}").table
        assert table.schema.types == [pa.int64(), pa.uint64(), pa.int64()]
        assert table.to_pylist() == [{"c": 2**53 + 3, "u": 2**64 - 1, "f": 3}]

    @pytest.mark.parametrize(
        ("column", "values"),
        [
            ("cents", [2**63 - 1, 1]),
            ("cents", [-(2**63), -1]),
            ("cents", [2**63 - 1] * 3),
            ("units", [2**64 - 1, 1]),
            ("units", [2**64 - 1] * 3),
        ],
    )
    def test_what_64_bits_cannot_say_is_refused(self, column: str, values: list[int]) -> None:
        graph = self.graph(*({column: value} for value in values))
        with pytest.raises(SumOverflow) as refused:
            self.sums(graph, f"$a.{column}")
        assert (refused.value.query, refused.value.expression) == ("total", f"sum($a.{column})")
        assert str(refused.value).startswith(f"query 'total': sum($a.{column}) is beyond what 64 bits can say")

    def test_what_cancels_out_is_not(self) -> None:
        graph = self.graph({"cents": 2**63 - 1}, {"cents": 2**63 - 1}, {"cents": -(2**63)}, {"cents": -5})
        assert self.sums(graph, "$a.cents") == [2**63 - 7]

    def test_everything_counts_as_often_as_it_matches(self) -> None:
        graph = self.graph({"cents": 2**61}, {"cents": -(2**61)}, {"cents": 7})
        graph.load([{"edge": "Paid", "from": "0", "to": to, "data": {}} for to in ("1", "2")], mode="append")
        pairs = "$a: Account  $a paid $b  $a paid $c"
        assert self.sums(graph, "$b.cents", pairs) == [2 * (7 - 2**61)]
        with pytest.raises(SumOverflow):
            self.sums(graph, "$a.cents", pairs)

    def test_a_parameter_is_added_too(self) -> None:
        graph = self.graph({}, {})
        for declared, fits in (("U64", True), ("I64", False)):
            text = f"query q($n: {declared}) {{ match {{ $a: Account }} return {{ sum($n) as s }} }}"
            if fits:
                assert graph.query(text, {"n": 2**63 - 1}).rows == [{"s": 2**64 - 2}]
            else:
                with pytest.raises(SumOverflow):
                    graph.query(text, {"n": 2**63 - 1})


def test_keys_have_one_zero_and_lists_break_ties_item_by_item(tmp_path: Path) -> None:
    by_number, by_list, by_both, distinct, first = answers(shot_graph(tmp_path))
    assert by_number == "[{'at': 0.0, 'n': 3}, {'at': 1.5, 'n': 2}, {'at': None, 'n': 1}]"
    assert by_list.startswith("[{'spots': [0.0, 1.0], 'n': 3}, {'spots': [], 'n': 1}, {'spots': [0.0], 'n': 1}, ")
    assert by_both.startswith("[{'tags': None, 'at': None, 'n': 1}, {'tags': [], 'at': 1.5, 'n': 1}, ")
    assert distinct.startswith("[{'at': None, 'tags': None}, {'at': 0.0, 'tags': ['a']}, ")
    assert first == "[{'tags': None, 'n': 1}, {'tags': [], 'n': 1}]"
