"""The reads of the scenarios give the same rows on Spark, but for those that are refused, which are listed here.

By default these are the first read with each construct and some more, with `OMNIGRAPH_ALL_SPARK_QUERIES=1` all.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.corpus_engine import GraphEngine, _AnyModel, shown_row
from tests.corpus_format import read_scenario
from tests.corpus_runner import OpenEngine, run_scenario
from tests.spark.queries.answers import Question, problems, quick_session

import omnigraph
from omnigraph.lang.values import ValueType

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2] / "corpus"
ALL = os.environ.get("OMNIGRAPH_ALL_SPARK_QUERIES") == "1"
ALSO_EVERY = 6
REFUSED: Mapping[str, str] = {}
"""Reads that Spark cannot run, by scenario and number, with the construct that the refusal names: none today."""


class _Asking(GraphEngine):
    """A graph on disk that remembers what it was asked."""

    def __init__(self, schema: str, scenario: str, place: Path, questions: list[Question]) -> None:
        self.scenario, self.questions = scenario, questions
        created = omnigraph.init(str(place / f"{len(list(place.iterdir()))}.omni"), schema)
        self.graph = omnigraph.open(created.address, embedder=_AnyModel(created.catalog))

    def query(self, text: str, name: str | None, params: Mapping[str, Any]) -> list[dict[str, Any]]:
        number = 1 + sum(one.name.startswith(f"{self.scenario}#") for one in self.questions)
        asked = Question.of(f"{self.scenario}#{number}", self.graph, text, params, name)
        self.questions.append(asked)
        return [shown_row(row) for row in asked.expected.dictionaries]


def _questions(place: Path) -> list[Question]:
    """The reads of all scenarios that say what rows they give."""
    questions: list[Question] = []
    for path in sorted(ROOT.rglob("*.gqt")):
        if "--- rows" in path.read_text(encoding="utf-8"):
            name = path.relative_to(ROOT).with_suffix("").as_posix()
            assert run_scenario(read_scenario(path, ROOT), _opening(name, place, questions)) == []
    return questions


def _opening(scenario: str, place: Path, questions: list[Question]) -> OpenEngine:
    return lambda schema: _Asking(schema, scenario, place, questions)


def _constructs(part: object, within: str = "") -> Iterator[str]:
    """What a query is made of: each operation and expression, what it is part of, and each of their settings."""
    name = type(part).__name__
    if isinstance(part, tuple):
        for one in part:
            yield from _constructs(one, within)
    elif isinstance(part, ValueType):
        yield f"{within} of {part.scalar}{part.is_list}{part.is_vector}"
    elif is_dataclass(part):
        yield f"{name} in {within}"
        for field in fields(part):
            yield from _constructs(getattr(part, field.name), name)
    elif isinstance(part, Enum | bool | None) or (isinstance(part, str) and within == "Agg"):
        yield f"{within} {part}"
    elif isinstance(part, int) and within == "Expand":
        yield f"{within} {part > 1}"


def _chosen(questions: list[Question]) -> list[Question]:
    """All of them, or the first with each construct and a few of the rest."""
    seen: set[str] = set()
    chosen = []
    for number, question in enumerate(questions):
        found = set(_constructs(question.query.ir))
        if ALL or found - seen or number % ALSO_EVERY == 0 or question.name in REFUSED:
            chosen.append(question)
        seen |= found
    return chosen


def test_reads_of_the_scenarios_give_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    questions = _questions(tmp_path)
    assert len(questions) > 250
    found = problems(quick_session(spark), _chosen(questions))
    refused = {
        name: said.removeprefix("refused: ") for name, said in found.items() if said.startswith("refused: ")
    }
    wrong = [f"{name}\n{said}" for name, said in found.items() if said and name not in refused]
    assert wrong == [], f"{len(wrong)} of {len(found)}:\n" + "\n\n".join(wrong)
    assert refused == REFUSED
