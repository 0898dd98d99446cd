"""What a page supposes to be there: the folder that the reader is in, and the files and graphs it talks about."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.docs.pages import ROOT, blocks_of

import omnigraph

SCHEMA = """\
node Person { name: String @key  age: I32?  city: String? }
edge Knows: Person -> Person { since: Date? }
"""
NEXT = SCHEMA.replace("city: String?", "city: String?  mail: String?")
QUERIES = """\
query friends($name: String) { match { $p: Person { name: $name }  $p knows $f } return { $f.name } }
"""
PEOPLE = (
    {"type": "Person", "data": {"name": "Ada", "age": 36}},
    {"type": "Person", "data": {"name": "Bo", "age": 25}},
    {"edge": "Knows", "from": "Ada", "to": "Bo", "data": {"since": "2024-05-01"}},
)
MOVE = 'query move() { update Person set { city: "Rome" } where name = "Ada" }'


def social(place: Path) -> None:
    """A graph of two people, `social.omni`, whose branch `review/1` says where one of them lives."""
    (place / "new.pg").write_text(NEXT)
    (place / "queries.gq").write_text(QUERIES)
    with omnigraph.init(place / "social.omni", SCHEMA, actor="ada") as graph:
        graph.load(PEOPLE, mode="append", actor="importer")
        graph.tag("friends")
        graph.create_branch("review/1")
        graph.mutate(MOVE, branch="review/1")
    (place / "export").mkdir()
    more = {"type": "Person", "data": {"name": "Cy", "age": 41}}
    (place / "export" / "more.jsonl").write_text(f"{json.dumps(more)}\n")


def documents(place: Path) -> None:
    """A graph with the schema of the page, and texts for it."""
    (schema,) = (block.text for block in blocks_of(ROOT / "docs/embeddings.md") if block.language == "pg")
    omnigraph.init(place / "docs.omni", schema).close()
    titles = ("Engines", "Bridges")
    records = ({"type": "Doc", "data": {"slug": title.lower(), "title": title}} for title in titles)
    (place / "docs.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in records))


def policy(place: Path) -> None:
    """The files that the page shows."""
    shown = [block.text for block in blocks_of(ROOT / "docs/policy.md") if block.language == "yaml"]
    for name, text in zip(("policy.yaml", "cases.yaml"), shown, strict=True):
        (place / name).write_text(text)


def cluster(place: Path) -> None:
    """The files that the page shows, without the one with all keys."""
    page = blocks_of(ROOT / "docs/cluster.md")
    shown = [block.text for block in page if block.language in ("yaml", "pg", "gq")]
    names = ("cluster.yaml", "people.pg", "queries/people.gq", "team.yaml", "lists.yaml")
    (place / "queries").mkdir()
    for name, text in zip(names, shown, strict=False):
        (place / name).write_text(text)


def configured(place: Path) -> None:
    """The configuration that the page shows, and a token."""
    (shown,) = (block.text for block in blocks_of(ROOT / "docs/configuration.md") if block.language == "yaml")
    home = place / "home"
    home.mkdir()
    (home / "config.yaml").write_text(shown)
    (place / "token.txt").write_text("secret\n")


def nothing(place: Path) -> None:
    """The examples alone."""


@dataclass(frozen=True, slots=True)
class Scene:
    """Where a page begins."""

    folder: str = "."
    """The folder of the repository's `examples` that the reader is in, or the one that holds `examples`."""
    prepare: Callable[[Path], None] = nothing


SCENES: Mapping[str, Scene] = {
    "quickstart.md": Scene("flights"),
    "loading.md": Scene("flights"),
    "graphs.md": Scene("aviation"),
    "writes.md": Scene("aviation"),
    "backup.md": Scene(prepare=social),
    "changes.md": Scene(prepare=social),
    "cleanup.md": Scene(prepare=social),
    "cluster.md": Scene(prepare=cluster),
    "clusters.md": Scene(prepare=social),
    "configuration.md": Scene(prepare=configured),
    "embeddings.md": Scene(prepare=documents),
    "export.md": Scene(prepare=social),
    "history.md": Scene(prepare=social),
    "maintenance.md": Scene(prepare=social),
    "policy.md": Scene(prepare=policy),
    "queries.md": Scene(prepare=social),
    "schema-changes.md": Scene(prepare=social),
}
