"""Random reads that fit a random schema, as text: every kind of clause, on variables of the right type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Final, Literal

from tests.read.conditions import Operands
from tests.read.graphs import Record, SchemaPlan, TypePlan
from tests.read.query_parts import Block, Query, Variable
from tests.read.returns import random_return, random_union

_KINDS: Final = (
    *("binding", "joined", "rebinding", "traversal", "traversal", "closing", "loose", "condition", "condition"),
)
_BLOCKS: Final = ("not", "optional", "not", "optional", "exists")
_SPARE: Final = ("x", "y", "z")


class Matching:
    """The clauses of one query. ``scans`` bounds the combinations of independent parts."""

    def __init__(self, random: Random, schema: SchemaPlan, operands: Operands) -> None:
        self.random = random
        self.schema = schema
        self.operands = operands
        self.count = 0
        self.scans = 0

    def clauses(self) -> tuple[tuple[str | Block, ...], list[Variable]]:
        """The clauses and the variables they bind."""
        scope: list[Variable] = []
        made: list[str | Block] = [self._loose(scope) if self.random.random() < 0.2 else self._binding(scope)]
        made += [self._clause(scope, 2) for _ in range(self.random.choice((0, 1, 1, 2, 2, 3, 4)))]
        return tuple(made), scope

    def _clause(self, scope: list[Variable], depth: int) -> str | Block:
        kind = self.random.choice(_KINDS + _BLOCKS if depth else _KINDS)
        match kind:
            case "binding" if self.scans < 2:
                return self._binding(scope)
            case "joined" if self.scans < 3:
                return self._joined(scope)
            case "loose" if self.scans < 2:
                return self._loose(scope)
            case "rebinding":
                return self._rebinding(scope)
            case "closing":
                return self._closing(scope)
            case "not" | "exists" | "optional":
                return self._block(kind, scope, depth)
            case "traversal":
                return self._traversal(scope)
            case _:
                return self.operands.condition(self.random.choice(scope), scope)

    def _fresh(self, scope: list[Variable], of: TypePlan) -> str:
        """A new variable; now and then with a name that another block may use too."""
        taken = {variable.name for variable in scope}
        spare = [name for name in _SPARE if name not in taken]
        self.count += 1
        name = self.random.choice(spare) if spare and self.random.random() < 0.15 else f"v{self.count}"
        scope.append(Variable(name, of))
        return name

    def _binding(self, scope: list[Variable]) -> str:
        self.scans += 1
        node = self.random.choice(self.schema.nodes)
        return f"${self._fresh(scope, node)}: {node.name}{self.operands.matches(node)}"

    def _joined(self, scope: list[Variable]) -> str:
        """A new variable with one or two properties equal to those of others."""
        others, bound = list(scope), self._binding(scope)
        equal = [
            condition
            for _ in range(self.random.choice((1, 1, 2)))
            if (condition := self.operands.equality(scope[-1], others)) is not None
        ]
        return "  ".join([bound, *equal])

    def _rebinding(self, scope: list[Variable]) -> str:
        variable = self.random.choice([v for v in scope if v.is_node])
        return f"${variable.name}: {variable.type.name}{self.operands.matches(variable.type)}"

    def _loose(self, scope: list[Variable]) -> str:
        """A traversal between two new variables."""
        self.scans += 1
        edge = self.random.choice(self.schema.edges)
        assert edge.ends is not None
        spelled = self._spelled(edge, scope)
        source, target = (self._fresh(scope, self.schema.node(end)) for end in edge.ends)
        return f"${source} {spelled} ${target}"

    def _traversal(self, scope: list[Variable]) -> str:
        """From a variable to a new one, in either direction."""
        known = self.random.choice([v for v in scope if v.is_node])
        edges = self.schema.edges_at(known.type.name)
        if not edges:
            return self.operands.condition(known, scope, mentions=True)
        edge = self.random.choice(edges)
        assert edge.ends is not None
        other = edge.ends[1] if known.type.name == edge.ends[0] else edge.ends[0]
        spelled = self._spelled(edge, scope)
        name = "_" if self.random.random() < 0.15 else self._fresh(scope, self.schema.node(other))
        ends = (known.name, name) if self.random.random() < 0.6 else (name, known.name)
        return f"${ends[0]} {spelled} ${ends[1]}"

    def _closing(self, scope: list[Variable]) -> str:
        """Between two variables that are bound already, which may be one."""
        source = self.random.choice([v for v in scope if v.is_node])
        pairs = [
            (edge, target)
            for edge in self.schema.edges_at(source.type.name)
            for target in scope
            if target.is_node and edge.ends in _both_ways(source.type.name, target.type.name)
        ]
        if not pairs:
            return self._traversal(scope)
        edge, target = self.random.choice(pairs)
        return f"${source.name} {self._spelled(edge, scope)} ${target.name}"

    def _spelled(self, edge: TypePlan, scope: list[Variable]) -> str:
        """An edge with a variable, both ways, with hops, or plain."""
        assert edge.ends is not None
        symmetric = edge.ends[0] == edge.ends[1]
        spelled, edge = self._alternatives(edge)
        name = f"<{spelled}>" if symmetric and self.random.random() < 0.25 else spelled
        chance = self.random.random()
        if chance < 0.25:
            self.count += 1
            variable = Variable(f"e{self.count}", edge)
            scope.append(variable)
            return f"${variable.name}:{name}"
        if chance < 0.5:
            least = self.random.choice((1, 1, 1, 2, 2, 3))
            return f"{name}{{{least},{least + self.random.choice((0, 1, 2))}}}"
        return name

    def _alternatives(self, edge: TypePlan) -> tuple[str, TypePlan]:
        """Now and then another edge too that leads between the same types; what both have is left of them."""
        others = [one for one in self.schema.edges if one.ends == edge.ends and one.name != edge.name]
        if not others or self.random.random() < 0.6:
            return edge.edge, edge
        other = self.random.choice(others)
        kinds = {prop.name: prop.kind for prop in other.properties}
        shared = tuple(prop for prop in edge.properties if kinds.get(prop.name) == prop.kind)
        return f"{edge.edge}|{other.edge}", replace(edge, properties=shared)

    def _block(self, kind: Literal["not", "exists", "optional"], scope: list[Variable], depth: int) -> Block:
        """A block that begins at a variable from outside; what `optional` binds stays bound."""
        inner, scans = list(scope), self.scans
        variable = self.random.choice(scope)
        clauses: list[str | Block] = []
        if variable.is_node and self.random.random() < 0.6:
            clauses.append(self._traversal(inner))
        else:
            clauses.append(self.operands.condition(variable, inner, mentions=True))
        clauses += [self._clause(inner, depth - 1) for _ in range(self.random.choice((0, 0, 1, 1, 2)))]
        if kind == "optional":
            scope[:] = inner
        else:
            self.scans = scans
        return Block(kind, tuple(clauses))


def _both_ways(one: str, other: str) -> tuple[tuple[str, str], tuple[str, str]]:
    return (one, other), (other, one)


def random_query(random: Random, schema: SchemaPlan, records: Sequence[Record]) -> Query:
    """A read with a random match, and a random result of it."""
    operands = Operands(random, records)
    clauses, scope = Matching(random, schema, operands).clauses()
    if random.random() < 0.08:
        more = [Matching(random, schema, operands).clauses() for _ in range(random.choice((1, 1, 1, 2)))]
        query = random_union(random, [(clauses, scope), *more], operands)
        return replace(query, parameters=operands.parameters)
    return replace(random_return(random, scope, operands), clauses=clauses, parameters=operands.parameters)
