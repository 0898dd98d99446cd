"""The graph that is written to, and the one-row writes."""

from __future__ import annotations

from collections.abc import Iterator

INSERT = "query q($n: String) { insert Person { name: $n, age: 1 } }"
UPDATE = "query q($n: String) { update Person set { age: 2 } where name = $n }"
DELETE = "query q($n: String) { delete Person where name = $n }"
EDGE = 'query q($n: String) { insert Knows { from: "p0", to: $n } }'


def schema(types: int) -> str:
    """Person and Knows, and as many other types as it takes."""
    others = "\n".join(f"node Other{i} {{ name: String @key }}" for i in range(types - 2))
    return f"node Person {{ name: String @key  age: I32? }}\nedge Knows: Person -> Person\n{others}"


def person(name: str) -> dict[str, object]:
    return {"type": "Person", "data": {"name": name, "age": 0}}


def cases(turn: int) -> Iterator[tuple[str, str, str]]:
    """Writes of each kind: what it is, the text, and the name of its row."""
    yield "insert", INSERT, f"n{turn}"
    yield "update", UPDATE, f"n{turn}"
    yield "edge insert", EDGE, f"n{turn}"
    yield "delete, with its edge", DELETE, f"n{turn}"
