"""The registry of codes is complete: every code in it can be seen in a scenario, every code in use is in it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest
from tests.corpus_format import is_about_data, read_scenario

import omnigraph
from omnigraph.errors import LanguageError
from omnigraph.lang import codes
from omnigraph.lang.source import decode

CORPUS: Final = Path(__file__).parent / "corpus"
SOURCES: Final = sorted(Path(omnigraph.__file__).parent.rglob("*.py"))
CODE: Final = re.compile(r"[PSCMTQL]\d{1,3}|OG-[A-Z]{2}-\d{3}")

UNREADABLE: Final = {"P005", "C208"}
"""Codes that take bytes which are no text, or megabytes of it: no scenario can show them."""


@cache
def _expected_codes() -> frozenset[str]:
    """The codes that scenarios expect, of errors, findings and migration steps."""
    steps = (step for path in CORPUS.rglob("*.gqt") for step in read_scenario(path, CORPUS).steps)
    sections = (section for step in steps for run in step.runs for section in run.expectations.values())
    texts = (section for section in sections if section.kind != "error" or not is_about_data(section))
    return frozenset(code for section in texts for line in section.lines for code in _codes_of(section.kind, line))


def _codes_of(kind: str, line: str) -> list[str]:
    match kind:
        case "error":
            return [] if line.startswith("param ") else line.split()[:1]
        case "findings":
            return [word for word in line.split()[1:2] if word != "-"]
        case "steps":
            return re.findall(r"\[([A-Z0-9-]+)\]", line)
        case _:
            return []


def _written_codes(path: Path) -> Iterator[str]:
    """The string constants of a module that look like a code."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and CODE.fullmatch(node.value):
            yield node.value


@pytest.mark.parametrize("code", sorted(codes.ALL.keys() - codes.RESERVED - UNREADABLE))
def test_every_code_has_a_scenario(code: str) -> None:
    assert code in _expected_codes()


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_every_code_in_use_is_registered(path: Path) -> None:
    assert set(_written_codes(path)) <= codes.ALL.keys()


def test_every_registered_code_is_in_use() -> None:
    used = {code for path in SOURCES if path != Path(codes.__file__) for code in _written_codes(path)}
    assert codes.ALL.keys() - used == codes.RESERVED


def test_every_code_has_a_meaning_of_its_own() -> None:
    assert len(set(codes.ALL.values())) == len(codes.ALL)


def test_scenarios_expect_registered_codes_only() -> None:
    assert _expected_codes() - codes.ALL.keys() == set()


def test_a_file_that_is_no_text_has_a_code() -> None:
    with pytest.raises(LanguageError) as raised:
        decode(b"query \xff", "bad.gq")
    assert raised.value.code == "P005"
