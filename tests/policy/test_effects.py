"""What a policy means for a graph that is used: older states, cascades, forks, merges, logs and pickles."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import omnigraph
from omnigraph import Graph
from omnigraph.errors import ActorRequired, PolicyDenied, PolicyInvalid

SCHEMA = """
node Person { name: String @key }
node Secret { name: String @key }
edge Knows: Person -> Person
"""
PEOPLE = b'{"type": "Person", "data": {"name": "ada"}}\n{"type": "Person", "data": {"name": "bob"}}\n'
ADD = "query add($n: String) { insert Person { name: $n } }"
NAMES = "query names() { match { $p: Person } return { $p.name as name } }"
SECRETS = "query secrets() { match { $s: Secret } return { $s.name as name } }"
UNCONNECTED = "query q() { match { $p: Person  not { $p knows $q } } return { $p.name as name } }"


class World:
    """A graph, and views of it under policies that are made of rules."""

    def __init__(self, folder: Path) -> None:
        self.place = folder / "g.omni"
        self.owner = omnigraph.init(self.place, SCHEMA)
        self.owner.load(PEOPLE, mode="merge")
        self._folder = folder

    def under(self, *rules: dict[str, Any], actor: str | None = "ada") -> Graph:
        """The graph as an actor uses it to whom these rules apply."""
        listed = [
            {"id": f"r{index}", "allow": {"actors": {"actor": "ada"}, **rule}} for index, rule in enumerate(rules)
        ]
        path = self._folder / "policy.yaml"
        path.write_text(yaml.safe_dump({"version": 1, "protected_branches": ["main"], "rules": listed}))
        return omnigraph.open(self.place, actor=actor, policy=path)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    found = World(tmp_path)
    yield found
    found.owner.close()


def test_a_padded_name_is_the_protected_branch(world: World) -> None:
    graph = world.under({"actions": ["read", "change"], "branch_scope": "unprotected"})
    for branch in ("main", " main ", "main\t"):
        with pytest.raises(PolicyDenied):
            graph.query(NAMES, branch=branch)
        with pytest.raises(PolicyDenied):
            graph.mutate(ADD, {"n": "x"}, branch=branch)


def test_an_older_state_is_one_of_its_branch(world: World) -> None:
    world.owner.create_branch("hidden")
    commit = world.owner.mutate(ADD, {"n": "cid"}, branch="hidden").commit
    assert commit is not None
    world.owner.tag("seen", commit.graph_commit_id)
    graph = world.under({"actions": ["read"], "branches": ["main"]})
    assert len(graph.query(NAMES, at=world.owner.snapshot())) == 2
    hidden = world.owner.snapshot("hidden")
    for at in (commit.graph_commit_id, "seen", hidden):
        with pytest.raises(PolicyDenied, match="read on branch 'hidden'"):
            graph.query(NAMES, at=at)
    with pytest.raises(PolicyDenied):
        graph.commit_changes("seen")
    with pytest.raises(PolicyDenied):
        graph.diff("main", "hidden")


def test_a_query_takes_all_types_that_it_touches(world: World) -> None:
    graph = world.under({"actions": ["read"], "types": ["Person"]})
    assert len(graph.query(NAMES)) == 2
    with pytest.raises(PolicyDenied, match="node:Secret"):
        graph.query(SECRETS)
    with pytest.raises(PolicyDenied, match="edge:Knows"):
        graph.query(UNCONNECTED)
    with pytest.raises(PolicyDenied, match="node:Secret"):
        graph.entity("Secret", "x")
    with pytest.raises(PolicyDenied):
        graph.changes(start="beginning")
    assert graph.changes(start="beginning", types=["Person"]).caught_up


def test_deleting_a_node_takes_the_types_of_its_edges(world: World) -> None:
    delete = "query gone($n: String) { delete Person where name = $n }"
    with pytest.raises(PolicyDenied, match="change edge:Knows"):
        world.under({"actions": ["change"], "types": ["Person"]}).mutate(delete, {"n": "ada"})
    done = world.under({"actions": ["change"], "types": ["Person", "Knows"]}).mutate(delete, {"n": "ada"})
    assert done.affected_nodes == 1


def test_a_denied_load_leaves_nothing(world: World) -> None:
    graph = world.under(
        {"actions": ["change"], "types": ["Person"]}, {"actions": ["branch_create"]}, {"actions": ["read"]}
    )
    records = PEOPLE + b'{"type": "Secret", "data": {"name": "s"}}\n'
    with pytest.raises(PolicyDenied, match="change node:Secret"):
        graph.ingest(records, "inbox")
    assert [branch.name for branch in world.owner.branches()] == ["main"]
    assert graph.ingest(PEOPLE, "inbox").branch_created


def test_a_merge_that_brings_a_schema_takes_the_right_to_apply_it(world: World) -> None:
    world.owner.create_branch("dev")
    world.owner.apply_schema(SCHEMA + "node City { name: String @key }\n", branch="dev")
    merging = ({"actions": ["branch_merge"]}, {"actions": ["read"]})
    with pytest.raises(PolicyDenied, match="schema_apply towards branch 'main'"):
        world.under(*merging).merge("dev")
    assert world.under(*merging, {"actions": ["schema_apply"]}).merge("dev").commit is not None


def test_an_actor_of_a_call_is_the_one_that_is_asked_about(world: World) -> None:
    graph = world.under({"actions": ["change", "read"]}, actor=None)
    with pytest.raises(ActorRequired, match="has to know who wants to read"):
        graph.query(NAMES)
    assert graph.mutate(ADD, {"n": "cid"}, actor="ada").commit is not None
    assert len(graph.as_actor("ada").query(NAMES)) == 3
    with pytest.raises(PolicyDenied):
        graph.as_actor("ada").mutate(ADD, {"n": "dan"}, actor="bob")


def test_views_and_pickles_keep_the_policy(world: World) -> None:
    world.owner.create_branch("dev")
    graph = world.under({"actions": ["read"], "branches": ["main"]})
    again: Graph = pickle.loads(pickle.dumps(graph))
    for each in (graph, again):
        assert len(each.query(NAMES)) == 2
        with pytest.raises(PolicyDenied):
            each.branch("dev").query(NAMES)


def test_a_graph_without_a_policy_asks_none(world: World) -> None:
    assert world.owner._guard is None
    assert world.owner._repository.guard is None


def test_decisions_are_logged_with_their_fields(world: World, caplog: pytest.LogCaptureFixture) -> None:
    graph = world.under({"actions": ["read"]})
    with caplog.at_level(logging.INFO, "omnigraph.policy"):
        graph.query(NAMES)
        with pytest.raises(PolicyDenied):
            graph.mutate(ADD, {"n": "secret-name"})
    fields = [record.__dict__["policy"] for record in caplog.records]
    assert [(each["action"], each["allowed"], each["matched_rule_id"]) for each in fields] == [
        ("read", True, "r0"),
        ("read", True, "r0"),
        ("change", False, None),
    ]
    assert "secret-name" not in caplog.text


def test_a_policy_that_cannot_be_used_keeps_the_graph_closed(world: World, tmp_path: Path) -> None:
    with pytest.raises(PolicyInvalid, match="cannot be read"):
        omnigraph.open(world.place, policy=tmp_path / "missing.yaml")
