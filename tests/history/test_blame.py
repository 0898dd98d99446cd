"""Blame: the commit behind each property, whatever lies between, at the cost of the row's own writes."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import pytest
from tests.cli.command import omnigraph as run
from tests.history.test_diff import content
from tests.sampling import sampled
from tests.stores import Store

import omnigraph
from omnigraph import AsyncGraph, Graph
from omnigraph.errors import BranchNotFound, InvalidArgument, MergeConflicts, RequestError, SnapshotNotFound

SCHEMA = """
node Person { name: String @key  age: I32?  city: String? }
edge Knows: Person -> Person { since: I32? }
"""


class Story:
    """Commits that are made one after another, each known by its message."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.known = {graph.commits()[-1].graph_commit_id: "init"}

    def tell(self, text: str) -> None:
        """Steps, one per line: `dev: ada age 3 city Rome`, `dev: delete ada`, `dev: replace ada bob`,
        `dev from main`, `merge dev into main`, `drop dev`, `index`. Each commit gets the text of its line."""
        for line in filter(None, map(str.strip, text.splitlines())):
            match line.replace(":", " :").split():
                case [branch, "from", parent]:
                    self.graph.create_branch(branch, parent)
                case ["drop", branch]:
                    self.graph.delete_branch(branch)
                case ["compact"]:
                    self.graph.optimize()
                case ["index"]:
                    self.graph.ensure_indices()
                case ["merge", source, "into", target, *side]:
                    options: Any = {"resolve": side[0]} if side else {}
                    self._note(target, line, self.graph.merge(source, target, **options).commit)
                case [branch, ":", "delete", name]:
                    text = f'query q() {{ delete Person where name = "{name}" }}'
                    self._note(branch, line, self.graph.mutate(text, branch=branch))
                case [branch, ":", "replace", *names]:
                    data: list[dict[str, Any]] = [{"type": "Person", "data": {"name": name}} for name in names]
                    self._note(branch, line, self.graph.load(data, mode="overwrite", branch=branch))
                case [branch, ":", name, *pairs]:
                    person: dict[str, Any] = {"name": name}
                    for key, value in zip(pairs[::2], pairs[1::2], strict=True):
                        person[key] = int(value) if key == "age" else value
                    data = [{"type": "Person", "data": person}]
                    self._note(branch, line, self.graph.load(data, mode="merge", branch=branch))
                case _:
                    raise AssertionError(line)

    def _note(self, branch: str, line: str, done: Any) -> None:
        if done is not None:
            self.known.setdefault(self.graph.commits(branch, limit=1)[0].graph_commit_id, line)

    def blame(self, name: str, branch: str = "main", **options: Any) -> dict[str, str]:
        options = options or {"branch": branch}
        found = self.graph.blame("Person", name, **options)
        return {each.property: self.known[each.commit.graph_commit_id] for each in found}


@pytest.fixture
def story(local_store: Store) -> Story:
    return Story(omnigraph.init(local_store.uri, SCHEMA))


