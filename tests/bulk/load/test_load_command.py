"""`omnigraph load`, `ingest` and `jobs` for inputs that take Spark, in the session of the tests."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

import omnigraph
from omnigraph.bulk.runner import JobEvent
from omnigraph.cli.main import app
from omnigraph.cli.progress import amounts
from omnigraph.manifest.repository import open_existing
from omnigraph.recovery.jobs import JobRecord
from omnigraph.storage.address import parse_address

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "node Person { name: String @key  age: I32? }  edge Knows: Person -> Person"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A directory with a graph and two files to load."""
    omnigraph.init(tmp_path / "social.omni", SCHEMA)
    (tmp_path / "in").mkdir()
    write(tmp_path / "in" / "a.jsonl", person("Ada"), person("Bo"), '{"edge": "Knows", "from": "Ada", "to": "Cy"}')
    write(tmp_path / "in" / "b.jsonl", person("Cy"))
    return tmp_path


def person(name: str, age: object = 36) -> str:
    return json.dumps({"type": "Person", "data": {"name": name, "age": age}})


def write(path: Path, *lines: str) -> None:
    path.write_text("".join(f"{line}\n" for line in lines))


def run(*arguments: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return done.exit_code, done.stdout, done.stderr


@pytest.mark.usefixtures("spark")
class TestLoad:
    def test_a_directory_is_one_commit(self, home: Path) -> None:
        code, out, _ = run("load", home / "social.omni", "--data", home / "in", "--mode", "append", "-m", "first")
        assert code == 0
        first, *rest = out.splitlines()
        assert first.startswith("committed 4 records on main as ")
        assert rest == ["  node Person: 3", "  edge Knows: 1", "  first"]

    def test_ingest_forks_the_branch_and_prints_json(self, home: Path) -> None:
        code, out, _ = run(
            "ingest",
            home / "social.omni",
            "--branch",
            "review/1",
            "--data",
            home / "in",
            "--engine",
            "spark",
            "--json",
        )
        done = json.loads(out)
        assert code == 0
        assert (done["branch"], done["base_branch"], done["branch_created"]) == ("review/1", "main", True)
        assert done["nodes"] == [{"name": "Person", "entities_loaded": 3}]

    def test_bad_records_are_named_set_apart_and_left_out_when_asked(self, home: Path) -> None:
        write(
            home / "in" / "b.jsonl",
            person("Cy"),
            person("Di", "old"),
            '{"edge": "Knows", "from": "Di", "to": "Bo"}',
        )
        load = ("load", home / "social.omni", "--data", home / "in", "--mode", "append")
        code, _, err = run(*load)
        assert code == 1
        assert f'{home / "in" / "b.jsonl"}:2:1: Person.age is I32?: "old" is not an integer' in err
        code, out, _ = run(*load, "--bad-records", home / "bad.jsonl", "--skip-bad")
        assert code == 0
        assert "left out 2 bad records" in out
        bad = [json.loads(line) for line in (home / "bad.jsonl").read_text().splitlines()]
        assert [(Path(entry["source"]).name, entry["line"]) for entry in bad] == [("b.jsonl", 2), ("b.jsonl", 3)]

    def test_what_cannot_be_loaded_is_named(self, home: Path) -> None:
        load = ("load", home / "social.omni", "--mode", "append")
        assert "no file matches" in run(*load, "--data", home / "*.zst")[2]
        assert "there is no node type 'Persn'; did you mean" in run(*load, "--nodes", f"Persn={home}")[2]
        assert run(*load)[0] == 2
        assert run(*load, "--nodes", "Person")[0] == 2


class TestJobs:
    def test_nothing_to_tell(self, home: Path) -> None:
        assert run("jobs", home / "social.omni")[1] == "no job is running, and none was killed\n"
        assert run("jobs", home / "social.omni", "--clean")[1] == "nothing to clean\n"

    def test_what_a_killed_job_left_is_listed_and_removed(self, home: Path) -> None:
        repository = open_existing(parse_address(home / "social.omni"), read_only=False)
        location = repository.manifest.latest(None).tables["node:Person"].location
        record = JobRecord("01JOB", "load", "main", None, (location,), "ada", dt.datetime.now(dt.UTC))
        repository.objects.put(record.key, json.dumps(record.as_json()).encode())
        left = f"{location}/data/01JOB-1.lance"
        others = f"{location}/data/01OTHER-1.lance"
        for key in (left, others):
            repository.objects.put(key, b"rows")
        listed = json.loads(run("jobs", home / "social.omni", "--json")[1])["jobs"]
        assert [(job["job"], job["is_running"], job["files"]) for job in listed] == [("01JOB", False, [left])]
        cleaned = json.loads(run("jobs", home / "social.omni", "--clean", "--json")[1])["cleaned"]
        assert [job["files"] for job in cleaned] == [[left]]
        assert not repository.objects.has(left)
        assert repository.objects.has(others)


def test_progress_tells_rows_bytes_and_rate() -> None:
    event = JobEvent("j", "reading and staging", 2, 4, rows=3_000_000, bytes=350_000_000, seconds=2.0)
    assert amounts(event) == "350.0 MB, 3,000,000 rows, 1,500,000 rows/s"
    assert amounts(JobEvent("j", "checking", 0, 1)) == ""


def test_a_session_elsewhere_is_not_taken_for_the_one_asked_for(spark: SparkSession, home: Path) -> None:
    code, _, err = run(
        "load", home / "social.omni", "--data", home / "in", "--mode", "append", "--master", "spark://nowhere:7077"
    )
    assert code == 1
    assert f"a session at {spark.sparkContext.master} is active in this process" in err
