"""A random read in parts: clauses, columns and parameters, from which something can be left out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from tests.read.graphs import PropertyPlan, TypePlan


@dataclass(frozen=True)
class Block:
    """A block of clauses."""

    kind: Literal["not", "exists", "optional"]
    clauses: tuple[str | Block, ...]

    def __str__(self) -> str:
        return f"{self.kind} {{ {'  '.join(map(str, self.clauses))} }}"


@dataclass(frozen=True)
class Query:
    """A read in parts, so that parts can be left out. Parameters have a type and a JSON value."""

    clauses: tuple[str | Block, ...]
    columns: tuple[str, ...]
    distinct: bool = False
    order: tuple[str, ...] = ()
    limit: str | None = None
    offset: str | None = None
    parameters: dict[str, tuple[str, Any]] = field(default_factory=dict)
    having: str | None = None
    united: Query | None = None
    """A second read, of which clauses and columns count: `union`, or `union all` if it ``repeats`` rows."""
    repeats: bool = False

    @property
    def _returned(self) -> list[str]:
        clauses = "\n    ".join(map(str, self.clauses))
        lines = [f"match {{\n    {clauses}\n  }}"]
        lines.append(f"return {'distinct ' if self.distinct else ''}{{ {', '.join(self.columns)} }}")
        if self.having is not None:
            lines.append(f"having {{ {self.having} }}")
        return lines

    @property
    def _body(self) -> str:
        lines, part = self._returned, self.united
        while part is not None:
            lines += ["union all" if self.repeats else "union", *part._returned]
            part = part.united
        if self.order:
            lines.append(f"order {{ {', '.join(self.order)} }}")
        if self.limit is not None:
            lines.append(f"limit {self.limit}" + ("" if self.offset is None else f" offset {self.offset}"))
        return "\n  ".join(lines)

    @property
    def used(self) -> dict[str, tuple[str, Any]]:
        """The parameters that the text mentions."""
        mentioned = set(re.findall(r"\$(\w+)", self._body))
        return {name: given for name, given in self.parameters.items() if name in mentioned}

    @property
    def text(self) -> str:
        declared = ", ".join(f"${name}: {kind}" for name, (kind, _) in self.used.items())
        return f"query q({declared}) {{\n  {self._body}\n}}"

    @property
    def values(self) -> dict[str, Any]:
        return {name: value for name, (_, value) in self.used.items()}

    def smaller(self) -> Iterator[Query]:
        """The same query with something left out."""
        for clauses in _smaller(self.clauses):
            yield replace(self, clauses=clauses)
        for name in ("columns", "order"):
            parts: tuple[str, ...] = getattr(self, name)
            for i in range(len(parts)):
                without: Any = {name: parts[:i] + parts[i + 1 :]}
                yield replace(self, **without)
        if self.united is not None:
            yield replace(self, united=None)
            yield replace(self, united=self.united.united)
            for clauses in _smaller(self.united.clauses):
                yield replace(self, united=replace(self.united, clauses=clauses))
        if self.having is not None:
            yield replace(self, having=None)
        if self.offset is not None:
            yield replace(self, offset=None)
        elif self.limit is not None:
            yield replace(self, limit=None)
        if self.distinct:
            yield replace(self, distinct=False)


def _smaller(clauses: tuple[str | Block, ...]) -> Iterator[tuple[str | Block, ...]]:
    for i, clause in enumerate(clauses):
        before, behind = clauses[:i], clauses[i + 1 :]
        yield before + behind
        if isinstance(clause, Block):
            yield (*before, *clause.clauses, *behind)
            for inner in _smaller(clause.clauses):
                yield (*before, Block(clause.kind, inner), *behind)


@dataclass
class Variable:
    """A variable in scope: a node or an edge of some type."""

    name: str
    type: TypePlan

    @property
    def is_node(self) -> bool:
        return self.type.ends is None

    def columns(self) -> list[PropertyPlan]:
        return [prop for prop in self.type.properties if prop.kind != "blob"]