HISTORIES = {
    "one commit": (
        "main: ada age 1",
        {"name": "main: ada age 1", "age": "main: ada age 1", "city": "main: ada age 1"},
    ),
    "each property has its own": (
        """main: ada age 1
        main: bob age 1
        main: ada age 2
        main: ada age 2 city Rome
        main: bob age 3""",
        {"name": "main: ada age 1", "age": "main: ada age 2", "city": "main: ada age 2 city Rome"},
    ),
    "a write of the same value is no change": (
        """main: ada age 1
        main: ada age 1""",
        {"age": "main: ada age 1"},
    ),
    "there and back again": (
        """main: ada age 1
        main: ada age 2
        main: ada age 1 city Rome""",
        {"age": "main: ada age 1 city Rome", "name": "main: ada age 1"},
    ),
    "deleted and inserted again": (
        """main: ada age 1 city Rome
        main: delete ada
        main: ada city Rome""",
        {"name": "main: ada city Rome", "city": "main: ada city Rome"},
    ),
    "replaced by the same": (
        """main: ada age 1
        main: replace ada bob""",
        {"name": "main: ada age 1", "age": "main: replace ada bob", "city": "main: ada age 1"},
    ),
    "before a fork": (
        """main: ada age 1
        dev from main
        dev: ada age 1 city Rome
        main: ada age 5""",
        {"name": "main: ada age 1", "age": "main: ada age 5", "city": "main: ada age 1"},
    ),
    "a merge": (
        """main: ada age 1
        dev from main
        dev: ada age 1 city Rome
        main: ada age 5
        merge dev into main""",
        {"name": "main: ada age 1", "age": "main: ada age 5", "city": "dev: ada age 1 city Rome"},
    ),
    "a merge of a new entity": (
        """main: bob age 1
        dev from main
        dev: ada age 1
        dev: ada age 2
        main: cyd age 3
        merge dev into main""",
        {"name": "dev: ada age 1", "age": "dev: ada age 2"},
    ),
    "a merge of a deleted branch": (
        """main: ada age 1
        dev from main
        dev: ada age 2
        merge dev into main
        drop dev""",
        {"name": "main: ada age 1", "age": "merge dev into main"},
    ),
    "a conflict that was decided": (
        """main: ada age 1
        dev from main
        dev: ada age 2 city Rome
        main: ada age 3 city Oslo
        merge dev into main theirs""",
        {"age": "dev: ada age 2 city Rome", "city": "dev: ada age 2 city Rome"},
    ),
    "a branch of a branch": (
        """main: ada age 1
        a from main
        a: ada age 1 city Rome
        b from a
        b: ada age 2 city Rome
        merge b into a
        merge a into main""",
        {"name": "main: ada age 1", "age": "b: ada age 2 city Rome", "city": "a: ada age 1 city Rome"},
    ),
    "back and forth": (
        """main: ada age 1
        dev from main
        dev: ada age 2
        merge dev into main
        main: ada age 2 city Rome
        merge main into dev
        dev: ada age 3 city Rome
        merge dev into main""",
        {"age": "dev: ada age 3 city Rome", "city": "main: ada age 2 city Rome"},
    ),
    "compaction": (
        """main: ada age 1
        main: bob age 1
        dev from main
        dev: ada age 1 city Rome
        compact
        main: ada age 2
        merge dev into main
        compact
        main: bob age 3""",
        {"name": "main: ada age 1", "age": "main: ada age 2", "city": "dev: ada age 1 city Rome"},
    ),
    "indexes": (
        """main: ada age 1
        index
        main: ada age 1 city Rome
        index
        main: bob age 2""",
        {"name": "main: ada age 1", "city": "main: ada age 1 city Rome"},
    ),
}


@pytest.mark.parametrize("name", HISTORIES)
def test_histories(story: Story, name: str) -> None:
    text, expected = HISTORIES[name]
    story.tell(text)
    assert expected.items() <= story.blame("ada").items()


def test_older_states_and_other_branches(story: Story) -> None:
    story.tell(
        """main: ada age 1
        main: ada age 2
        dev from main
        main: ada age 3
        dev: ada age 4
        quiet from dev"""
    )
    assert story.blame("ada", at=2)["age"] == "main: ada age 1"
    assert story.blame("ada", "dev")["age"] == story.blame("ada", "quiet")["age"] == "dev: ada age 4"
    story.graph.tag("old", at=3)
    assert story.blame("ada", at="old")["age"] == "main: ada age 2"
    assert story.blame("ada", at=story.graph.snapshot("dev"))["age"] == "dev: ada age 4"
    quiet = story.graph.branch("quiet")
    assert quiet.blame("Person", "ada", at=2)["age"].value == 1


class TestLogOfAnEntity:
    def told(self, story: Story, name: str, **options: Any) -> list[str]:
        found = story.graph.log(type="Person", id=name, **options)
        return [story.known[entry.commit.graph_commit_id] for entry in found]

    def test_all_commits_that_changed_it(self, story: Story) -> None:
        text, _ = HISTORIES["back and forth"]
        story.tell("main: bob age 1")
        story.tell(text)
        story.tell("main: bob age 2\nmain: ada age 3 city Rome")
        assert self.told(story, "ada") == [
            "merge dev into main",
            "dev: ada age 3 city Rome",
            "merge main into dev",
            "main: ada age 2 city Rome",
            "merge dev into main",
            "dev: ada age 2",
            "main: ada age 1",
        ]
        assert self.told(story, "bob") == ["main: bob age 2", "main: bob age 1"]

    def test_it_is_filtered_and_paged_as_any_log(self, story: Story) -> None:
        story.tell("\n".join(f"main: ada age {age}\nmain: bob age {age}" for age in range(5)))
        first = story.graph.log(type="Person", id="ada", limit=2, stat=True)
        rest = self.told(story, "ada", after=first[-1].commit.graph_commit_id)
        assert rest == ["main: ada age 2", "main: ada age 1", "main: ada age 0"]
        assert first[0].changes == {"node:Person": {"insert": 0, "update": 1, "delete": 0}}
        assert self.told(story, "ada", kind="merge") == []
        with pytest.raises(SnapshotNotFound, match="in the history of node:Person 'ada'"):
            self.told(story, "ada", after=story.graph.commits()[0].graph_commit_id)
        with pytest.raises(RequestError, match="there is no Person with id 'eve'"):
            self.told(story, "eve")
        with pytest.raises(InvalidArgument, match="'id' cannot be used"):
            story.graph.log(type="Person")

    def test_the_command(self, story: Story) -> None:
        story.tell("main: ada age 1\nmain: bob age 1\nmain: ada age 2")
        shown = run("log", "Person", "ada", "--store", story.graph.address, "--json").json["commits"]
        assert [story.known[entry["graph_commit_id"]] for entry in shown] == ["main: ada age 2", "main: ada age 1"]
        assert "give its id too" in run("log", "Person", "--store", story.graph.address).err


