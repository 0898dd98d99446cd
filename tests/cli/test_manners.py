"""What holds for all commands: usage errors, help, completion, consent, and how data is named."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.command import COMMAND
from typer.testing import CliRunner

import omnigraph
from omnigraph.cli.main import app
from omnigraph.cli.output import counted
from omnigraph.cli.scope.options import REPORTING
from omnigraph.cli.verbs import VERBS

SCHEMA = "node Person { name: String @key }  edge Knows: Person -> Person"
FLIGHTS = Path(__file__).parents[2] / "examples" / "flights"
EDGE = "Flight=flights.csv:from=origin,to=dest,flight=flight,date=date,minutes=minutes,delay=delay"
ADA = '{"type": "Person", "data": {"name": "Ada"}}\n'
READ = ("-e", "query q() { match { $p: Person } return { $p.name } }")
KNOWS = '{"edge": "Knows", "from": "Ada", "to": "Ada"}\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    omnigraph.init(tmp_path / "g.omni", SCHEMA)
    (tmp_path / "ada.jsonl").write_text(ADA)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, list(words))
    return done.exit_code, done.stdout, done.stderr


@pytest.mark.parametrize(
    "words", [("load", "--mode", "x"), ("load", "--mode", "merge"), ("nothing",), ("branch", "create"), ("query",)]
)
def test_a_usage_error_with_json_is_json(folder: Path, words: tuple[str, ...]) -> None:
    code, out, err = run(*words, "--json")
    assert (code, err) == (2, "")
    assert (json.loads(out)["code"], json.loads(out)["outcome"]) == ("usage", "nothing_written")
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert "Error" in err


def test_usage_errors_say_what_is_wrong_and_no_kind_of_exception(folder: Path) -> None:
    for words in (("load", "--mode", "x"), ("load", "--mode", "merge", "--engine", "x"), ("log", "--limit", "x")):
        code, out, _ = run(*words, "--json")
        assert code == 2
        assert "Value error" not in json.loads(out)["error"]
    (folder / "map.yaml").write_text("nodes: {Person: people.csv}")
    code, _, err = run("load", "--mode", "merge", "--data", "map.yaml")
    assert code == 2
    assert "--map map.yaml" in " ".join(err.replace("│", " ").split())


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_help_names_no_types_of_python(verb: str) -> None:
    code, out, _ = run(verb, "--help")
    assert code == 0
    assert not [word for word in ("<bool>", "<str>", "list[", "<path>") if word in out]


def test_completion_of_verbs() -> None:
    asked = {"_OMNIGRAPH_COMPLETE": "complete_bash", "COMP_WORDS": "omnigraph bra", "COMP_CWORD": "1"}
    done = subprocess.run(COMMAND, env={**os.environ, **asked}, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["branch"]


def test_main_with_rows_is_overwritten_with_consent_only(folder: Path) -> None:
    load = ("load", "g.omni", "--data", "ada.jsonl", "--mode", "overwrite")
    assert run(*load)[0] == 0
    code, _, err = run(*load)
    assert code == 2
    assert "main has 1 row" in err
    assert run(*load, "--branch", "dev", "--from", "main")[0] == 0
    assert run(*load, "--yes")[0] == 0


def test_an_empty_load_says_so_and_makes_no_commit(folder: Path) -> None:
    (folder / "none.jsonl").write_text("// nothing\n")
    load = ("load", "g.omni", "--data", "none.jsonl", "--mode", "merge")
    assert run(*load)[1] == "there was nothing to load; no commit was made\n"
    assert json.loads(run(*load, "--json")[1])["commit"] is None


def test_a_merge_says_how_many_edges_it_adds_again_and_again(folder: Path) -> None:
    (folder / "ada.jsonl").write_text(ADA + KNOWS)
    code, out, _ = run("load", "g.omni", "--data", "ada.jsonl", "--mode", "merge")
    assert code == 0
    assert "committed 2 records on main" in out
    assert "1 edge added without an identity" in out


def test_types_and_columns_are_compared_with_the_schema_before_anything_is_read(folder: Path) -> None:
    load = ("load", "g.omni", "--mode", "merge")
    assert "no node type 'Persn'; did you mean" in run(*load, "--node", "Persn=none.csv")[2]
    (folder / "map.yaml").write_text("edges:\n  Knows: {data: none.csv, from: a, too: b}")
    assert "map.yaml:2: edges.Knows has no 'too'; did you mean 'to'?" in run(*load, "--map", "map.yaml")[2]
    (folder / "map.yaml").write_text("nodes:\n  Person: {data: none.csv, columns: {nam: a}}")
    assert "map.yaml:2: " in run(*load, "--map", "map.yaml")[2]
    assert run(*load, "--node", "Person=a.csv", "--node", "Person=b.csv")[0] == 2


def test_a_schema_is_inferred_to_files_and_a_graph_is_made_of_it(folder: Path) -> None:
    (folder / "people.csv").write_text("name,age\nAda,36\n")
    code, out, _ = run("schema", "infer", "people.csv")
    assert (code, out.splitlines()[2:4]) == (0, ["node Person {", "  name: String @key"])
    assert run("schema", "infer", "people.csv", "--out", "p.pg", "--map", "p.yaml")[:2] == (0, "")
    assert (folder / "p.yaml").read_text() == "nodes: {Person: people.csv}\n"
    assert run("schema", "infer", "people.csv", "--out", "p.pg")[0] == 2
    assert run("init", "new.omni", "--schema", "p.pg")[0] == 0


def test_csv_is_loaded_with_a_proposed_schema_and_mapping_and_no_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = shutil.copytree(FLIGHTS, tmp_path / "flights")
    monkeypatch.chdir(place)
    assert run("schema", "infer", "airports.csv", "flights.csv", "--out", "p.pg", "--map", "p.yaml")[0] == 0
    assert run("init", "g.omni", "--schema", "p.pg")[0] == 0
    load = ("load", "g.omni", "--mode", "merge", "--skip-bad", "--json")
    for words in (("--map", "p.yaml"), ("--node", "Airport=airports.csv", "--edge", EDGE)):
        code, out, _ = run(*load, *words)
        done = json.loads(out)
        assert (code, done["total_entities"], done["edges_without_identity"]) == (0, 620, 0)
    assert omnigraph.open("g.omni").snapshot().tables["edge:Flight"].row_count == 590


def test_queries_are_checked_against_a_graph(folder: Path) -> None:
    (folder / "q.gq").write_text("query q() { match { $p: Persn } return { $p } }")
    assert run("lint", "g.omni")[0] == 0
    code, out, _ = run("lint", "--query", "q.gq")
    assert code == 1
    assert "q.gq:1" in out
    assert "did you mean `Person`?" in out
    assert run("lint", "g.omni", "--schema", "q.gq")[0] == 2


def test_singular_and_plural() -> None:
    assert [counted(n, "row") for n in (0, 1, 1000)] == ["0 rows", "1 row", "1,000 rows"]
    assert counted(2, "index", "indexes") == "2 indexes"
    assert sys.version_info


@pytest.mark.parametrize(
    "verb", [("query",), ("mutate",), ("explain",), ("lint",), ("explain", "--schema", "s.pg")]
)
def test_mistakes_in_queries_are_told_with_the_name_of_the_file(folder: Path, verb: tuple[str, ...]) -> None:
    (folder / "s.pg").write_text(SCHEMA)
    (folder / "q.gq").write_text("query q() {\n  match { $p: Persn } return { $p.name }\n}")
    code, out, err = run(*verb, "--query", "q.gq")
    assert code == 1
    assert "--> q.gq:2:15" in out + err
    assert "--> <query>:1:" in run("query", "-e", "query q() { match { $p: Persn } return { $p.name } }")[2]


@pytest.mark.parametrize(
    "words",
    [
        ("schema", "plan", "--schema", "bad.pg"),
        ("schema", "plan", "--schema", "bad.pg", "--from", "good.pg"),
        ("schema", "plan", "--schema", "good.pg", "--from", "bad.pg"),
        ("schema", "apply", "--schema", "bad.pg"),
        ("schema", "apply", "--schema", "bad.pg", "--all-branches"),
        ("lint", "--schema", "bad.pg"),
        ("init", "new.omni", "--schema", "bad.pg"),
    ],
)
def test_mistakes_in_schemas_are_told_with_the_name_of_the_file(folder: Path, words: tuple[str, ...]) -> None:
    (folder / "good.pg").write_text(SCHEMA)
    (folder / "bad.pg").write_text("node Person {\n  name: Strng @key\n}")
    code, _, err = run(*words)
    assert code == 1
    assert "--> bad.pg:2:9" in err


def test_a_quiet_command_prints_no_report(folder: Path) -> None:
    (folder / "s.pg").write_text(SCHEMA)
    (folder / "next.pg").write_text(SCHEMA.replace("@key }", "@key  age: I32? }"))
    insert = ("-e", 'query q() { insert Person { name: "Bo" } }')
    steps: dict[str, tuple[str, ...]] = {
        "init": ("q.omni", "--schema", "s.pg"),
        "load": ("q.omni", "--data", "ada.jsonl", "--mode", "merge"),
        "ingest": ("q.omni", "--data", "ada.jsonl", "--branch", "in"),
        "branch create": ("q.omni", "dev"),
        "mutate": ("q.omni", *insert, "--branch", "dev"),
        "tag create": ("q.omni", "v1", "--at", "dev"),
        "branch merge": ("q.omni", "dev"),
        "revert": ("q.omni", "v1"),
        "cherry-pick": ("q.omni", "v1"),
        "reset": ("q.omni", "--to", "v1"),
        "tag delete": ("q.omni", "v1"),
        "branch delete": ("q.omni", "in"),
        "schema apply": ("q.omni", "--schema", "next.pg"),
        "export": ("q.omni", "--out", "all.jsonl"),
        "index": ("q.omni",),
        "optimize": ("q.omni",),
        "maintain": ("q.omni", "--once"),
        "clone": ("q.omni", "copy.omni"),
        "backup": ("q.omni", "backups"),
        "restore": ("backups", "back.omni"),
    }
    for command, words in steps.items():
        assert run(*command.split(), *words, "--quiet") == (0, "", ""), command
    others = {"blob put", "embed"} | {each for each in REPORTING if each.startswith("cluster ")}
    assert steps.keys() | others == REPORTING
    assert run("branch", "create", "q.omni", "dev", "--quiet")[2].startswith("error: branch 'dev' exists")
    assert "Bo" in run("query", "q.omni", *READ, "--quiet")[1]
    done = run("mutate", "q.omni", "-e", insert[1].replace("Bo", "Cy"), "--quiet", "--json")[1]
    assert json.loads(done)["affected_nodes"] == 1
    assert run("branch", "list", "q.omni", "--quiet")[1].startswith("branch\tfrom")
