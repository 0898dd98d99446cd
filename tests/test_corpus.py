"""Every scenario of `tests/corpus` does what it says; every code of the schema language has a scenario."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from tests.corpus_format import read_scenario
from tests.corpus_runner import ENGINES, OpenEngine, run_scenario

from omnigraph.lang import codes

ROOT = Path(__file__).parent / "corpus"
FILES = sorted(ROOT.rglob("*.gqt"))

NOT_TEXT = {
    "P004": "takes megabytes: tests/lang/test_lexer.py",
    "P005": "takes bytes that are no text: tests/lang/test_source.py",
    "C208": "takes 50,000 properties: tests/lang/schema/test_limits.py",
}
"""Codes that no readable scenario can show, and the tests that show them instead."""


def _cases() -> list[object]:
    """Each file once to compile, and once for each engine."""
    cases: list[object] = []
    for path in FILES:
        name = path.relative_to(ROOT).with_suffix("").as_posix()
        cases.append(pytest.param(path, None, id=name))
        cases.extend(pytest.param(path, engine, id=f"{name}@{title}") for title, engine in ENGINES.items())
    return cases


@pytest.mark.parametrize(("path", "engine"), _cases())
def test_scenario(path: Path, engine: OpenEngine | None) -> None:
    failures = run_scenario(read_scenario(path, ROOT), engine)
    if failures:
        pytest.fail("\n\n".join(failures), pytrace=False)


@cache
def _shown_codes() -> frozenset[str]:
    """The codes that the `--- error` sections of all scenarios expect."""
    errors = [step.expected_error for path in FILES for step in read_scenario(path, ROOT).steps]
    return frozenset(line.split()[0] for error in errors if error is not None for line in error.lines)


@pytest.mark.parametrize("code", sorted((codes.SYNTAX | codes.SCHEMA).keys() - NOT_TEXT.keys()))
def test_every_schema_code_has_a_scenario(code: str) -> None:
    assert code in _shown_codes()