@pytest.mark.long
def test_on_an_object_store(s3_store: Store) -> None:
    story = Story(omnigraph.init(s3_store.uri, SCHEMA, storage_options=s3_store.options))
    for text, expected in (HISTORIES["a branch of a branch"],):
        story.tell(text)
        assert expected.items() <= story.blame("ada").items()


def test_an_edge_has_ends(story: Story) -> None:
    story.tell("main: ada age 1\nmain: bob age 1")
    story.graph.load(
        [{"edge": "Knows", "from": "ada", "to": "bob", "data": {"since": 1}}], mode="append", actor="eve"
    )
    (edge,) = story.graph._repository.tables.scan(
        story.graph.snapshot().tables["edge:Knows"].ref, ["id"]
    ).read_all()["id"]
    found = story.graph.blame("Knows", edge.as_py())
    assert [(each.property, each.value, each.commit.actor_id) for each in found] == [
        ("src", "ada", "eve"),
        ("dst", "bob", "eve"),
        ("since", 1, "eve"),
    ]


def test_refusals(story: Story) -> None:
    story.tell("main: ada age 1")
    refused: list[tuple[str, str, dict[str, Any], type[RequestError], str]] = [
        ("Person", "eve", {}, RequestError, "there is no Person with id 'eve'"),
        ("Person", "ada", {"at": 1}, RequestError, "there is no Person with id 'ada'"),
        ("Persn", "ada", {}, RequestError, "there is no type 'Persn'"),
        ("Person", "ada", {"branch": "x"}, BranchNotFound, "'x'"),
        ("Person", "ada", {"at": "v9"}, SnapshotNotFound, "'v9'"),
    ]
    for kind, name, options, error, reason in refused:
        with pytest.raises(error, match=reason):
            story.graph.blame(kind, name, **options)
    with pytest.raises(KeyError):
        story.graph.blame("Person", "ada")["height"]


@pytest.mark.parametrize("seed", sampled(range(8), 2))
def test_any_history_is_told_as_a_model_tells_it(story: Story, seed: int) -> None:
    """The model notes at every commit which values changed, and where they came from."""
    chance, graph = random.Random(seed), story.graph
    story.tell("main: ada age 1\nmain: bob age 1")
    model: dict[str, dict[str, dict[str, str]]] = {"main": {}}
    states: dict[str, dict[str, Any]] = {"main": {}}

    def note(branch: str, source: str | None = None) -> None:
        """Compare a branch with what it was before its newest commit."""
        commit = graph.commits(branch, limit=1)[0].graph_commit_id
        before, after = states[branch], content(graph, graph.snapshot(branch))["node:Person"]
        told = {}
        for name, row in after.items():
            told[name] = {
                key: model[branch][name][key]
                if name in before and before[name][key] == value
                else model[source][name][key]
                if source and name in states[source] and states[source][name][key] == value
                else commit
                for key, value in row.items()
                if key != "id"
            }
        model[branch], states[branch] = told, after

    for entry in reversed(graph.commits()[:2]):
        told = content(graph, entry.graph_commit_id)["node:Person"]
        new = told.keys() - model["main"].keys()
        model["main"] |= {name: dict.fromkeys(("name", "age", "city"), entry.graph_commit_id) for name in new}
        states["main"] = told
    for step in range(18):
        branch = chance.choice(sorted(model))
        name = chance.choice(["ada", "bob", "cyd"])
        match chance.randrange(8):
            case 0 if len(model) < 4:
                graph.create_branch(f"b{step}", branch)
                model[f"b{step}"], states[f"b{step}"] = dict(model[branch]), states[branch]
            case 1:
                graph.mutate(f'query q() {{ delete Person where name = "{name}" }}', branch=branch)
                note(branch)
            case 2 | 3:
                source = chance.choice(sorted(model))
                side: Any = chance.choice(["ours", "theirs"])
                if source != branch:
                    try:
                        graph.merge(source, branch, resolve=side)
                    except MergeConflicts:
                        continue
                    note(branch, source)
            case 4:
                graph.ensure_indices(branch=branch)
            case _:
                data: Any = {"name": name, "age": chance.randrange(3), "city": chance.choice(["Rome", None])}
                graph.load([{"type": "Person", "data": data}], mode="merge", branch=branch)
                note(branch)
    for branch, told in model.items():
        for name, expected in told.items():
            found = graph.blame("Person", name, branch=branch)
            assert {each.property: each.commit.graph_commit_id for each in found} == expected, (branch, name)


