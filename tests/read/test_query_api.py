"""`Graph.query`: which state of the graph is read, and how much of it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.write.support import new_graph

import omnigraph
from omnigraph.errors import (
    BranchNotFound,
    CountOverflow,
    InvalidArgument,
    ParameterError,
    QueryError,
    QueryStopped,
    SnapshotNotFound,
)
from omnigraph.graph import Graph
from omnigraph.lang.query.compile import compile_read
from omnigraph.read.limits import Limits
from omnigraph.settings import ReadSettings, Settings

SCHEMA = """
node Person { slug: String @key  age: I64? }
edge Knows: Person -> Person
"""
NAMES = "query names() { match { $p: Person } return { $p.slug } order { $p.slug } }"


def add(graph: Graph, name: str, branch: str | None = None) -> str:
    """Another person; the commit that made them."""
    graph.mutate("query add($n: String) { insert Person { slug: $n } }", {"n": name}, branch=branch)
    commit = graph.snapshot(branch).commit
    assert commit is not None
    return commit.graph_commit_id


def names(graph: Graph, **where: Any) -> str:
    return " ".join(row["p.slug"] for row in graph.query(NAMES, **where))


@pytest.fixture
def graph() -> Graph:
    return new_graph(SCHEMA)


class TestTimeTravel:
    def test_every_state_can_be_read_again(self, graph: Graph) -> None:
        states: list[tuple[int, str, str]] = []
        for name in ("ada", "grace", "lin", "mary"):
            commit = add(graph, name)
            states.append((graph.snapshot().manifest_version, commit, names(graph)))
        assert states[-1][2] == "ada grace lin mary"
        for opened in (graph, omnigraph.open(graph.address, read_only=True)):
            for version, commit, expected in states:
                assert names(opened, at=version) == expected
                assert names(opened, at=commit) == expected

    def test_deleted_and_changed_rows_are_as_they_were(self, graph: Graph) -> None:
        add(graph, "ada")
        before = add(graph, "grace")
        graph.mutate('query m() { update Person set { age: 36 } where slug = "ada" }')
        graph.mutate('query m() { delete Person where slug = "grace" }')
        ages = "query q() { match { $p: Person } return { $p.slug, $p.age } order { $p.slug } }"
        assert graph.query(ages).rows == [{"p.slug": "ada", "p.age": 36}]
        assert graph.query(ages, at=before).rows == [
            {"p.slug": "ada", "p.age": None},
            {"p.slug": "grace", "p.age": None},
        ]

    def test_the_state_before_there_was_anything(self, graph: Graph) -> None:
        add(graph, "ada")
        assert names(graph, at=1) == ""

    def test_a_result_says_what_was_read(self, graph: Graph) -> None:
        first, second = add(graph, "ada"), add(graph, "grace")
        newest, older = graph.query(NAMES), graph.query(NAMES, at=first)
        assert (newest.graph_commit_id, newest.target.as_json()) == (second, {"branch": "main"})
        assert (older.graph_commit_id, older.target.as_json()) == (first, {"snapshot": first})
        assert (newest.query_name, str(newest.target), str(older.target)) == (
            "names",
            "branch main",
            f"snapshot {first}",
        )

    @pytest.mark.parametrize("snapshot", [0, -1, 99, "01ARZ3NDEKTSV4RRFFQ69G5FAV", "", "no such commit", "main"])
    def test_a_state_that_never_was(self, graph: Graph, snapshot: str | int) -> None:
        add(graph, "ada")
        with pytest.raises(SnapshotNotFound):
            graph.query(NAMES, at=snapshot)


class TestBranches:
    def test_a_branch_and_its_parent(self, graph: Graph) -> None:
        add(graph, "ada")
        graph.create_branch("dev")
        add(graph, "grace", "dev")
        add(graph, "lin")
        assert names(graph) == "ada lin"
        assert names(graph, branch="dev") == "ada grace"
        assert names(graph.branch("dev")) == "ada grace"
        assert graph.query(NAMES, branch="dev").target.as_json() == {"branch": "dev"}
        with pytest.raises(BranchNotFound):
            graph.query(NAMES, branch="deb")

    def test_versions_belong_to_a_branch_and_commits_to_all(self, graph: Graph) -> None:
        add(graph, "ada")
        graph.create_branch("dev")
        on_dev, version = add(graph, "grace", "dev"), graph.snapshot("dev").manifest_version
        on_main = add(graph, "lin")
        assert graph.snapshot().manifest_version == version
        assert names(graph, branch="dev", at=version) == "ada grace"
        assert names(graph, branch="main", at=version) == "ada lin"
        assert names(graph, at=on_dev) == "ada grace"
        assert names(graph.branch("dev"), at=on_main) == "ada lin"

    def test_a_commit_is_not_given_together_with_a_branch(self, graph: Graph) -> None:
        """Which of the two decides would be a guess, if the commit is on another branch."""
        add(graph, "ada")
        graph.create_branch("dev")
        on_dev = add(graph, "grace", "dev")
        for branch in ("main", "dev"):
            with pytest.raises(InvalidArgument, match=f"is a state by itself; leave out branch '{branch}'"):
                names(graph, branch=branch, at=on_dev)

    def test_a_snapshot_that_was_taken_earlier(self, graph: Graph) -> None:
        add(graph, "ada")
        before = graph.snapshot()
        add(graph, "grace")
        assert (names(graph, at=before), names(graph)) == ("ada", "ada grace")
        assert graph.query(NAMES, at=before).target.as_json() == {"snapshot": before.graph_commit_id}
        with pytest.raises(InvalidArgument, match="a snapshot is of one branch"):
            names(graph, branch="main", at=before)
        other = omnigraph.init("memory://elsewhere/g", graph.schema)
        with pytest.raises(InvalidArgument, match="it is a snapshot of"):
            names(other, at=before)


class TestRefusals:
    def test_a_mutation_is_no_query(self, graph: Graph) -> None:
        with pytest.raises(QueryError):
            graph.query('query m() { insert Person { slug: "ada" } }')

    def test_values_are_checked_before_anything_is_read(self, graph: Graph) -> None:
        with pytest.raises(ParameterError) as refused:
            graph.query("query q($n: I64) { match { $p: Person { age: $n } } return { $p.slug } }", {"n": "much"})
        assert set(refused.value.problems) == {"n"}

    def test_one_of_several_queries_has_to_be_named(self, graph: Graph) -> None:
        add(graph, "ada")
        several = NAMES + "\nquery count() { match { $p: Person } return { count($p) as n } }"
        assert graph.query(several, name="count").rows == [{"n": 1}]
        with pytest.raises(QueryError):
            graph.query(several)

    def test_errors_of_stopped_queries_are_public(self) -> None:
        assert issubclass(omnigraph.CountOverflow, omnigraph.QueryStopped)
        assert (omnigraph.CountOverflow, omnigraph.QueryStopped) == (CountOverflow, QueryStopped)


PEOPLE = 40


@pytest.fixture(scope="module")
def crowd() -> Graph:
    """Everybody knows every second one."""
    graph = new_graph(SCHEMA)
    people = [f"p{i:02}" for i in range(PEOPLE)]
    records: list[dict[str, Any]] = [
        {"type": "Person", "data": {"slug": name, "age": number % 7}} for number, name in enumerate(people)
    ]
    records += [{"edge": "Knows", "from": a, "to": b, "data": {}} for a in people for b in people[::2]]
    graph.load(records, mode="append")
    return graph


def in_pieces(graph: Graph, rows: int) -> Graph:
    """The same graph, with pieces of so many rows."""
    return Graph(graph._repository, settings=Settings(read=ReadSettings(piece_rows=rows)))


class TestPieces:
    """Large intermediate results are worked on piece by piece."""

    TEXTS = (
        "match { $a: Person $a knows $b  $b knows $c } return { $a.slug, $b.slug, $c.slug }",
        "match { $a: Person $a knows $b  $b knows $c  $a.age < $c.age } return { $a.slug, count($c) as n }",
        "match { $a: Person $a knows $b  $b knows $c  $a knows $c } return { $a.slug, $b.slug, $c.slug }",
        "match { $a: Person $a knows $b  optional { $b knows $c  $c.age > $a.age } } return { $b.slug, $c.slug }",
        "match { $a: Person $a knows{1,2} $b  not { $b knows $c  $c.age > $a.age } } return { $a.slug, $b.slug }",
        "match { $a: Person $b: Person $c: Person {age: 3} $a.age < $b.age } return { $a.age, sum($c.age) as n }",
    )

    @pytest.mark.parametrize("text", TEXTS)
    @pytest.mark.parametrize("piece", [1, 7, 1_000])
    def test_the_answer_does_not_depend_on_their_size(self, crowd: Graph, text: str, piece: int) -> None:
        table = crowd.query(f"query q() {{ {text} }}").to_arrow()
        everything = [(name, "ascending") for name in table.column_names]
        again = in_pieces(crowd, piece).query(f"query q() {{ {text} }}").to_arrow()
        assert again.sort_by(everything) == table.sort_by(everything)

    @pytest.mark.parametrize("rest", ["limit 5", "limit 3 offset 2"])
    def test_a_limit_without_an_order_stops_early(self, crowd: Graph, rest: str) -> None:
        compiled = compile_read(f"query q() {{ {self.TEXTS[0]} {rest} }}", crowd.catalog)
        table, trace = in_pieces(crowd, 50)._reader.run(compiled, None, crowd.snapshot(), Limits("q"))
        assert table.num_rows == int(rest.split()[1])
        [(_, made)] = trace.parts
        assert made[-1].rows <= 50 < PEOPLE * 20 * 20

    def test_a_limit_of_nothing(self, crowd: Graph) -> None:
        assert crowd.query(f"query q() {{ {self.TEXTS[0]} limit 0 }}").rows == []
        assert len(crowd.query(f"query q() {{ {self.TEXTS[0]} limit 5 offset 15998 }}")) == 2
