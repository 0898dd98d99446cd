"""The documentation tells the truth: its examples run, its pages are current, its links lead somewhere."""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shlex
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
from docs.generate import PAGES, broken_links
from typer.testing import CliRunner

from omnigraph import lang
from omnigraph.cli.main import app
from omnigraph.lang.query.compile import parse_query_file
from omnigraph.lang.schema.resolve import compile_schema

ROOT = Path(__file__).parent.parent
GUIDES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLE = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)


def blocks(path: Path, language: str) -> list[str]:
    """The code blocks of a page in one language."""
    return [body for tag, body in BLOCK.findall(path.read_text(encoding="utf-8")) if tag == language]


@pytest.mark.parametrize("path", GUIDES, ids=lambda p: p.name)
def test_examples_print_what_they_say(path: Path) -> None:
    for example, said in EXAMPLE.findall(path.read_text(encoding="utf-8")):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(example, path.name, "exec"), {})
        assert printed.getvalue() == said


def test_the_docstring_example_runs() -> None:
    assert doctest.testmod(lang).failed == 0


@pytest.mark.parametrize("path", GUIDES, ids=lambda p: p.name)
def test_schemas_and_queries_in_the_guides_parse(path: Path) -> None:
    for schema in blocks(path, "pg"):
        compile_schema(schema)
    for queries in blocks(path, "gq"):
        parse_query_file(queries)


def test_generated_pages_are_current() -> None:
    for path, make in PAGES.items():
        assert path.read_text(encoding="utf-8") == make(), f"run `make docs` to renew {path.name}"


ID = re.compile(r"\b[0-9A-HJKMNP-TV-Z]{26}\b")


@pytest.mark.parametrize("page", ["quickstart.md", "loading.md"])
def test_console_blocks_print_what_they_say(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command of the page, one after the other, in a copy of its files; ids differ each time."""
    place = shutil.copytree(ROOT / "examples/flights", tmp_path / "flights")
    monkeypatch.chdir(place)
    shown = "".join(blocks(ROOT / "docs" / page, "console"))
    steps = re.findall(r"^\$ omnigraph ([^\n]+)\n((?:(?!\$ )[^\n]*\n)*)", shown, re.MULTILINE)
    assert len(steps) > 6
    for words, said in steps:
        done = CliRunner().invoke(app, shlex.split(words))
        fails = said.startswith("error: ")
        assert done.exit_code == (1 if fails else 0), done.output
        printed = done.stderr if fails else done.stdout
        assert ID.sub("ID", printed).replace(f"{place}/", "") == said, words


def test_the_mapping_file_is_the_one_that_is_shown() -> None:
    (shown,) = blocks(ROOT / "docs/loading.md", "yaml")
    assert (ROOT / "examples/flights/map.yaml").read_text(encoding="utf-8").endswith(f"\n{shown}")


COMMAND = re.compile(r"`omnigraph ([^`\n]+)`|^\$ omnigraph ([^\n]+)", re.MULTILINE)
SAYING = [*GUIDES, *sorted((ROOT / "docs/dev").glob("*.md")), *sorted((ROOT / "src").rglob("*.py"))]


@cache
def whole_program() -> Any:
    """The command line as a tree of commands."""
    return typer.main.get_command(app)


def missing_from(line: str) -> list[str]:
    """What a line of the shell names that the command line does not have."""
    command = whole_program()
    words = line.split()
    while words and hasattr(command, "commands"):
        if words[0] not in command.commands:
            return [] if words[0].startswith("-") else [words[0]]
        command = command.commands[words.pop(0)]
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    return [word for word in words if re.fullmatch("--[a-z-]+", word) and word not in known]


def test_commands_that_are_named_exist() -> None:
    """In the documentation, in error messages and in remedies."""
    named = [(path, a or b) for path in SAYING for a, b in COMMAND.findall(path.read_text(encoding="utf-8"))]
    assert len(named) > 20
    assert [(path.name, line, missing) for path, line in named if (missing := missing_from(line))] == []


def test_a_command_that_is_missing_is_noticed() -> None:
    assert missing_from("merge main") == ["merge"]
    assert missing_from("branch lst") == ["lst"]
    assert missing_from("load g.omni --data x --mod merge") == ["--mod"]
    assert missing_from("load g.omni --data x --mode merge") == []


def test_links_lead_somewhere() -> None:
    assert broken_links() == []
