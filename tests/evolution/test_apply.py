"""Changing the schema of a graph, one kind of change at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.evolution.cases import ADA, CASES, PEOPLE, REFUSED, Case, Record, Rows, node, person

import omnigraph
from omnigraph import Graph
from omnigraph.errors import (
    ConstraintViolation,
    InvalidArgument,
    MigrationError,
    OmniError,
    PreconditionFailed,
    SchemaError,
)
from omnigraph.read.result.cells import json_value


def named(cases: list[Case]) -> list[Any]:
    return [pytest.param(case, id=case.name) for case in cases]


@pytest.fixture(params=["main", "branch"])
def branch(request: pytest.FixtureRequest) -> str:
    return "main" if request.param == "main" else "review/1"


def begun(root: Path, case: Case, branch: str, *rows: Record) -> Graph:
    """A graph before the change, seen from the branch that it is made on."""
    graph = omnigraph.init(root / "g.omni", case.before)
    if branch != "main":
        graph.create_branch(branch)
    graph = graph.branch(branch)
    if rows:
        graph.load(list(rows), mode="append")
    return graph


def content(graph: Graph, at: str | None = None) -> Rows:
    """All entities by type, in the order of their ids, as JSON."""
    state = graph.snapshot(at=at)
    found: Rows = {}
    for key, pin in state.tables.items():
        entity = state.entity(key)
        rows = graph._repository.tables.scan(pin.ref, list(entity.columns), whole_blobs=True).read_all()
        names = [name for name in entity.columns if name not in ("id", "src", "dst")]
        listed = rows.sort_by("id").to_pylist()
        found[entity.name] = [{name: json_value(row[name]) for name in names} for row in listed]
    return found


def ordered(rows: Rows) -> Rows:
    return {name: [dict(sorted(row.items())) for row in found] for name, found in sorted(rows.items())}


def pins(graph: Graph) -> dict[str, tuple[str, int]]:
    return {key: (pin.location, pin.table_version) for key, pin in graph.snapshot().tables.items()}


@pytest.mark.parametrize("case", named(CASES))
def test_rows_follow_the_schema(case: Case, branch: str, tmp_path: Path) -> None:
    graph = begun(tmp_path, case, branch, *case.rows)
    before, old, was = graph.snapshot().graph_commit_id, content(graph), pins(graph)
    plan = graph.plan_schema(case.after, fill=case.fill)
    assert [str(step) for step in plan.steps.steps] == case.steps
    assert pins(graph) == was, "a plan changes nothing"
    done = graph.apply_schema(case.after, fill=case.fill, actor="ada")
    assert done.plan == plan
    assert done.commit is not None
    assert (done.commit.kind, done.commit.actor_id, done.commit.branch) == ("schema_apply", "ada", branch)
    found = content(graph)
    assert ordered({name: found[name] for name in case.result}) == ordered(case.result)
    assert graph.schema == case.after
    assert content(graph, before) == old, "older states keep their schema"
    moved = {key for key, pin in pins(graph).items() if pin not in was.values() and pin[1] > 1}
    assert moved == case.moved
    if branch != "main":
        assert graph.branch("main").schema == case.before, "other branches keep theirs"


@pytest.mark.parametrize("case", named(CASES))
def test_a_graph_without_rows_follows_at_once(case: Case, branch: str, tmp_path: Path) -> None:
    graph = begun(tmp_path, case, branch)
    graph.apply_schema(case.after, fill=case.fill)
    assert {name: [] for name in case.result}.items() <= content(graph).items()
    assert graph.plan_schema(case.after).steps.steps == ()
    assert graph.apply_schema(case.after).commit is None, "a schema that is accepted already is no change"


@pytest.mark.parametrize("case", named([case for case in CASES if case.broken]))
def test_rows_that_break_a_new_rule_are_listed(case: Case, branch: str, tmp_path: Path) -> None:
    graph = begun(tmp_path, case, branch, *case.rows, *case.broken)
    before, was = graph.snapshot(), files(tmp_path)
    with pytest.raises(ConstraintViolation) as caught:
        graph.apply_schema(case.after, fill=case.fill)
    assert case.message in str(caught.value)
    assert (caught.value.total, len(caught.value.violations)) == (1, 1)
    assert graph.snapshot() == before
    assert files(tmp_path) == was, "nothing was written"


@pytest.mark.parametrize(("after", "message"), REFUSED.values(), ids=REFUSED)
def test_what_no_row_could_follow_is_refused(after: str, message: str, tmp_path: Path) -> None:
    graph = begun(tmp_path, Case("", after, (), {}), "main", *CASES[0].rows)
    was = files(tmp_path)
    plan = graph.plan_schema(after)
    assert not plan.supported
    with pytest.raises(MigrationError) as caught:
        graph.apply_schema(after)
    assert message in str(caught.value)
    assert files(tmp_path) == was


def files(root: Path) -> set[str]:
    """All files but those of locks and hints."""
    every = (path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())
    return {path for path in every if not path.split("/", 1)[-1].startswith(("__locks", "_refs/heads"))}


MAIL = person("name: String @key  age: I32?  city: String?  born: Date?  mail: String")
BAD_REQUESTS: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "a text that is no schema": ({"schema": "node"}, SchemaError, "expected"),
    "no text at all": ({"schema": 7}, InvalidArgument, "schema"),
    "a fill of no property": ({"schema": MAIL, "fill": {"mail": 1}}, InvalidArgument, "Type.property"),
    "a fill of another type": ({"schema": MAIL, "fill": {"Person.mail": 1}}, OmniError, "mail"),
    "a fill from another type": ({"schema": MAIL, "fill": {"Person.mail": "$age"}}, InvalidArgument, "is I32"),
    "a fill from nothing": ({"schema": MAIL, "fill": {"Person.mail": "$nick"}}, InvalidArgument, "'nick'"),
    "a fill that nothing needs": (
        {"schema": MAIL, "fill": {"Person.mail": "x", "Person.age": 1}},
        InvalidArgument,
        "Person.age needs no fill",
    ),
    "a stale plan": (
        {"schema": MAIL.replace("mail: String", "mail: String?"), "if_commit": "01A"},
        PreconditionFailed,
        "01A",
    ),
}


@pytest.mark.parametrize(("request_", "error", "message"), BAD_REQUESTS.values(), ids=BAD_REQUESTS)
def test_bad_requests_write_nothing(
    request_: dict[str, Any], error: type[Exception], message: str, tmp_path: Path
) -> None:
    graph = begun(tmp_path, CASES[0], "main", node(**ADA))
    was = files(tmp_path)
    with pytest.raises(error, match=message):
        graph.apply_schema(**request_)
    assert files(tmp_path) == was


def test_a_renamed_type_is_renamed_back(tmp_path: Path) -> None:
    graph = begun(tmp_path, CASES[0], "main", node(**ADA))
    for old, new in (("Person", "Human"), ("Human", "Person"), ("Person", "Human")):
        graph.apply_schema(PEOPLE.replace("Person {", f'{new} @rename_from("{old}") {{'))
        assert content(graph) == {new: [dict(sorted(ADA.items()))]}


def test_a_type_takes_the_name_that_another_one_had(tmp_path: Path) -> None:
    rows, empty = "{ name: String @key  x: I32? }", "{ name: String @key }"
    graph = omnigraph.init(tmp_path / "g.omni", f"node A {rows} node B {empty}")
    graph.load([{"type": "A", "data": {"name": "a", "x": 1}}, {"type": "B", "data": {"name": "b"}}], mode="append")
    graph.apply_schema(f'node C @rename_from("A") {rows} node B {empty}')
    graph.apply_schema(f'node C {rows} node A @rename_from("B") {empty}')
    graph.apply_schema(f'node B @rename_from("C") {rows} node A {empty}')
    assert content(graph) == {"A": [{"name": "b"}], "B": [{"name": "a", "x": 1}]}


def test_a_type_that_is_dropped_and_added_again_is_empty(tmp_path: Path) -> None:
    graph = begun(tmp_path, CASES[0], "main", node(**ADA))
    with_rows = graph.snapshot().graph_commit_id
    graph.apply_schema("node City { name: String @key }")
    graph.apply_schema(PEOPLE)
    assert content(graph) == {"Person": []}
    assert content(graph, with_rows) == {"Person": [dict(sorted(ADA.items()))]}


def test_writes_go_on_after_a_change(tmp_path: Path) -> None:
    graph = begun(tmp_path, CASES[0], "main", node(**ADA))
    graph.ensure_indices()
    graph.apply_schema(
        person("name: String @key  years: I64? @rename_from(age)  mail: String") + " edge Knows: Person -> Person",
        fill={"Person.mail": "none"},
    )
    graph.load([{"type": "Person", "data": {"name": "Eve", "mail": "e@x", "years": 7}}], mode="merge")
    graph.mutate('query q() { update Person set { years: 37 } where name = "Ada" }')
    graph.mutate('query q() { insert Knows { from: "Ada", to: "Eve" } }')
    graph.ensure_indices()
    rows = graph.query("query q() { match { $p: Person $p knows $q } return { $p.years, $q.mail } }").rows
    assert rows == [{"p.years": 37, "q.mail": "e@x"}]
    graph.mutate('query q() { delete Person where name = "Ada" }')
    assert content(graph)["Person"] == [{"mail": "e@x", "name": "Eve", "years": 7}]


def test_another_handle_sees_the_new_schema_at_its_next_request(tmp_path: Path) -> None:
    graph = begun(tmp_path, CASES[0], "main", node(**ADA))
    other = omnigraph.open(graph.address)
    assert other.entity("Person", "Ada") is not None
    graph.apply_schema(PEOPLE.replace("Person {", 'Human @rename_from("Person") {'))
    assert other.entity("Human", "Ada") is not None
    other.mutate('query q() { update Human set { age: 40 } where name = "Ada" }')
    assert graph.entity("Human", "Ada", at=other.snapshot())["age"] == 40  # type: ignore[index]


def test_the_history_of_schemas_has_every_version(tmp_path: Path) -> None:
    graph = begun(tmp_path, CASES[0], "main", node(**ADA))
    graph.apply_schema(PEOPLE.replace("I32", "I64"))
    graph.apply_schema(PEOPLE.replace("I32", "I64") + " node City { name: String @key }")
    found = graph.schema_history()
    assert [[str(step) for step in one.steps] for one in found] == [
        ["add node City"],
        ["widen Person.age from I32? to I64?"],
        [],
    ]
    assert [one.source for one in found][-1] == PEOPLE
    assert graph.schema_source(at=found[-1].commit.graph_commit_id) == PEOPLE
