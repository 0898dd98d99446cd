"""Every read of the scenarios gives the same rows on Spark, but for those that are refused, which are listed here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.corpus_engine import GraphEngine, _AnyModel, shown_row
from tests.corpus_format import read_scenario
from tests.corpus_runner import run_scenario
from tests.pipeline.queries.answers import Question, problems, quick_session

import omnigraph

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2] / "corpus"
REFUSED: Mapping[str, str] = {}
"""Reads that Spark cannot run, by scenario and number, with the construct that the refusal names."""


class _Asking(GraphEngine):
    """A graph on disk that remembers what it was asked."""

    def __init__(self, schema: str, scenario: str, place: Path, questions: list[Question]) -> None:
        self.place, self.scenario, self.questions = place, scenario, questions
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
            run_scenario(read_scenario(path, ROOT), lambda schema, name=name: _Asking(schema, name, place, questions))
    return questions


def test_every_read_of_the_scenarios_gives_the_same_rows(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> None:
    questions = _questions(tmp_path_factory.mktemp("scenarios"))
    found = problems(quick_session(spark), questions)
    refused = {name: said.removeprefix("refused: ") for name, said in found.items() if said.startswith("refused: ")}
    wrong = [f"{name}\n{said}" for name, said in found.items() if said and name not in refused]
    assert wrong == [], f"{len(wrong)} of {len(found)}:\n" + "\n\n".join(wrong)
    assert refused == dict(REFUSED)
    assert Counter(name.partition("/")[0] for name in found)["query"] > 250