class TestCost:
    def reads(self, graph: Graph, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
        """How many look-ups a blame makes in tables, and how many rows they give."""
        tables = graph._repository.tables
        counted = [0, 0]
        scan: Callable[..., Any] = tables.scan

        def counting(ref: Any, columns: Any = None, where: Any = None, **options: Any) -> Any:
            rows = scan(ref, columns, where, **options).read_all()
            if ref.location.startswith("nodes"):
                assert where is not None
                counted[0] += 1
                counted[1] += rows.num_rows
            return rows.to_reader()

        with monkeypatch.context() as patch:
            patch.setattr(tables, "scan", counting)
            graph.blame("Person", "ada")
        return counted[0], counted[1]

    @pytest.mark.parametrize("is_indexed", [False, True])
    def test_it_follows_the_writes_of_the_row(
        self, story: Story, monkeypatch: pytest.MonkeyPatch, is_indexed: bool
    ) -> None:
        story.tell("main: ada age 1\nmain: ada age 2")
        few = self.reads(story.graph, monkeypatch)
        people: list[dict[str, Any]] = [{"type": "Person", "data": {"name": f"p{n}"}} for n in range(3_000)]
        story.graph.load(people, mode="append")
        story.tell("\n".join(f"main: bob age {age}" for age in range(20)))
        if is_indexed:
            story.tell("index\nmain: bob age 99")
        assert self.reads(story.graph, monkeypatch) == few
        story.tell("main: ada age 3")
        assert self.reads(story.graph, monkeypatch)[0] == few[0] + 1

    def test_it_finds_a_commit_by_halving(self, story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
        story.tell("main: ada age 1")
        story.tell("\n".join(f"main: bob age {age}" for age in range(64)))
        manifest = story.graph._repository.manifest
        seen: set[int] = set()
        at = manifest.at

        def counting(native: str | None, version: int) -> Any:
            seen.add(version)
            return at(native, version)

        monkeypatch.setattr(manifest, "at", counting)
        story.graph.blame("Person", "ada")
        assert len(seen) <= 10


class TestCommand:
    def test_table_and_json(self, local_store: Store) -> None:
        graph = omnigraph.init(local_store.uri, SCHEMA)
        story = Story(graph)
        story.tell("main: ada age 1")
        graph.load(
            [{"type": "Person", "data": {"name": "ada", "age": 2}}], mode="merge", actor="eve", message="older"
        )
        first, last = graph.commits()[1], graph.commits()[0]
        shown = run("blame", "Person", "ada", "--store", graph.address).out.splitlines()
        rows = [line.split("\t") for line in shown]
        assert rows[0] == ["property", "value", "commit", "when", "kind", "actor", "message"]
        assert [(row[0], row[1], row[2]) for row in rows[1:]] == [
            ("age", "2", last.graph_commit_id),
            ("city", rows[2][1], first.graph_commit_id),
            ("name", "ada", first.graph_commit_id),
        ]
        assert rows[1][4:] == ["load", "eve", "older"]
        found = run("blame", "Person", "ada", "--store", graph.address, "--json", "--at", "2").json
        assert [(each["property"], each["value"]) for each in found["properties"]] == [
            ("age", 1),
            ("city", None),
            ("name", "ada"),
        ]
        assert run("blame", "Person", "eve", "--store", graph.address).code == 1
        both = run("blame", "Person", "ada", "--store", graph.address, "--at", "2", "--branch", "main")
        assert "give --branch or --snapshot, not both" in both.err

    def test_from_an_event_loop(self, story: Story) -> None:
        story.tell("main: ada age 1")

        async def scenario() -> Any:
            async with AsyncGraph(story.graph) as graph:
                return (await graph.blame("Person", "ada"))["age"].value

        assert asyncio.run(scenario()) == 1
