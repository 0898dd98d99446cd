"""Reading from the command line: what is asked, of which state, in which form, and what goes wrong."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.command import COMMAND, EXAMPLES, omnigraph, omnigraph_on_terminal, omnigraph_process

SCHEMA = ("--schema", str(EXAMPLES / "schema.pg"))
QUERIES = str(EXAMPLES / "queries.gq")
PILOTS = (
    "query pilots() { match { $p: Pilot } return { $p.call, $p.hours as hours, $p.born } order { $p.call asc } }"
)
ONE = "query one($call: String) { match { $p: Pilot { call: $call } } return { $p.status } }"
CALLS = ["ace", "bee", "cob", "dee"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory with one graph that holds the example's people, and one pilot more on a branch."""
    path = tmp_path_factory.mktemp("queries")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMNIGRAPH_EMBED_PROVIDER", "mock")
        for args in (
            ("init", *SCHEMA, "g.omni"),
            ("load", "--data", str(EXAMPLES / "people.jsonl"), "--mode", "append"),
            ("branch", "create", "review"),
            ("mutate", "-e", 'query q() { insert Pilot { call: "eve", status: "active" } }', "--branch", "review"),
        ):
            ran = omnigraph(*args, cwd=path)
            assert (ran.code, ran.err) == (0, "")
        yield path


def without_box(text: str) -> str:
    """A usage error without the box that is drawn around it."""
    return " ".join(text.replace("│", " ").split())


