"""`omnigraph changes` and `omnigraph commit changes`, as a user types them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.command import omnigraph as run
from tests.history.feed.replica import SCHEMA, apply, exported, in_records, knows, person
from tests.stores import Store

import omnigraph
from omnigraph import Graph


@pytest.fixture
def graph(local_store: Store) -> Graph:
    graph = omnigraph.init(local_store.uri, SCHEMA)
    graph.load([person("Ada", age=36), person("Bo"), knows("Ada", "Bo", id="k1")], mode="append", actor="act-1")
    graph.mutate('query q() { update Person set { age: 37 } where name = "Ada" }')
    return graph


def test_a_poll(graph: Graph) -> None:
    poll = ("changes", "poll", "--store", graph.address)
    first = run(*poll)
    assert first.out == f"cursor {graph.changes().cursor}\n"
    shown = run(*poll, "--start", "beginning", "--limit", "1").out.splitlines()
    heads = [line.split("  ") for line in shown if line.startswith("commit ")]
    assert [head[2:] for head in heads] == [["init", "create the graph"], ["load", "act-1"], ["mutation"]]
    assert [line for line in shown if not line.startswith(("commit ", "cursor "))] == [
        "+ node:Person Ada",
        "+ node:Person Bo",
        "+ edge:Knows k1",
        "~ node:Person Ada  age: 36 → 37",
    ]
    assert shown[-1] == f"cursor {graph.changes().cursor}"
    graph.load([person("Cy")], mode="append")
    again = run(*poll, "--cursor", shown[-1].removeprefix("cursor "))
    assert "+ node:Person Cy" in again.out.splitlines()


@pytest.mark.parametrize("limit", ["1", "1000"])
def test_a_poll_as_json(graph: Graph, limit: str) -> None:
    poll = ("changes", "poll", "--store", graph.address, "--start", "beginning", "--limit", limit)
    found = run(*poll, "--json").json
    assert (found["caught_up"], found["cursor"]) == (True, graph.changes().cursor)
    entities: dict[str, dict[str, object]] = {}
    for block in found["blocks"]:
        apply(entities, block["changes"])
    assert entities == exported(graph)
    *blocks, end = map(json.loads, run(*poll, "--jsonl").out.splitlines())
    assert (blocks, end) == (found["blocks"], {"cursor": found["cursor"], "caught_up": True})


def test_a_poll_through_many_commits_says_that_there_is_more(graph: Graph) -> None:
    from omnigraph.manifest.publisher import Change, CommitDraft
    from omnigraph.manifest.refs.objects import TRUNK

    for _ in range(128):
        graph._repository.manifest.publish(TRUNK.ref, Change(), {}, CommitDraft("load"))
    poll = ("changes", "poll", "--store", graph.address)
    *_, note, cursor = run(*poll, "--start", "beginning").out.splitlines()
    assert note == "there is more: poll again with the cursor"
    rest = run(*poll, "--cursor", cursor.removeprefix("cursor "), "--json").json
    assert (len(rest["blocks"]), rest["caught_up"]) == (3, True)


def test_filters(graph: Graph) -> None:
    poll = ("changes", "poll", "--store", graph.address, "--start", "beginning", "--json")
    for options, ids in (
        (("--kind", "edge"), ["k1"]),
        (("--type", "Person", "--op", "insert"), ["Ada", "Bo"]),
        (("--op", "update", "--op", "delete"), ["Ada"]),
    ):
        blocks = run(*poll, *options).json["blocks"]
        assert [change["id"] for block in blocks for change in block["changes"]] == ids


def test_the_changes_of_a_commit(graph: Graph) -> None:
    load = graph.commits()[1].graph_commit_id
    ask = ("commit", "changes", load, "--store", graph.address)
    assert run(*ask, "--limit", "2").out.splitlines()[1:] == [
        "+ node:Person Ada",
        "+ node:Person Bo",
        "+ edge:Knows k1",
    ]
    whole = run(*ask, "--json").json
    assert ([len(block["changes"]) for block in whole["blocks"]], whole["next_page_token"]) == ([3], None)
    token = graph.commit_changes(load, limit=1).next_page_token
    assert token
    page = run(*ask, "--limit", "1", "--page-token", token, "--json").json
    assert [change["id"] for change in page["blocks"][0]["changes"]] == ["Bo"]
    assert page["next_page_token"] is not None
    assert run(*ask, "--limit", "1", "--page-token", token).out.splitlines()[-1].startswith("next page ")


def test_a_baseline(graph: Graph, tmp_path: Path) -> None:
    out = tmp_path / "baseline.jsonl"
    write = ("changes", "baseline", "--store", graph.address, "--out", str(out))
    shown = run(*write).out.splitlines()
    head = graph.commits()[0].graph_commit_id
    assert shown[0] == f"wrote 3 records of main at {head} to {out}"
    assert shown[1] == f"cursor {graph.changes().cursor}"
    assert in_records(out.read_text().splitlines()) == exported(graph)
    assert "it exists; force replaces it" in run(*write).err
    done = run(*write, "--force", "--kind", "node", "--json").json
    assert (done["snapshot_commit_id"], done["total_entities"]) == (head, 2)
    poll = ("changes", "poll", "--store", graph.address, "--cursor", done["resume_cursor"])
    assert run(*poll, "--kind", "node", "--json").json["caught_up"]
    assert run(*poll).code == 1
    assert [path.name for path in tmp_path.glob("*.partial")] == []


@pytest.mark.parametrize(
    ("target", "reason"),
    [("s3://bucket/x", "one local file"), ("{tmp}/", "one local file"), ("{tmp}/no/x", "there is no directory")],
)
def test_targets_that_no_baseline_is_written_to(graph: Graph, tmp_path: Path, target: str, reason: str) -> None:
    ran = run("changes", "baseline", "--store", graph.address, "--out", target.format(tmp=tmp_path))
    assert (ran.code, reason in ran.err) == (1, True)


def test_errors(graph: Graph) -> None:
    poll = ("changes", "poll", "--store", graph.address)
    rejected = run(*poll, "--cursor", "nonsense", "--json")
    assert (rejected.code, rejected.json["error"][:23]) == (1, "change cursor rejected:")
    first = graph.commits()[-1].graph_commit_id
    parentless = run("commit", "changes", first, "--store", graph.address, "--json")
    assert (parentless.code, parentless.json["change_diff_refusal"]["reason"]) == (1, "parentless_commit")
    assert run(*poll, "--cursor", "x", "--start", "now").code == 2
    assert run(*poll, "--json", "--jsonl").code == 2
    assert "from 1 to 8,192" in run(*poll, "--limit", "9000").err


def test_what_fails_half_way_leaves_what_was_printed(graph: Graph) -> None:
    """The prefix stays, the error is on standard error, and no cursor is printed."""
    table = Path(graph.address) / graph.snapshot().tables["edge:Knows"].location
    for file in (table / "_versions").iterdir():
        file.unlink()
    ran = run("changes", "poll", "--store", graph.address, "--start", "beginning", "--limit", "1", "--jsonl")
    blocks = list(map(json.loads, ran.out.splitlines()))
    assert (ran.code, [len(block["changes"]) for block in blocks]) == (1, [0, 1, 1])
    assert "is damaged: it is missing" in ran.err
