"""A changed byte anywhere in a graph on disk: the right rows, or a typed error that names what is damaged."""

from __future__ import annotations

import random
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.sampling import quick_and_long

import omnigraph
from omnigraph.errors import OmniError

SCHEMA = "node Person { name: String @key  age: I32? }\nedge Knows: Person -> Person { since: I64? }"
QUERIES = {
    "people": "query q() { match { $p: Person } return { $p.name, $p.age } order { $p.name } }",
    "friends": "query q() { match { $p: Person  $p knows $f } return { $p.name, $f.name } order { $p.name } }",
    "one": 'query q() { match { $p: Person { name: "p3" } } return { $p.name, $p.age } }',
}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small graph with everything that lies on disk: rows changed and deleted, indexes, a branch, history."""
    root = tmp_path_factory.mktemp("corruption") / "g"
    graph = omnigraph.init(root, SCHEMA, actor="ada")
    people = [{"type": "Person", "data": {"name": f"p{n}", "age": n}} for n in range(20)]
    edges = [{"edge": "Knows", "from": f"p{n}", "to": f"p{n + 1}", "data": {"since": n}} for n in range(19)]
    graph.load([*people, *edges], mode="append")
    graph.mutate('query q() { update Person set { age: 99 } where name = "p3" }')
    graph.mutate('query q() { delete Person where name = "p7" }')
    graph.create_branch("dev")
    graph.mutate('query q() { insert Person { name: "dev" } }', branch="dev")
    graph.ensure_indices()
    return root


def answers(root: Path) -> dict[str, object]:
    """What a new process reads."""
    graph = omnigraph.open(root, read_only=True)
    found: dict[str, object] = {name: graph.query(text).rows for name, text in QUERIES.items()}
    found["dev"] = graph.query(QUERIES["people"], branch="dev").rows
    found["history"] = [commit.as_json() for commit in graph.commits(limit=100)]
    return found


def flips(path: Path, chance: random.Random, places: int) -> Iterator[bytes]:
    """The file with one bit changed, at places all over it."""
    content = path.read_bytes()
    for place in sorted({0, len(content) - 1, *(chance.randrange(len(content)) for _ in range(places))}):
        yield content[:place] + bytes([content[place] ^ 1 << chance.randrange(8)]) + content[place + 1 :]


@pytest.mark.parametrize("places", quick_and_long(1, 12))
def test_no_changed_byte_gives_a_wrong_answer(template: Path, places: int) -> None:
    expected = answers(template)
    chance = random.Random(11)
    for path in sorted(p for p in template.rglob("*") if p.is_file() and p.stat().st_size):
        name, whole = str(path.relative_to(template)), path.read_bytes()
        for damaged in flips(path, chance, places):
            path.write_bytes(damaged)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", RuntimeWarning)
                    assert answers(template) == expected, f"a wrong answer with {name} changed"
            except OmniError:
                continue
        path.write_bytes(whole)
    assert answers(template) == expected


@pytest.mark.parametrize("kind", ["data", "_versions", "_deletions"])
def test_a_missing_or_truncated_file_is_named(template: Path, tmp_path: Path, kind: str) -> None:
    for damage in ("missing", "truncated"):
        root = tmp_path / damage
        shutil.copytree(template, root)
        for path in root.rglob(f"nodes/*/{kind}/*"):
            if damage == "missing":
                path.unlink()
            else:
                path.write_bytes(path.read_bytes()[:-5])
        with pytest.raises(OmniError) as caught:
            omnigraph.open(root, read_only=True).query(QUERIES["people"])
        assert "nodes/" in str(caught.value)
        assert "cleanup" not in str(caught.value)
