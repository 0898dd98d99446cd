"""Errors are fields first: they can be shown, sent as JSON, and carried across processes."""

from __future__ import annotations

import copy
import pickle

import pytest

from omnigraph.errors import (
    Diagnostic,
    LanguageError,
    MigrationError,
    OmniError,
    ParameterError,
    QueryError,
    SchemaError,
)
from omnigraph.lang.schema.resolve import compile_schema
from omnigraph.lang.source import decode


def problem(code: str = "P001", line: int = 1) -> Diagnostic:
    return Diagnostic(code, "parse error", "wrong", "s.pg", line, 3, "a bad thing", (2, 5), "do better")


ERRORS: list[OmniError] = [
    OmniError("plain"),
    LanguageError([problem()]),
    SchemaError([problem(), problem("S101", 2)], omitted=4),
    QueryError((problem(),)),
    ParameterError("find", {"age": "is missing", "name": "is null"}),
    MigrationError([{"entity": "node:A.x", "reason": "no", "code": "OG-MF-106"}, {"entity": "e", "reason": "r"}]),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_errors_survive_pickling(error: OmniError, protocol: int) -> None:
    again = pickle.loads(pickle.dumps(error, protocol))
    assert type(again) is type(error)
    assert vars(again) == vars(error)
    assert str(again) == str(error)
    assert again.as_json() == error.as_json()


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_errors_survive_copying(error: OmniError) -> None:
    assert str(copy.deepcopy(error)) == str(error)


def test_a_real_schema_error_survives_pickling() -> None:
    with pytest.raises(SchemaError) as raised:
        compile_schema("node A { x: Strin }\nedge E: A -> B")
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)


def test_every_error_is_an_omnigraph_error() -> None:
    with pytest.raises(OmniError):
        decode(b"\xff", "s.pg")


def test_a_language_error_shows_every_problem() -> None:
    error = SchemaError([problem(), problem("S101", 2)], omitted=4)
    assert (error.code, error.line, error.column) == ("P001", 1, 3)
    first, second, rest = str(error).split("\n\n")
    assert first.startswith("parse error: P001: wrong\n --> s.pg:1:3\n")
    assert second.startswith("parse error: S101: wrong\n --> s.pg:2:3\n")
    assert rest == "… and 4 more"


def test_a_language_error_as_json() -> None:
    assert SchemaError([problem()]).as_json() == {
        "error": "parse error: P001: wrong",
        "diagnostics": [
            {
                "code": "P001",
                "stage": "parse error",
                "message": "wrong",
                "source": "s.pg",
                "line": 1,
                "column": 3,
                "help": "do better",
            }
        ],
        "omitted": 0,
    }


def test_a_parameter_error_names_the_query_and_each_parameter() -> None:
    error = ParameterError("find", {"age": "is missing", "name": "is null"})
    assert str(error) == "cannot run query 'find': parameter 'age' is missing; parameter 'name' is null"
    assert error.as_json()["parameters"] == {"age": "is missing", "name": "is null"}


def test_a_migration_error_leads_with_the_first_code_and_counts_the_rest() -> None:
    coded = {"entity": "node:A.x", "reason": "no", "code": "OG-MF-106"}
    plain = {"entity": "edge:E", "reason": "its endpoints cannot change"}
    assert str(MigrationError([coded, plain])) == "[OG-MF-106] node:A.x: no (and 1 more)"
    assert str(MigrationError([plain])) == "edge:E: its endpoints cannot change"
    assert MigrationError([coded, plain]).as_json()["unsupported_changes"] == [coded, plain]
