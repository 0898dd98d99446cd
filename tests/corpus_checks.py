"""Comparing what a scenario expects with what happens, and saying how they differ."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

from tests.corpus_format import Run, Section, Step
from tests.corpus_text import error_lines, matches_error, matches_refusal, refusal_lines

from omnigraph.errors import DataError, LanguageError, ParameterError

_T = TypeVar("_T")


class Mismatch(Exception):
    """What a scenario expects is not what happens."""

    def __init__(self, section: Section, reason: str, expected: list[str], actual: list[str]) -> None:
        blocks = [f"{section.place}: {reason}"]
        for title, lines in (("expected", expected), ("actual", actual)):
            if lines:
                blocks.append("\n".join([f"  {title}:", *(f"    {line}" for line in lines)]))
        super().__init__("\n".join(blocks))


def attempted(step: Step, action: Callable[[], _T]) -> _T | None:
    """Do what the step says; None if it failed, as expected."""
    expected = step.expected_mistake
    try:
        done = action()
    except LanguageError as error:
        check_error(step.section, expected, error)
        return None
    if expected is not None:
        raise Mismatch(expected, "this succeeds, but should fail", expected.lines, [])
    return done


def written(section: Section, run: Run, action: Callable[[], _T]) -> _T | None:
    """Do what the step says to the graph; None if its data was refused, as expected."""
    expected = run.expectations.get("error")
    try:
        done = action()
    except DataError as error:
        if expected is None:
            raise Mismatch(section, "this is refused, but should not", [], refusal_lines(error)) from None
        if not matches_refusal(expected, error):
            raise Mismatch(expected, "other problems", expected.lines, refusal_lines(error)) from None
        return None
    if expected is not None:
        raise Mismatch(expected, "this succeeds, but should be refused", expected.lines, [])
    return done


def check_error(section: Section, expected: Section | None, error: LanguageError | ParameterError) -> None:
    actual = error_lines(error)
    if expected is None:
        raise Mismatch(section, "this fails, but should not", [], str(error).splitlines())
    if not matches_error(expected, error):
        raise Mismatch(expected, "other problems", expected.lines, actual)


def expect(run: Run, kind: str, actual: list[str]) -> None:
    """Compare the lines of an expectation, if the run has it."""
    section = run.expectations.get(kind)
    if section is None:
        return
    expected = [line.rstrip() for line in section.body.splitlines()]
    if expected != ([] if actual == [""] else actual):
        raise Mismatch(section, f"other {kind}", expected, actual)


def json_object(section: Section, line: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except ValueError as error:
        raise section.wrong(f"not JSON: {line} ({error})") from None
    if not isinstance(value, dict):
        raise section.wrong(f"not a JSON object: {line}")
    return value
