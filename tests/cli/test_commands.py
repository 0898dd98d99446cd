"""What the commands print and how they exit."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.command import EXAMPLES, omnigraph, omnigraph_on_terminal

import omnigraph as package

SCHEMA = ("--schema", "schema.pg")


def test_version_names_the_release() -> None:
    assert omnigraph("version").out.splitlines()[0] == f"omnigraph {package.__version__}"
    assert omnigraph("-v").out == omnigraph("version").out
    assert omnigraph("version", "--json").json["version"] == package.__version__


def test_lint_of_a_sound_file_succeeds() -> None:
    ran = omnigraph("lint", *SCHEMA, "--query", "queries.gq")
    assert ran.code == 0
    assert "ok     colleagues       read" in ran.out
    assert ran.out.splitlines()[-1] == "queries.gq: 5 queries, 0 errors, 5 warnings"


def test_lint_shows_every_mistake_underlined_and_exits_1() -> None:
    ran = omnigraph("lint", *SCHEMA, "--query", "mistakes.gq")
    assert ran.code == 1
    assert "4 |     $p trust $q\n  |        ^^^^^\n  = help: did you mean `trusts`?" in ran.out
    assert [code for code in ("T4", "T6", "T7", "Q110") if f"type error: {code}:" in ran.out] == [
        "T4",
        "T6",
        "T7",
        "Q110",
    ]


def test_lint_json_is_one_object_with_all_diagnostics() -> None:
    ran = omnigraph("lint", *SCHEMA, "--query", "mistakes.gq", "--json")
    assert ran.code == 1
    assert ran.json["status"] == "error"
    assert ran.json["errors"] == 4
    places = [(d["code"], d["line"], d["column"]) for d in ran.json["results"][0]["diagnostics"]]
    assert places == [("T4", 4, 8), ("T7", 5, 5), ("T6", 7, 15), ("Q110", 8, 11)]


def test_lint_without_queries_checks_the_schema() -> None:
    assert omnigraph("lint", *SCHEMA).out == "schema.pg: ok, 3 nodes, 3 edges, 1 interface\n"


def test_a_broken_schema_is_reported_on_stderr_or_as_json(tmp_path: Path) -> None:
    (tmp_path / "bad.pg").write_text("node A { k: Strin }\nedge E: A -> B\n")
    ran = omnigraph("lint", "--schema", "bad.pg", cwd=tmp_path)
    assert (ran.code, ran.out) == (1, "")
    assert "did you mean `String`?" in ran.err
    codes = [
        d["code"] for d in omnigraph("lint", "--schema", "bad.pg", "--json", cwd=tmp_path).json["diagnostics"]
    ]
    assert codes == ["P001", "C203"]


def test_a_file_that_is_not_utf8_says_where(tmp_path: Path) -> None:
    (tmp_path / "latin.pg").write_bytes(b"// caf\xe9\nnode A {}\n")
    ran = omnigraph("lint", "--schema", "latin.pg", cwd=tmp_path)
    assert ran.code == 1
    assert "latin.pg is not UTF-8: byte 0xe9 at offset 6" in ran.err


def test_a_missing_file_is_a_usage_error() -> None:
    ran = omnigraph("lint", "--schema", "nowhere.pg")
    assert ran.code == 2
    assert "does not exist" in ran.err


def test_explain_prints_the_plan_of_one_query_or_all() -> None:
    one = omnigraph("explain", *SCHEMA, "--query", "queries.gq", "retire")
    assert one.out.splitlines() == [
        "retire($call: String)  mutation",
        '  Update node Pilot { status: "retired" } where call = param $call and status != "retired"',
        "  reads   node:Pilot",
        "  writes  node:Pilot",
    ]
    every = omnigraph("explain", *SCHEMA, "--query", "queries.gq", "--json").json
    assert [q["name"] for q in every["queries"]] == ["colleagues", "unplaced", "related_reports", "hire", "retire"]


def test_explain_of_an_unknown_query_suggests_one() -> None:
    ran = omnigraph("explain", *SCHEMA, "--query", "queries.gq", "collegues")
    assert ran.code == 1
    assert "query 'collegues' not found" in ran.err
    assert "did you mean `colleagues`?" in ran.err


def test_schema_plan_lists_the_steps() -> None:
    ran = omnigraph("schema", "plan", "--from", "schema.pg", "--to", "schema-next.pg")
    assert ran.code == 0
    assert ran.out.splitlines() == [
        "• rename Pilot.hours to flight_hours",
        "• add Pilot.license: String?",
        "• extend Pilot.status with trainee",
        "3 steps, supported",
    ]


def test_schema_plan_refuses_with_exit_code_1() -> None:
    backwards = ("schema", "plan", "--from", "schema-next.pg", "--to", "schema.pg")
    ran = omnigraph(*backwards)
    assert ran.code == 1
    assert "✗ refused: [OG-MF-106] node:Pilot.status" in ran.out
    plan = omnigraph(*backwards, "--json").json
    assert plan["supported"] is False
    assert {s["kind"] for s in plan["steps"]} >= {"unsupported_change", "drop_property"}


def test_allow_data_loss_hardens_drops(tmp_path: Path) -> None:
    (tmp_path / "a.pg").write_text("node A { k: String @key  n: I32? }")
    (tmp_path / "b.pg").write_text("node A { k: String @key }")
    args = ("schema", "plan", "--from", "a.pg", "--to", "b.pg", "--json")
    assert omnigraph(*args, cwd=tmp_path).json["steps"][0]["mode"] == "soft"
    assert omnigraph(*args, "--allow-data-loss", cwd=tmp_path).json["steps"][0]["mode"] == "hard"


def test_output_is_coloured_on_a_terminal_and_plain_in_a_pipe() -> None:
    args = ("lint", *SCHEMA, "--query", "mistakes.gq")
    assert "\x1b[" in omnigraph_on_terminal(*args)
    assert "\x1b" not in omnigraph(*args).out


@pytest.mark.parametrize("name", ["schema.pg", "schema-next.pg", "queries.gq", "mistakes.gq"])
def test_the_examples_are_formatted(name: str) -> None:
    assert omnigraph("fmt", "--check", name).code == 0


def test_fmt_rewrites_in_place_and_keeps_comments(tmp_path: Path) -> None:
    path = tmp_path / "a.pg"
    path.write_text("node   A{k:String @key // the key\n}")
    assert omnigraph("fmt", "--check", "a.pg", cwd=tmp_path).code == 1
    assert path.read_text() == "node   A{k:String @key // the key\n}"
    ran = omnigraph("fmt", ".", cwd=tmp_path)
    assert (ran.code, ran.out) == (0, "changed a.pg\n1 of 1 file changed\n")
    assert path.read_text() == "node A {\n  k: String @key // the key\n}\n"
    assert omnigraph("fmt", "--check", ".", cwd=tmp_path).code == 0
    assert [p.name for p in tmp_path.iterdir()] == ["a.pg"]


def test_fmt_leaves_a_broken_file_alone_and_goes_on(tmp_path: Path) -> None:
    (tmp_path / "bad.gq").write_text("query {")
    (tmp_path / "good.pg").write_text("node A{}")
    ran = omnigraph("fmt", "bad.gq", "good.pg", "--json", cwd=tmp_path)
    assert ran.code == 1
    assert [f["status"] for f in ran.json["files"]] == ["error", "changed"]
    assert (tmp_path / "bad.gq").read_text() == "query {"


def test_fmt_reads_standard_input() -> None:
    ran = omnigraph("fmt", "-", "--language", "pg", stdin=b"node A{}")
    assert (ran.code, ran.out) == (0, "node A {}\n")
    assert omnigraph("fmt", "-").code == 2


def test_a_binary_file_given_as_query_is_refused_politely(tmp_path: Path) -> None:
    (tmp_path / "junk.gq").write_bytes(bytes(range(128)))
    ran = omnigraph("lint", "--schema", str(EXAMPLES / "schema.pg"), "--query", "junk.gq", cwd=tmp_path)
    assert ran.code == 1
    assert "Traceback" not in ran.err + ran.out
