"""The command as a process of its own: the same output and exit codes as the rest of these tests see."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.cli.command import EXAMPLES, omnigraph, omnigraph_process

SCHEMA = str(EXAMPLES / "schema.pg")
QUERIES = str(EXAMPLES / "queries.gq")
INSTALLED = Path(sys.executable).with_name("omnigraph")
RETIRE = ("mutate", "retire", "--query", QUERIES, "--params", '{"call": "cob"}')


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with one empty graph."""
    path = tmp_path_factory.mktemp("processes")
    assert omnigraph("init", "--schema", SCHEMA, "g.omni", cwd=path).code == 0
    return path


@pytest.mark.parametrize(
    ("code", "args", "stdin"),
    [
        pytest.param(0, ("snapshot", "--json"), b"", marks=pytest.mark.long),
        (0, ("fmt", "-", "--language", "pg"), "node A{} // é".encode()),
        (1, ("lint", "--schema", SCHEMA, "--query", str(EXAMPLES / "mistakes.gq")), b""),
        pytest.param(1, ("branch", "delete", "M\udcfcller"), b"", marks=pytest.mark.long),
        (1, ("load", "--data", "-", "--mode", "merge", "--json"), b"nonsense\n"),
        pytest.param(2, ("lint", "--schema", "nowhere.pg"), b"", marks=pytest.mark.long),
        (2, ("no-such-command",), b""),
        (4, (*RETIRE, "--if-commit", "01ARZ3NDEKTSV4RRFFQ69G5FAV"), b""),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else None,
)
def test_a_process_gives_what_the_other_tests_see(
    folder: Path, code: int, args: tuple[str, ...], stdin: bytes
) -> None:
    ran = omnigraph_process(*args, stdin=stdin, cwd=folder)
    assert ran == omnigraph(*args, stdin=stdin, cwd=folder)
    assert ran.code == code


def test_the_installed_command() -> None:
    assert omnigraph_process("version", command=[str(INSTALLED)]) == omnigraph("version")
