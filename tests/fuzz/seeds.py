"""The texts fuzzing starts from: the examples, and every schema and query of the scenario files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from tests.corpus_format import FormatError, read_scenario
from tests.lang.typed_queries import SCHEMA

from omnigraph.errors import LanguageError
from omnigraph.lang.schema.catalog import Catalog, load_catalog

ROOT: Final = Path(__file__).parents[2]
_SCHEMA_STEPS: Final = ("schema", "migrate")
_QUERY_STEPS: Final = ("query", "mutate", "lint")


@dataclass(frozen=True, slots=True)
class Seed:
    """A text in one of the languages, and the schema its queries are about."""

    language: Literal["pg", "gq"]
    text: bytes
    catalog: Catalog


def seeds() -> list[Seed]:
    """All seeds, in a fixed order; there are some even if there are no files."""
    fixed = load_catalog(SCHEMA)
    first = (
        Seed("pg", SCHEMA.encode(), fixed),
        Seed("gq", b"query q() { match { $p: Pilot } return { $p } }", fixed),
    )
    return [*first, *_examples(), *_scenarios(fixed)]


def _examples() -> Iterator[Seed]:
    for folder in sorted((ROOT / "examples").glob("*/")):
        for schema in sorted(folder.glob("*.pg")):
            catalog = load_catalog(schema.read_text(encoding="utf-8"))
            yield Seed("pg", schema.read_bytes(), catalog)
            yield from (Seed("gq", queries.read_bytes(), catalog) for queries in sorted(folder.glob("*.gq")))


def _scenarios(catalog: Catalog) -> Iterator[Seed]:
    corpus = ROOT / "tests" / "corpus"
    for path in sorted(corpus.rglob("*.gqt")):
        try:
            scenario = read_scenario(path, corpus)
        except FormatError:
            continue
        for step in scenario.steps:
            kind, argument, text = step.section.kind, step.section.argument, step.section.body
            if kind in _SCHEMA_STEPS or (kind == "fmt" and argument == "pg"):
                catalog = _catalog(text) or catalog
                yield Seed("pg", text.encode(), catalog)
            elif kind in _QUERY_STEPS or kind == "fmt":
                yield Seed("gq", text.encode(), catalog)


def _catalog(text: str) -> Catalog | None:
    try:
        return load_catalog(text)
    except LanguageError:
        return None
