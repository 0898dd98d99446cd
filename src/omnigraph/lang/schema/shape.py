"""The shape of a schema: what it declares, in canonical order, free of spelling, comments and identities.

Two schema texts with the same shape are the same schema; ``Shape.hash`` says so in one string.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from functools import cached_property
from typing import Any, Literal

from omnigraph.lang.canonical import canonical_text
from omnigraph.lang.values import F64, ValueType
from omnigraph.records import dataclass

TypeKind = Literal["interface", "node", "edge"]
METADATA_ANNOTATIONS = ("description", "instruction")


@dataclass(frozen=True, slots=True)
class AnnotationShape:
    """An annotation kept in the catalog."""

    name: str
    value: str | None = None
    options: tuple[tuple[str, str], ...] = ()

    def as_json(self) -> dict[str, Any]:
        out: dict[str, Any] = {"name": self.name}
        if self.value is not None:
            out["value"] = self.value
        if self.options:
            out["options"] = dict(self.options)
        return out

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> AnnotationShape:
        return cls(stored["name"], stored.get("value"), tuple(sorted(stored.get("options", {}).items())))


@dataclass(frozen=True, slots=True)
class EmbedShape:
    """Which String property a vector is computed from, and by which model if that is fixed."""

    source: str
    model: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {"source": self.source, "model": self.model}


@dataclass(frozen=True, slots=True)
class PropertyShape:
    """A property. ``satisfies`` names the interfaces that ask for it; ``injected`` says one of them brought it."""

    name: str
    type: ValueType
    annotations: tuple[AnnotationShape, ...] = ()
    embed: EmbedShape | None = None
    injected: bool = False
    satisfies: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "type": self.type.as_json(),
            "annotations": [a.as_json() for a in self.annotations],
            "embed": None if self.embed is None else self.embed.as_json(),
            "injected": self.injected,
            "satisfies": list(self.satisfies),
        }


def bound_text(bound: float | None) -> str:
    """A bound of a range as it is written; an open side is empty."""
    return "" if bound is None else canonical_text(bound, F64)


@dataclass(frozen=True, slots=True)
class ConstraintShape:
    """A key, unique or index over ``columns``; a range or check on the one column."""

    kind: str
    columns: tuple[str, ...]
    low: float | None = None
    high: float | None = None
    pattern: str | None = None

    def __str__(self) -> str:
        if self.kind == "range":
            return f"@range({self.columns[0]}, {bound_text(self.low)}..{bound_text(self.high)})"
        if self.kind == "check":
            return f"@check({self.columns[0]}, {json.dumps(self.pattern, ensure_ascii=False)})"
        return f"@{self.kind}({', '.join(self.columns)})"

    @property
    def order(self) -> tuple[str, ...]:
        """A sort key that is the same for equal constraints."""
        return (self.kind, *self.columns, str(self))

    def as_json(self) -> dict[str, Any]:
        out: dict[str, Any] = {"kind": self.kind, "columns": list(self.columns)}
        if self.kind == "range":
            out |= {"low": self.low, "high": self.high}
        if self.kind == "check":
            out["pattern"] = self.pattern
        return out


@dataclass(frozen=True, slots=True)
class TypeShape:
    """An interface, a node type or an edge type. Endpoints and cardinality belong to edges only."""

    kind: TypeKind
    name: str
    properties: tuple[PropertyShape, ...]
    constraints: tuple[ConstraintShape, ...] = ()
    annotations: tuple[AnnotationShape, ...] = ()
    implements: tuple[str, ...] = ()
    source: str | None = None
    target: str | None = None
    minimum: int = 0
    maximum: int | None = None

    def property(self, name: str) -> PropertyShape | None:
        """The property of that name."""
        return next((p for p in self.properties if p.name == name), None)

    def as_json(self) -> dict[str, Any]:
        out: dict[str, Any] = {
            "name": self.name,
            "annotations": [a.as_json() for a in self.annotations],
            "properties": [p.as_json() for p in self.properties],
            "constraints": [c.as_json() for c in self.constraints],
        }
        if self.kind == "node":
            out["implements"] = list(self.implements)
        if self.kind == "edge":
            out |= {"from": self.source, "to": self.target, "min": self.minimum, "max": self.maximum}
        return out


@dataclass(frozen=True)
class Shape:
    """All types of a schema, each list sorted by name."""

    interfaces: tuple[TypeShape, ...] = ()
    nodes: tuple[TypeShape, ...] = ()
    edges: tuple[TypeShape, ...] = ()

    @property
    def types(self) -> Iterable[TypeShape]:
        """Interfaces, then nodes, then edges."""
        yield from self.interfaces
        yield from self.nodes
        yield from self.edges

    @cached_property
    def hash(self) -> str:
        """`sha256:…` of the canonical JSON."""
        stored = {
            "interfaces": [t.as_json() for t in self.interfaces],
            "nodes": [t.as_json() for t in self.nodes],
            "edges": [t.as_json() for t in self.edges],
        }
        text = json.dumps(stored, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return "sha256:" + hashlib.sha256(text.encode()).hexdigest()