class TestForms:
    def test_a_table_is_the_default(self, folder: Path) -> None:
        ran = omnigraph("query", "-e", PILOTS, cwd=folder)
        assert (ran.code, ran.err) == (0, "")
        assert ran.out.splitlines() == [
            "4 rows from branch main via pilots",
            "p.call | hours | p.born",
            "-------+-------+-----------",
            "ace    | 120   | 1990-02-01",
            "bee    | 80    | null",
            "cob    | null  | null",
            "dee    | 80    | null",
        ]

    def test_json_names_the_commit_that_was_read(self, folder: Path) -> None:
        ran = omnigraph("query", "-e", PILOTS, "--json", cwd=folder)
        head = omnigraph("snapshot", "--json", cwd=folder).json["graph_commit_id"]
        assert (ran.json["query_name"], ran.json["target"], ran.json["row_count"]) == (
            "pilots",
            {"branch": "main"},
            4,
        )
        assert ran.json["columns"] == ["p.call", "hours", "p.born"]
        assert ran.json["rows"][0] == {"hours": 120, "p.born": "1990-02-01", "p.call": "ace"}
        assert ran.json["graph_commit_id"] == head
        assert omnigraph("query", "-e", PILOTS, "--format", "json", cwd=folder).out == ran.out

    def test_jsonl_csv_and_kv(self, folder: Path) -> None:
        lines = omnigraph("query", "-e", PILOTS, "--format", "jsonl", cwd=folder).out.splitlines()
        assert [json.loads(line)["p.call"] for line in lines] == CALLS
        described = omnigraph(
            "query", "-e", PILOTS, "--format", "jsonl", "--metadata", cwd=folder
        ).out.splitlines()
        assert json.loads(described[0])["kind"] == "metadata"
        assert described[1:] == lines
        assert omnigraph("query", "-e", PILOTS, "--metadata", cwd=folder).code == 2
        shown = omnigraph("query", "-e", PILOTS, "--format", "csv", cwd=folder).out
        assert [row[0] for row in csv.reader(io.StringIO(shown))] == ["p.call", *CALLS]
        assert (
            "row 1\np.call: ace\nhours: 120\n"
            in omnigraph("query", "-e", PILOTS, "--format", "kv", cwd=folder).out
        )

    def test_arrow_and_parquet_go_to_a_pipe_or_a_file(self, folder: Path, tmp_path: Path) -> None:
        ask = ("query", "-e", PILOTS, "--format")
        stream = omnigraph_process(*ask, "arrow", cwd=folder).stdout
        table = pa.ipc.open_stream(stream).read_all()
        assert table.column("p.call").to_pylist() == CALLS
        assert table.schema.field("p.born").type == pa.date32()
        assert pq.read_table(io.BytesIO(omnigraph(*ask, "parquet", cwd=folder).stdout)).equals(table)
        out = tmp_path / "pilots.parquet"
        ran = omnigraph(*ask, "parquet", "--out", str(out), cwd=folder)
        assert (ran.code, ran.out, ran.err) == (0, "", "")
        assert pq.read_table(out).equals(table)

    def test_text_goes_to_a_file_too(self, folder: Path, tmp_path: Path) -> None:
        out = tmp_path / "pilots.csv"
        ran = omnigraph("query", "-e", PILOTS, "--format", "csv", "--out", str(out), cwd=folder)
        assert (ran.code, ran.out) == (0, "")
        assert out.read_text() == omnigraph("query", "-e", PILOTS, "--format", "csv", cwd=folder).out

    def test_a_terminal_gets_no_binary(self, folder: Path) -> None:
        shown = omnigraph_on_terminal("query", "-e", PILOTS, "--format", "arrow", cwd=folder)
        plain = without_box(re.sub(r"\x1b\[[0-9;]*m", "", shown))
        assert "arrow is binary, and standard output is a terminal; add --out FILE" in plain

    def test_a_reader_that_has_seen_enough_is_no_error_message(self, folder: Path) -> None:
        scans = " ".join(f"${name}: Pilot" for name in "abcdefg")
        many = (
            f"query q() {{ match {{ {scans} }} return {{ {', '.join(f'${name}.call' for name in 'abcdefg')} }} }}"
        )
        with subprocess.Popen(
            [*COMMAND, "query", "-e", many, "--format", "jsonl"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
        ) as process:
            assert process.stdout
            assert process.stderr
            assert b"a.call" in process.stdout.readline()
            process.stdout.close()
            assert process.stderr.read() == b""
            process.wait(timeout=60)


class TestQuestions:
    def test_a_file_with_several_queries_needs_a_name(self, folder: Path) -> None:
        ran = omnigraph("query", "unplaced", "--query", QUERIES, "--json", cwd=folder)
        assert ran.code == 0
        assert {row["p.call"] for row in ran.json["rows"]} == {"cob", "dee"}
        unnamed = omnigraph("query", "--query", QUERIES, cwd=folder)
        assert unnamed.code == 1
        assert "name one of: colleagues, unplaced" in unnamed.err

    def test_parameters_come_as_json_or_from_a_file(self, folder: Path, tmp_path: Path) -> None:
        file = tmp_path / "params.json"
        file.write_text('{"call": "cob"}')
        for given in (("--params", '{"call": "cob"}'), ("--params-file", str(file))):
            ran = omnigraph("query", "-e", ONE, *given, "--json", cwd=folder)
            assert ran.json["rows"] == [{"p.status": "on-leave"}]
        assert omnigraph("query", "-e", ONE, "--params", "[1]", cwd=folder).code == 2
        both = omnigraph("query", "-e", ONE, "--params", "{}", "--params-file", str(file), cwd=folder)
        assert (both.code, "not both" in without_box(both.err)) == (2, True)
        missing = omnigraph("query", "-e", ONE, "--json", cwd=folder)
        assert missing.code == 1
        assert "is required" in missing.json["parameters"]["call"]
        unknown = omnigraph("query", "-e", ONE, "--params", '{"call": "cob", "cal": "ace"}', cwd=folder)
        assert unknown.code == 1
        assert "parameter 'cal' is not declared by the query; did you mean `call`?" in unknown.err

    def test_a_mutation_is_refused(self, folder: Path) -> None:
        ran = omnigraph("query", "retire", "--query", QUERIES, "--params", '{"call": "ace"}', cwd=folder)
        assert ran.code == 1
        assert "Q106" in ran.err
        assert "run it with `mutate`" in ran.err

    def test_a_mistake_is_shown_in_the_text(self, folder: Path) -> None:
        ran = omnigraph("query", "-e", "query q() { match { $p: Pilt } return { $p } }", cwd=folder)
        assert (ran.code, ran.out) == (1, "")
        assert "did you mean `Pilot`?" in ran.err

    def test_without_a_query_the_usage_is_explained(self, folder: Path) -> None:
        for args in ((), ("unplaced",)):
            ran = omnigraph("query", *args, cwd=folder)
            assert ran.code == 2
            assert "--query FILE or -e TEXT" in without_box(ran.err)
        assert omnigraph("query", "-e", PILOTS, "--query", QUERIES, cwd=folder).code == 2

    @pytest.mark.parametrize(
        "wrong",
        [
            ("--format", "xml"),
            ("--branch", "review", "--snapshot", "1"),
            ("--timeout", "0"),
            ("--timeout", "soon"),
            ("--memory-limit", "lots"),
            ("--memory-limit", "-1"),
            ("--out", "missing/x.csv"),
            ("--out", "."),
        ],
    )
    def test_wrong_options_are_usage_errors(self, wrong: tuple[str, ...], folder: Path) -> None:
        ran = omnigraph("query", "-e", PILOTS, *wrong, cwd=folder)
        assert (ran.code, ran.out) == (2, "")

    def test_two_formats_are_a_usage_error_in_json(self, folder: Path) -> None:
        ran = omnigraph("query", "-e", PILOTS, "--json", "--format", "csv", cwd=folder)
        assert (ran.code, ran.json["code"], ran.err) == (2, "usage", "")
        assert "give --json or --format csv, not both" in ran.json["error"]


class TestTargets:
    def test_a_branch_has_its_own_rows(self, folder: Path) -> None:
        ran = omnigraph("query", "-e", PILOTS, "--branch", "review", "--json", cwd=folder)
        assert ran.json["target"] == {"branch": "review"}
        assert [row["p.call"] for row in ran.json["rows"]] == [*CALLS, "eve"]
        missing = omnigraph("query", "-e", PILOTS, "--branch", "reviw", cwd=folder)
        assert (missing.code, "did you mean 'review'?" in missing.err) == (1, True)

    def test_a_snapshot_is_a_commit_or_a_version(self, folder: Path) -> None:
        newest, oldest = omnigraph("commit", "list", "--json", cwd=folder).json["commits"]
        ran = omnigraph("query", "-e", PILOTS, "--snapshot", oldest["graph_commit_id"], "--json", cwd=folder)
        assert (ran.json["rows"], ran.json["target"]) == ([], {"snapshot": oldest["graph_commit_id"]})
        version = omnigraph("snapshot", "--json", cwd=folder).json["manifest_version"]
        ran = omnigraph("query", "-e", PILOTS, "--snapshot", str(version), "--json", cwd=folder)
        assert (ran.json["row_count"], ran.json["target"]) == (4, {"snapshot": version})
        assert ran.json["graph_commit_id"] == newest["graph_commit_id"]
        for nothing in ("999999", "9" * 5000, "01ARZ3NDEKTSV4RRFFQ69G5FAV"):
            assert omnigraph("query", "-e", PILOTS, "--snapshot", nothing, cwd=folder).code == 1

    def test_the_graph_is_named_with_store(self, folder: Path) -> None:
        ran = omnigraph("query", "-e", PILOTS, "--store", str(folder / "g.omni"), "--format", "csv")
        assert len(ran.out.splitlines()) == 5
        assert omnigraph("query", "-e", PILOTS, "--store", "nowhere.omni").code == 1


class TestLimits:
    def test_within_its_limits_a_query_runs(self, folder: Path) -> None:
        for size in ("512MB", "1.5 GiB", "100000000", "64m"):
            ran = omnigraph("query", "-e", PILOTS, "--timeout", "60", "--memory-limit", size, cwd=folder)
            assert ran.code == 0

    def test_beyond_its_memory_a_query_gives_up(self, folder: Path) -> None:
        ran = omnigraph("query", "-e", PILOTS, "--memory-limit", "1B", cwd=folder)
        assert (ran.code, ran.out) == (1, "")
        assert "memory" in ran.err


class TestExplain:
    def test_a_graph_takes_the_place_of_a_schema(self, folder: Path) -> None:
        ran = omnigraph("explain", "-e", PILOTS, cwd=folder)
        assert (ran.code, ran.err) == (0, "")
        assert ran.out.splitlines()[0] == "pilots()  read"
        assert "Pilot" in ran.out
        assert "reads   node:Pilot" in ran.out

    def test_all_queries_of_a_file(self, folder: Path) -> None:
        ran = omnigraph("explain", "--query", QUERIES, "--json", cwd=folder)
        assert [query["name"] for query in ran.json["queries"]] == [
            "colleagues",
            "unplaced",
            "related_reports",
            "hire",
            "retire",
        ]
        assert all(query["plan"] for query in ran.json["queries"])

    def test_analyze_runs_the_query(self, folder: Path) -> None:
        ran = omnigraph("explain", "-e", ONE, "--params", '{"call": "ace"}', "--analyze", cwd=folder)
        assert ran.code == 0
        assert "ms" in ran.out
        review = omnigraph("explain", "-e", PILOTS, "--analyze", "--branch", "review", cwd=folder)
        assert review.code == 0
        several = omnigraph("explain", "--query", QUERIES, "--analyze", cwd=folder)
        assert (several.code, "name one of: colleagues" in without_box(several.err)) == (2, True)

    @pytest.mark.parametrize(
        "more", [("--analyze",), ("--branch", "main"), ("--params", "{}"), ("--store", "g.omni")]
    )
    def test_a_schema_alone_cannot_be_run(self, more: tuple[str, ...], folder: Path) -> None:
        ran = omnigraph("explain", *SCHEMA, "-e", PILOTS, *more, cwd=folder)
        assert (ran.code, "leave out --schema" in without_box(ran.err)) == (2, True)
