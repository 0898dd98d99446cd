"""The documentation tells the truth: its examples run, its pages are current, its links lead somewhere."""

from __future__ import annotations

import doctest
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
from docs.generate import PAGES, broken_links

from omnigraph import lang
from omnigraph.cli.main import app
from omnigraph.lang.query.compile import parse_query_file
from omnigraph.lang.schema.resolve import compile_schema

ROOT = Path(__file__).parent.parent
GUIDES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)


def blocks(path: Path, language: str) -> list[str]:
    """The code blocks of a page in one language."""
    return [body for tag, body in BLOCK.findall(path.read_text(encoding="utf-8")) if tag == language]


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
