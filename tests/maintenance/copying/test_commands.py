"""`omnigraph clone`, `backup`, `backups` and `restore`."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.command import omnigraph as command
from tests.maintenance.copying.scenes import names, small
from tests.stores import local_store

import omnigraph


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with a graph in it."""
    small(local_store(tmp_path))
    return tmp_path


def test_a_clone(home: Path) -> None:
    done = command("clone", "g", "copy", cwd=home)
    assert done.code == 0
    assert "copied" in done.out
    assert "branch dev at" in done.out
    assert names(omnigraph.open(home / "copy"), "dev") == {"Ada", "Bo"}
    again = command("clone", "g", "copy", "--json", cwd=home).json
    assert (again["files"], again["target"]) == (0, str(home / "copy"))
    assert again["files_kept"] > 0


def test_a_part_of_a_graph(home: Path) -> None:
    found = command("clone", "g", "part", "--at", "v1", "--no-history", "--json", cwd=home).json
    assert list(found["branches"]) == ["main"]
    assert found["history"] is False
    found = command("clone", "g", "dev", "--branch", "dev", "--json", cwd=home).json
    assert list(found["branches"]) == ["main", "dev"]


def test_a_refusal(home: Path) -> None:
    (home / "taken").mkdir()
    (home / "taken" / "letter.txt").write_text("dear")
    done = command("clone", "g", "taken", cwd=home)
    assert done.code == 1
    assert "choose another place" in done.err
    assert "error" in command("clone", "g", "g", "--json", cwd=home).json
    assert command("restore", "taken", "there", cwd=home).code == 1
    assert command("backup", "g", "b", "--keep", "0", cwd=home).code == 2


def test_backups(home: Path) -> None:
    first = command("backup", "g", "b", "--json", cwd=home).json
    second = command("backup", "g", "b", cwd=home)
    assert second.out.startswith("backed up")
    listed = command("backups", "b", "--json", cwd=home).json["backups"]
    assert listed[0]["id"] == first["id"]
    assert first["id"] in command("backups", "b", cwd=home).out
    kept = command("backup", "g", "b", "--keep", "2", "--json", cwd=home).json
    assert kept["removed"] == [first["id"]]
    restored = command("restore", "b", "back", "--backup", kept["id"], cwd=home)
    assert restored.out.startswith("restored")
    assert names(omnigraph.open(home / "back"), "dev") == {"Ada", "Bo"}
    assert command("restore", "b", "again", "--backup", first["id"], cwd=home).code == 1
    assert command("restore", "b", "again", "--json", cwd=home).json["commits"] == 3
