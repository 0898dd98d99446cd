"""A plan says how a query finds its rows: what is only counted, what is enumerated, and by which path."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.write.support import new_graph

from omnigraph.errors import ParameterError, QueryError, SnapshotNotFound
from omnigraph.graph import Graph
from omnigraph.read.plan.access import forced_access

SCHEMA = """
node Person { slug: String @key  age: I64? }
node City { name: String @key }
edge Knows: Person -> Person { since: I64 }
edge LivesIn: Person -> City
"""
PEOPLE = 12


@pytest.fixture(scope="module")
def graph() -> Graph:
    graph = new_graph(SCHEMA)
    names, cities = [f"p{i}" for i in range(PEOPLE)], ["berlin", "oslo"]
    records: list[dict[str, Any]] = [
        {"type": "Person", "data": {"slug": n, "age": i}} for i, n in enumerate(names)
    ]
    records += [{"type": "City", "data": {"name": name}} for name in cities]
    records += [{"edge": "LivesIn", "from": n, "to": cities[i % 2], "data": {}} for i, n in enumerate(names)]
    records += [
        {"edge": "Knows", "from": names[i], "to": names[(i * j + 1) % PEOPLE], "data": {"since": i}}
        for i in range(PEOPLE)
        for j in (1, 2, 5)
    ]
    graph.load(records, mode="append")
    return graph


def plan(graph: Graph, match: str, returns: str = "count($a) as n", rest: str = "") -> list[str]:
    """The lines of a plan, without the last ones that say what is returned."""
    return graph.explain(f"query q() {{ match {{ {match} }} return {{ {returns} }} {rest} }}").split("\n")


class TestCounting:
    """What nobody asks for is not enumerated."""

    def test_a_chain_collapses_into_one_number(self, graph: Graph) -> None:
        steps = plan(graph, "$a: Person $a knows $b  $b knows $c  $c knows $d")
        assert steps == [
            "Count $b: Person counting ($b <-Knows- $a) counting ($b -Knows-> $c counting ($c -Knows-> $d)): "
            "in memory, without enumerating",
            "Group count($a) as n",
        ]

    def test_a_star_collapses_into_its_centre(self, graph: Graph) -> None:
        [step, _] = plan(graph, "$a: Person $a knows $b  $a knows $c  $a livesIn $d")
        assert step == (
            "Count $a: Person counting ($a -Knows-> $b) counting ($a -Knows-> $c) counting ($a -LivesIn-> $d): "
            "in memory, without enumerating"
        )

    def test_by_group_only_the_group_is_enumerated(self, graph: Graph) -> None:
        steps = plan(graph, "$a: Person $a knows $b  $b livesIn $c", "$a.slug, count($b) as n")
        assert steps == [
            "Scan $a: Person counting ($a -Knows-> $b counting ($b -LivesIn-> $c)): in memory",
            "Group $a.slug as a.slug, count($b) as n",
        ]

    def test_independent_parts_are_multiplied(self, graph: Graph) -> None:
        assert plan(graph, "$a: Person $c: City")[:2] == [
            "Count $a: Person: in memory, without enumerating",
            "Count $c: City: in memory, without enumerating",
        ]

    def test_conditions_go_where_they_belong(self, graph: Graph) -> None:
        [step, _] = plan(graph, "$a: Person $a knows $b  $b.age > 5  not { $b livesIn $c }")
        assert "where $b.age > 5" in step
        assert "without (counting ($b -LivesIn-> $c))" in step
        [step, _] = plan(graph, "$a: Person optional { $a livesIn $c }")
        assert "optionally (counting ($a -LivesIn-> $c))" in step


class TestCycles:
    def test_a_triangle_is_an_intersection(self, graph: Graph) -> None:
        steps = plan(graph, "$a: Person $a knows $b  $b knows $c  $a knows $c", "$a.slug, $b.slug, $c.slug")
        assert [step.split()[0] for step in steps] == ["Scan", "Expand", "Intersect", "Return"]
        assert re.match(r"Intersect .* and .*: adjacency in memory$", steps[2])

    def test_a_triangle_that_is_only_counted_has_no_third_variable(self, graph: Graph) -> None:
        steps = plan(graph, "$a: Person $a knows $b  $b knows $c  $a knows $c")
        assert [step.split(" $")[0] for step in steps] == [
            "Scan",
            "Expand",
            "Count common",
            "Keep the count",
            *steps[4:],
        ]

    def test_a_way_back_is_checked(self, graph: Graph) -> None:
        steps = plan(graph, "$a: Person $a knows{2,3} $b  $b $e:knows $a", "$a.slug, $e.since")
        assert any(step.startswith("Check ") for step in steps)


class TestSubtraction:
    """What must not hold between two variables is counted as everything minus what does hold."""

    def test_two_that_must_differ(self, graph: Graph) -> None:
        steps = plan(graph, "$a: Person $a knows $c  $c knows $b  $a.slug != $b.slug")
        assert (steps[0], steps[2]) == ("plus", "minus")
        assert "without enumerating" in steps[1]
        assert not any("$b" in step for step in steps[3:-1])

    def test_two_that_must_not_be_connected(self, graph: Graph) -> None:
        steps = plan(graph, "$a: Person $a knows $c  $c knows $b  not { $a knows $b }")
        assert (steps[0], steps[2]) == ("plus", "minus")
        assert "without enumerating" in steps[1]

    def test_both_at_once_are_four_parts(self, graph: Graph) -> None:
        steps = plan(graph, "$a: Person $a knows $c  $c knows $b  not { $a knows $b }  $a.slug != $b.slug")
        assert [step for step in steps if not step.startswith(" ")][:-1] == ["plus", "minus", "minus", "plus"]

    def test_rows_cannot_be_subtracted(self, graph: Graph) -> None:
        steps = plan(graph, "$a: Person $a knows $c  $c knows $b  $a.slug != $b.slug", "$b.slug")
        assert "Filter $a is not $b" in steps
        steps = plan(graph, "$a: Person $a knows $c  $c knows $b  not { $a knows $b }", "$b.slug")
        assert "Check not $a -Knows-> $b: adjacency in memory" in steps
        steps = plan(graph, "$a: Person $a knows $b  $a.slug != $b.slug", "max($b.age) as n")
        assert "plus" not in steps


class TestTheRest:
    def test_a_chain_of_hops(self, graph: Graph) -> None:
        assert "Expand $a -Knows{1,3}-> $b: adjacency in memory" in plan(graph, "$a: Person $a knows{1,3} $b")

    def test_bound_edges_and_directions(self, graph: Graph) -> None:
        steps = plan(graph, "$c: City $p livesIn $c  $p $e:knows $q  $q <knows> $r", "$e.since, $r.slug, $c.name")
        shown = "\n".join(steps)
        assert "$e:Knows" in shown
        assert re.search(r"\$. <-Knows-> \$.", shown)

    def test_order_and_limit(self, graph: Graph) -> None:
        steps = plan(graph, "$a: Person", "$a.slug", "order { $a.age desc, $a.slug } limit 3 offset 1")
        assert steps[-2:] == ["Order $a.age desc, $a.slug", "Limit 3 offset 1"]

    def test_distinct(self, graph: Graph) -> None:
        text = "query q() { match { $a: Person } return distinct { $a.age } }"
        assert graph.explain(text).split("\n")[-1] == "Distinct $a.age as a.age"

    def test_what_runs_as_written(self, graph: Graph) -> None:
        steps = plan(graph, "$a: Person optional { $a livesIn $c }", "$a.slug, $c.name")
        assert steps[1:3] == ["Optional introducing $c", "  Expand $a -LivesIn-> $c: City"]

    def test_what_cannot_match(self, graph: Graph) -> None:
        """Edges between different types do not chain."""
        assert plan(graph, "$a: Person $a livesIn{2,3} $c")[0] == "Nothing can match"


class TestParameters:
    TEXT = "query q($s: String) { match { $a: Person { slug: $s } $a knows $b } return { $b.slug } }"

    def test_without_values_the_plan_is_that_of_the_language(self, graph: Graph) -> None:
        assert graph.explain(self.TEXT).split("\n") == [
            "Scan $a: Person where $a.slug = param $s",
            "Expand $a -Knows-> $b: Person",
            "Return $b.slug",
        ]

    def test_with_values_it_is_that_of_the_engine(self, graph: Graph) -> None:
        assert graph.explain(self.TEXT, {"s": "p1"}).split("\n")[:2] == [
            "Scan $a: Person where $a.slug = param $s: in memory",
            "Expand $a -Knows-> $b: adjacency in memory",
        ]

    def test_values_that_may_be_left_out_are_null(self, graph: Graph) -> None:
        text = "query q($n: I64?) { match { $a: Person  $a.age = $n } return { $a.slug } }"
        assert graph.explain(text).startswith("Scan $a: Person where $a.age = param $n: in memory")

    def test_to_run_it_they_are_needed(self, graph: Graph) -> None:
        with pytest.raises(ParameterError, match="parameter 's' is required"):
            graph.explain(self.TEXT, analyze=True)
        with pytest.raises(ParameterError):
            graph.explain(self.TEXT, {"s": 7})

    def test_by_index(self, graph: Graph) -> None:
        with forced_access("index"):
            steps = graph.explain(self.TEXT, {"s": "p1"}).split("\n")
        assert steps[:2] == [
            "Look up $a: Person where $a.slug = param $s: index",
            "Expand $a -Knows-> $b: index",
        ]


class TestAnalyze:
    def test_steps_with_rows_and_time(self, graph: Graph) -> None:
        text = 'query q() { match { $a: Person { slug: "p2" } $a knows $b } return { $b.slug } order { $b.slug } }'
        steps = graph.explain(text, analyze=True).split("\n")
        measured = [re.fullmatch(r"(.*?)  \[([\d,]+) rows, [\d.]+ ms\]", step) for step in steps[:-2]]
        assert [(found[1], found[2]) for found in measured if found] == [
            ('Scan $a: Person where $a.slug = "p2": in memory', "1"),
            ("Expand $a -Knows-> $b: adjacency in memory", "3"),
            ("Return $b.slug as b.slug", "3"),
        ]
        assert steps[-2] == "Order $b.slug"
        assert re.fullmatch(r"Total [\d.]+ ms, largest intermediate result [\d,]+ bytes", steps[-1])

    def test_every_part_of_a_difference(self, graph: Graph) -> None:
        text = "query q() { match { $a: Person $a knows $b  $a.slug != $b.slug } return { count($a) as n } }"
        steps = graph.explain(text, analyze=True).split("\n")
        assert [step for step in steps if step in ("plus", "minus")] == ["plus", "minus"]
        assert all("rows," in step for step in steps if step.startswith("  "))

    def test_by_index(self, graph: Graph) -> None:
        with forced_access("index"):
            shown = graph.explain(TestParameters.TEXT, {"s": "p1"}, analyze=True)
        assert re.search(r"Look up .*: index  \[1 rows, ", shown)

    def test_without_it_nothing_runs(self, graph: Graph) -> None:
        """Explaining this would take forever if it ran."""
        endless = " ".join(f"$a{i}: Person" for i in range(12))
        conditions = " ".join(f"$a{i}.age != $a{i + 1}.age" for i in range(11))
        text = f"query q() {{ match {{ {endless} {conditions} }} return {{ count($a0) as n }} }}"
        assert graph.explain(text).count("Scan $a") == 12


class TestWhatIsExplained:
    def test_a_mutation(self, graph: Graph) -> None:
        text = "query m($s: String) { insert Person { slug: $s } }"
        assert graph.explain(text) == "Insert node Person { slug: param $s }"
        assert graph.explain(text, {"s": "x"}) == graph.explain(text)

    def test_one_of_several(self, graph: Graph) -> None:
        text = (
            "query one() { match { $a: Person } return { $a.slug } }\n"
            "query two() { match { $c: City } return { $c.name } }"
        )
        assert graph.explain(text, name="two").startswith("Scan $c: City")
        with pytest.raises(QueryError):
            graph.explain(text, name="three")

    def test_a_snapshot(self, graph: Graph) -> None:
        text = "query q() { match { $a: Person } return { $a.slug } }"
        version = graph.snapshot().manifest_version
        assert "[12 rows" in graph.explain(text, at=version, analyze=True)
        assert "[0 rows" in graph.explain(text, at=1, analyze=True)
        with pytest.raises(SnapshotNotFound):
            graph.explain(text, at=version + 1)


class TestJoins:
    """Variables that no edge connects are joined by their values."""

    def test_pairs_are_found_by_value(self, graph: Graph) -> None:
        steps = plan(graph, "$a: Person  $b: Person  $a.age = $b.age", "$a.slug, $b.slug")
        assert steps[:-1] == [
            "Scan $a: Person: in memory",
            "Hash $a.age: values in memory",
            "Join $a.age = $b.age: values in memory",
            "Keep $a, $b",
        ]

    def test_several_equalities_are_one_value(self, graph: Graph) -> None:
        steps = plan(graph, "$a: Person  $b: Person  $a.age = $b.age  $b.slug = $a.slug", "$a.slug, $b.slug")
        assert steps[1:3] == [
            "Hash $a.age and $a.slug: values in memory",
            "Join $a.age = $b.age and $a.slug = $b.slug: values in memory",
        ]

    def test_what_is_counted_is_not_enumerated(self, graph: Graph) -> None:
        [step, _] = plan(graph, "$a: Person  $b: Person  $a.age = $b.age")
        assert step == (
            "Count values of $a.age = $b.age counting ($a.age) counting ($b.age): in memory, without enumerating"
        )

    def test_a_block_with_an_equality_is_a_subtree(self, graph: Graph) -> None:
        [step, _] = plan(graph, "$a: Person  not { $b: City  $b.name = $a.slug }")
        assert step.startswith("Count $a: Person without (counting ($a.slug counting ($b.name)))")

    def test_where_an_edge_connects_the_variables_it_is_followed(self, graph: Graph) -> None:
        steps = plan(graph, "$a: Person  $a knows $b  $a.age = $b.age", "$a.slug, $b.slug")
        assert "Filter $a.age = $b.age" in steps
