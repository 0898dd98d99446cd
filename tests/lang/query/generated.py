"""Well-typed reads of the test schema, made up by Hypothesis."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from hypothesis import strategies as st

EDGES: Final = {"trusts": ("Pilot", "Pilot"), "stationedAt": ("Pilot", "Base"), "flies": ("Pilot", "Plane")}
PROPERTIES: Final = {"Pilot": ("call", "hours"), "Base": ("code", "size"), "Plane": ("reg", None)}
NAMES: Final = tuple("abcdef")
DEEPEST: Final = 2


@dataclass(slots=True)
class Block:
    """What is visible in a block: node variables with their types, and edge variables."""

    nodes: dict[str, str] = field(default_factory=dict)
    edges: set[str] = field(default_factory=set)

    def fresh(self) -> list[str]:
        return [name for name in NAMES if name not in self.nodes and name not in self.edges]


@dataclass(slots=True)
class Writer:
    """Writes clauses; counts what it has written."""

    draw: st.DrawFn
    traversals: int = 0
    conditions: int = 0
    depth: int = 0

    def clauses(self, block: Block, first: str | None = None) -> str:
        """Some clauses that are well typed in the block, which then knows their variables."""
        written = [first or self._opening(block)]
        written.extend(self._clause(block) for _ in range(self.draw(st.integers(0, 4))))
        return "  ".join(written)

    def _opening(self, block: Block) -> str:
        return self._binding(block) if self.draw(st.booleans()) else self._traversal(block)

    def _clause(self, block: Block) -> str:
        kinds: list[Callable[[Block], str]] = [self._binding, self._traversal, self._condition]
        if self.depth < DEEPEST and block.nodes:
            kinds += [self._negation, self._optional]
        return self.draw(st.sampled_from(kinds))(block)

    def _binding(self, block: Block) -> str:
        fresh = block.fresh()
        if block.nodes and (not fresh or self.draw(st.booleans())):
            name = self._node(block)
        else:
            name = self.draw(st.sampled_from([*fresh[:2], "_"]))
        type_name = block.nodes.get(name) or self.draw(st.sampled_from(sorted(PROPERTIES)))
        if name != "_":
            block.nodes[name] = type_name
        key = PROPERTIES[type_name][0]
        return f"${name}: {type_name}" + (f' {{ {key}: "x" }}' if self.draw(st.booleans()) else "")

    def _traversal(self, block: Block, start: str | None = None) -> str:
        """An edge from left to right, or the other way round where a bound end tells the direction."""
        fitting = [e for e, ends in EDGES.items() if start is None or block.nodes[start] in ends]
        edge = self.draw(st.sampled_from(fitting))
        (source, target), known = EDGES[edge], set(block.nodes)
        left = start if start is not None and block.nodes[start] == source else self._end(block, source)
        right = start if start is not None and left != start else self._end(block, target)
        if known & {left, right} and source != target and self.draw(st.booleans()):
            left, right = right, left
        self.traversals += 1
        return f"${left} {self._edge(block, edge, source == target)} ${right}"

    def _edge(self, block: Block, edge: str, symmetric: bool) -> str:
        written = f"<{edge}>" if symmetric and self.draw(st.booleans()) else edge
        fresh = block.fresh()
        if self.draw(st.booleans()) and fresh:
            name = fresh[-1]
            block.edges.add(name)
            return f"${name}:{written}"
        return written + self.draw(st.sampled_from(["", "{1,1}", "{1,3}", "{2,2}"]))

    def _end(self, block: Block, type_name: str) -> str:
        """A bound variable of that type, a new one, or none."""
        bound = [name for name, found in block.nodes.items() if found == type_name]
        name = self.draw(st.sampled_from([*bound, *block.fresh()[:1], "_"]))
        if name != "_":
            block.nodes[name] = type_name
        return name

    def _condition(self, block: Block) -> str:
        if not block.nodes:
            return self._opening(block)
        return self._about(block, self._node(block))

    def _about(self, block: Block, name: str) -> str:
        """A condition on a variable, or on it and another one."""
        self.conditions += 1
        key, number = PROPERTIES[block.nodes[name]]
        other = self._node(block)
        forms = [
            f'${name}.{key} != "x"',
            f'search(${name}.{key}, "x")',
            f"${name}.{number or key} is null",
            f"${name} is not null",
            f"${name}.{key} contains ${other}.{PROPERTIES[block.nodes[other]][0]}",
        ]
        return self.draw(st.sampled_from(forms))

    def _node(self, block: Block) -> str:
        return self.draw(st.sampled_from(sorted(block.nodes)))

    def _negation(self, block: Block) -> str:
        return f"not {{ {self._inner(block, Block(dict(block.nodes), set(block.edges)))} }}"

    def _optional(self, block: Block) -> str:
        return f"optional {{ {self._inner(block, block)} }}"

    def _inner(self, outer: Block, inner: Block) -> str:
        """The clauses of a block that begins with a clause about an outer variable."""
        start = self._node(outer)
        about = self.draw(st.booleans())
        with self._deeper():
            return self.clauses(inner, self._about(inner, start) if about else self._traversal(inner, start))

    @contextmanager
    def _deeper(self) -> Iterator[None]:
        self.depth += 1
        yield
        self.depth -= 1


@dataclass(frozen=True, slots=True)
class Generated:
    """A query, and what is in it."""

    text: str
    traversals: int
    conditions: int


@st.composite
def reads(draw: st.DrawFn) -> Generated:
    """A well-typed read that returns all its node variables."""
    writer, block = Writer(draw), Block()
    match = writer.clauses(block)
    returned = ", ".join([f"${name}" for name in block.nodes]) or "1"
    text = f"query q() {{ match {{ {match} }} return {{ {returned} }} }}"
    return Generated(text, writer.traversals, writer.conditions)
