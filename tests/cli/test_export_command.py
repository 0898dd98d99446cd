"""Exporting from the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tests.cli.command import EXAMPLES, MAIN, omnigraph, omnigraph_process

PEOPLE = str(EXAMPLES / "people.jsonl")
SCHEMA = str(EXAMPLES / "schema.pg")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with one graph that holds the example's people."""
    path = tmp_path_factory.mktemp("exports")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMNIGRAPH_EMBED_PROVIDER", "mock")
        assert omnigraph("init", "--schema", SCHEMA, "g.omni", cwd=path).code == 0
        assert omnigraph("load", "--data", PEOPLE, "--mode", "append", cwd=path).code == 0
    return path


def test_records_go_to_standard_output(folder: Path, tmp_path: Path) -> None:
    ran = omnigraph("export", "--ordered", cwd=folder)
    assert (ran.code, ran.err) == (0, "")
    records = [json.loads(line) for line in ran.out.splitlines()]
    assert len(records) == 13
    assert omnigraph("init", "--schema", SCHEMA, "h.omni", cwd=tmp_path).code == 0
    loaded = omnigraph(
        "load", "--data", "-", "--mode", "overwrite", "--json", stdin=ran.out.encode(), cwd=tmp_path
    )
    assert loaded.json["total_entities"] == 13
    assert omnigraph("export", "--ordered", cwd=tmp_path).out == ran.out


def test_types_branches_and_snapshots_can_be_chosen(folder: Path) -> None:
    bases = omnigraph("export", "--type", "Base", cwd=folder)
    assert {json.loads(line)["type"] for line in bases.out.splitlines()} == {"Base"}
    assert omnigraph("export", "--snapshot", "1", cwd=folder).out == ""
    unknown = omnigraph("export", "--type", "Bas", cwd=folder)
    assert (unknown.code, unknown.err) == (1, "error: there is no type 'Bas'; did you mean `Base`?\n")
    assert "there is no branch 'no'" in omnigraph("export", "--branch", "no", cwd=folder).err


def test_a_file_and_a_directory(folder: Path, tmp_path: Path) -> None:
    one = tmp_path / "all.jsonl"
    ran = omnigraph("export", "--out", str(one), cwd=folder)
    assert ran.code == 0
    assert ran.out.startswith("exported 13 records of main at ")
    assert len(one.read_bytes().splitlines()) == 13
    again = omnigraph("export", "--out", str(one), "--json", cwd=folder)
    assert (again.code, again.json["error"]) == (1, f"cannot export to {one}: it exists; force replaces it")
    assert omnigraph("export", "--out", str(one), "--force", cwd=folder).code == 0
    many = omnigraph("export", "--out", f"{tmp_path}/parts/", "--json", cwd=folder).json
    assert (many["engine"], many["format"], many["total_entities"]) == ("local", "jsonl", 13)
    assert all((tmp_path / "parts" / name).is_file() for name in many["files"])
    parquet = omnigraph("export", "--out", str(tmp_path / "pq"), "--format", "parquet", "--json", cwd=folder).json
    assert {Path(name).suffix for name in parquet["files"]} == {".parquet"}
    assert (tmp_path / "pq" / "_SUCCESS").is_file()


@pytest.mark.parametrize(
    "options",
    [
        ("--format", "parquet"),
        ("--engine", "spark"),
        ("--master", "local[1]"),
        ("--json",),
        ("--force",),
        ("--branch", "main", "--snapshot", "1"),
        ("--format", "xml"),
    ],
)
def test_options_that_do_not_go_together(folder: Path, options: tuple[str, ...]) -> None:
    assert omnigraph("export", *options, cwd=folder).code == 2


def test_a_reader_that_stops_early_is_no_error_to_talk_about(folder: Path) -> None:
    piped = f'"{sys.executable}" -c "{MAIN}" export g.omni | true'
    ran = omnigraph_process(cwd=folder, command=["bash", "-c", piped])
    assert (ran.code, ran.out, ran.err) == (0, "", "")
