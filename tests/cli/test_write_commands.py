"""Loading and mutating from the command line."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.command import EXAMPLES, MAIN, omnigraph, omnigraph_process

PEOPLE = str(EXAMPLES / "people.jsonl")
QUERIES = str(EXAMPLES / "queries.gq")
HIRE = ("mutate", "hire", "--query", QUERIES)
EVE = json.dumps({"call": "eve", "base": "alpha", "trusted_by": "ace"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory with one graph that holds the example's people."""
    path = tmp_path_factory.mktemp("writes")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMNIGRAPH_EMBED_PROVIDER", "mock")
        assert omnigraph("init", "--schema", str(EXAMPLES / "schema.pg"), "g.omni", cwd=path).code == 0
        loaded = omnigraph("load", "--data", PEOPLE, "--mode", "append", "--as", "ada", cwd=path)
        assert (loaded.code, loaded.err) == (0, "")
        yield path


def test_a_load_counts_what_it_read(folder: Path) -> None:
    ran = omnigraph("load", "--data", PEOPLE, "--mode", "merge", "--json", cwd=folder)
    assert ran.code == 0
    assert ran.json["total_entities"] == 13
    assert {"name": "Pilot", "entities_loaded": 4} in ran.json["nodes"]
    assert ran.json["commit"]["kind"] == "load"


def test_a_mutation_says_what_it_did(folder: Path) -> None:
    ran = omnigraph(*HIRE, "--params", EVE, "--as", "bo", "--json", cwd=folder)
    assert (ran.json["affected_nodes"], ran.json["affected_edges"], ran.json["actor_id"]) == (1, 2, "bo")
    nothing = omnigraph("mutate", "-e", 'query q() { delete Pilot where call = "nobody" }', cwd=folder)
    assert nothing.out == "nothing matched, nothing changed\n"


def test_violations_are_listed_and_nothing_is_written(folder: Path) -> None:
    before = omnigraph("snapshot", "--json", cwd=folder).json["manifest_version"]
    bad = json.dumps({"call": "Eve", "base": "nowhere", "trusted_by": "ace"})
    ran = omnigraph(*HIRE, "--params", bad, cwd=folder)
    assert ran.code == 1
    assert "@check violation on Pilot.call: 'Eve' does not match" in ran.err
    assert "dst 'nowhere' not found in Base" in ran.err
    found = omnigraph(*HIRE, "--params", bad, "--json", cwd=folder).json
    assert (found["total"], found["violations"][0]["table_key"]) == (2, "node:Pilot")
    assert omnigraph("snapshot", "--json", cwd=folder).json["manifest_version"] == before


def test_bad_records_are_named_by_line(folder: Path) -> None:
    no_status = b'{"type":"Pilot","data":{"call":"x"}}\n'
    text_for_number = b'{"type":"Pilot","data":{"call":"y","status":"active","hours":"9"}}\n'
    bad = no_status + b"nonsense\n" + text_for_number
    ran = omnigraph("load", "--data", "-", "--mode", "merge", "--json", stdin=bad, cwd=folder)
    assert ran.code == 1
    assert [problem["line"] for problem in ran.json["problems"]] == [1, 2, 3]


def test_parameters_are_checked_before_anything_happens(folder: Path) -> None:
    ran = omnigraph(*HIRE, "--params", '{"call": 1}', cwd=folder)
    assert ran.code == 1
    assert "parameter 'call' is the number 1, not String" in ran.err
    assert "parameter 'base' is required" in ran.err
    assert omnigraph(*HIRE, "--params", "[1]", cwd=folder).code == 2


def test_ingest_forks_a_branch_for_review(folder: Path) -> None:
    ran = omnigraph("ingest", "--branch", "review/1", "--data", PEOPLE, "--json", cwd=folder)
    assert (ran.json["branch"], ran.json["base_branch"], ran.json["branch_created"]) == ("review/1", "main", True)
    again = omnigraph("ingest", "--branch", "review/1", "--data", PEOPLE, "--json", cwd=folder)
    assert again.json["branch_created"] is False
    bad = omnigraph(
        "ingest", "--branch", "review/2", "--data", "-", stdin=b'{"edge":"Wrote","from":"a","to":"b"}', cwd=folder
    )
    assert bad.code == 1
    names = [branch["name"] for branch in omnigraph("branch", "list", "--json", cwd=folder).json["branches"]]
    assert "review/2" not in names


def test_if_commit_lost_is_exit_code_4(folder: Path) -> None:
    head = omnigraph("snapshot", "--json", cwd=folder).json["graph_commit_id"]
    retire = ("mutate", "retire", "--query", QUERIES, "--params", '{"call": "cob"}', "--if-commit", head)
    assert omnigraph(*retire, cwd=folder).code == 0
    lost = omnigraph(*retire, "--json", cwd=folder)
    assert lost.code == 4
    assert lost.json["precondition_failure"]["expected"] == head
    assert lost.json["outcome"] == "nothing_written"


def test_a_read_given_to_mutate_is_refused(folder: Path) -> None:
    ran = omnigraph("mutate", "unplaced", "--query", QUERIES, cwd=folder)
    assert ran.code == 1
    assert "Q106" in ran.err


def test_recoveries_can_be_listed(folder: Path) -> None:
    assert omnigraph("recovery", "list", cwd=folder).out == "no write was ever interrupted\n"
    assert omnigraph("recovery", "list", "--json", cwd=folder).json == {"recoveries": []}


def test_a_warning_is_a_line_for_people(tmp_path: Path) -> None:
    """A sidecar nobody can read: reads work, writes are refused, and the warning names no source of ours."""
    schema = str(EXAMPLES / "schema.pg")
    assert omnigraph("init", "--schema", schema, "g.omni", cwd=tmp_path).code == 0
    (tmp_path / "g.omni" / "__recovery").mkdir(exist_ok=True)
    (tmp_path / "g.omni" / "__recovery" / "01ARZ3NDEKTSV4RRFFQ69G5FAV.json").write_text("garbage")
    assert omnigraph("snapshot", cwd=tmp_path).code == 0
    add = ("mutate", "-e", 'query q() { insert Base { code: "x", city: "y" } }')
    ran = omnigraph_process(*add, cwd=tmp_path, command=[sys.executable, "-c", MAIN])
    assert ran.code == 1
    assert [line.partition(":")[0] for line in ran.err.splitlines()] == ["warning", "error"]
    assert "01ARZ3NDEKTSV4RRFFQ69G5FAV.json cannot be read: it is damaged" in ran.err
