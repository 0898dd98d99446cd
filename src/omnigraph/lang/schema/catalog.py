"""The catalog: an accepted schema arranged for looking things up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Final

from omnigraph.lang.canonical import canonical_id, canonical_text
from omnigraph.lang.schema.identity import SchemaIR, TypeIdentity, first_identities
from omnigraph.lang.schema.shape import AnnotationShape, ConstraintShape, EmbedShape, TypeShape
from omnigraph.lang.values import STRING, ValueType
from omnigraph.records import dataclass

EDGE_ENDS: Final = ("src", "dst")
"""The columns of the ends of an edge, in the order in which the ids of edges with a key spell them."""


@dataclass(frozen=True, slots=True)
class Property:
    """A property of a node or edge type."""

    name: str
    type: ValueType
    id: int
    embed: EmbedShape | None
    annotations: tuple[AnnotationShape, ...]


@dataclass(frozen=True, slots=True)
class Range:
    """Inclusive bounds of a numeric property."""

    property: str
    low: float | None
    high: float | None


@dataclass(frozen=True)
class NodeType:
    """A node type. ``key`` is in the order in which ids spell it; ``columns`` is the table's order."""

    name: str
    id: int
    incarnation: int
    implements: tuple[str, ...]
    properties: Mapping[str, Property]
    key: tuple[str, ...]
    uniques: tuple[tuple[str, ...], ...]
    indexes: tuple[tuple[str, ...], ...]
    ranges: tuple[Range, ...]
    checks: Mapping[str, tuple[str, ...]]
    annotations: tuple[AnnotationShape, ...]

    @property
    def table_key(self) -> str:
        return f"node:{self.name}"

    @property
    def columns(self) -> tuple[str, ...]:
        return ("id", *self.properties)

    @cached_property
    def required(self) -> tuple[Property, ...]:
        """The properties that are never null."""
        return _required(self.properties)

    @property
    def embeds(self) -> dict[str, EmbedShape]:
        """The vector properties that are computed, and from what."""
        return {p.name: p.embed for p in self.properties.values() if p.embed is not None}

    @property
    def blobs(self) -> frozenset[str]:
        return frozenset(p.name for p in self.properties.values() if p.type.is_blob)

    def key_type(self, name: str) -> ValueType:
        """The type of a member of the key."""
        return self.properties[name].type

    def id_of(self, values: Mapping[str, object]) -> str:
        """The id of the node with these key values."""
        return _id_of(self, values)


@dataclass(frozen=True)
class EdgeType:
    """An edge type. ``key`` begins with `src` and `dst`, and is empty if each record is an edge of its own;
    ``maximum`` is None where the number of edges per source has no limit."""

    name: str
    id: int
    incarnation: int
    source: str
    target: str
    minimum: int
    maximum: int | None
    properties: Mapping[str, Property]
    key: tuple[str, ...]
    uniques: tuple[tuple[str, ...], ...]
    indexes: tuple[tuple[str, ...], ...]
    annotations: tuple[AnnotationShape, ...]
    members: tuple[EdgeType, ...] = ()
    """Of several types that one hop may follow, and that have no table of their own: each of them."""

    @property
    def each(self) -> tuple[EdgeType, ...]:
        """The types that have tables: this one, or its members."""
        return self.members or (self,)

    @property
    def table_key(self) -> str:
        return f"edge:{self.name}"

    @property
    def columns(self) -> tuple[str, ...]:
        return ("id", "src", "dst", *self.properties)

    @cached_property
    def required(self) -> tuple[Property, ...]:
        """The properties that are never null."""
        return _required(self.properties)

    @property
    def symmetric(self) -> bool:
        """Do both ends have the same node type?"""
        return self.source == self.target

    def key_type(self, name: str) -> ValueType:
        """The type of a member of the key; the ends are ids of nodes."""
        return STRING if name in EDGE_ENDS else self.properties[name].type

    def id_of(self, values: Mapping[str, object]) -> str:
        """The id of the edge with these ends and key values."""
        return _id_of(self, values)


EntityType = NodeType | EdgeType
"""A type whose rows have a table of their own."""


class Catalog:
    """All types of one accepted schema. Catalogs of the same shape are equal."""

    def __init__(self, ir: SchemaIR) -> None:
        self.ir = ir
        self.hash = ir.shape.hash
        self.nodes: dict[str, NodeType] = {}
        self.edges: dict[str, EdgeType] = {}
        for shape in ir.shape.nodes:
            self.nodes[shape.name] = _node_type(shape, ir.identities["node", shape.name])
        for shape in ir.shape.edges:
            self.edges[shape.name] = _edge_type(shape, ir.identities["edge", shape.name])
        self.interfaces = {shape.name: shape for shape in ir.shape.interfaces}
        self._folded = {name.lower(): edge for name, edge in self.edges.items()}
        self._united: dict[str, EdgeType] = {}
        self._hash = hash(self.hash)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Catalog) and self.hash == other.hash)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Catalog({len(self.nodes)} nodes, {len(self.edges)} edges, {self.hash[:15]})"

    def entity(self, table_key: str) -> EntityType:
        """The type behind a table key, `node:Person` or `edge:Knows`."""
        kind, _, name = table_key.partition(":")
        return self.nodes[name] if kind == "node" else self.edges[name]

    def edge(self, name: str) -> EdgeType | None:
        """The edge of that name: as declared, or else whatever the letter case."""
        return self.edges.get(name) or self._folded.get(name.lower())

    def followed(self, name: str) -> EdgeType:
        """The edge type that a hop follows: a declared one, or several as one, `Knows|Likes`."""
        found = self.edges.get(name) or self._united.get(name)
        if found is None:
            found = self._united[name] = united(self.edges[each] for each in name.split("|"))
        return found

    @cached_property
    def by_id(self) -> Mapping[int, EntityType]:
        """The node and edge types by their stable ids."""
        entities: list[EntityType] = [*self.nodes.values(), *self.edges.values()]
        return {entity.id: entity for entity in entities}

    @cached_property
    def incident(self) -> Mapping[str, Sequence[EdgeType]]:
        """For each node type the edge types that touch it."""
        touching: dict[str, list[EdgeType]] = {name: [] for name in self.nodes}
        for edge in self.edges.values():
            touching[edge.source].append(edge)
            if edge.target != edge.source:
                touching[edge.target].append(edge)
        return touching

    @property
    def edge_spellings(self) -> list[str]:
        """Edge names as queries write them: with a lower-case first letter."""
        return [name[0].lower() + name[1:] for name in self.edges]


def united(edges: Iterable[EdgeType]) -> EdgeType:
    """Edge types between the same node types as one; it has the properties that all of them have."""
    members = tuple(sorted({edge.name: edge for edge in edges}.values(), key=lambda edge: edge.name))
    first = members[0]
    if len(members) == 1:
        return first
    properties: dict[str, Property] = {}
    for name, prop in first.properties.items():
        found = [edge.properties.get(name) for edge in members]
        types = [one.type for one in found if one is not None]
        if len(types) == len(members) and len({kind.or_null() for kind in types}) == 1:
            nullable = any(kind.nullable for kind in types)
            properties[name] = replace(prop, type=prop.type.or_null() if nullable else prop.type)
    return replace(
        first,
        name="|".join(edge.name for edge in members),
        properties=properties,
        uniques=(),
        indexes=(),
        annotations=(),
        members=members,
    )


def load_catalog(text: str, name: str = "<schema>") -> Catalog:
    """The catalog of a schema text on its own, with the identities a new graph would give it."""
    from omnigraph.lang.schema.resolve import compile_schema

    return Catalog(first_identities(compile_schema(text, name)))


def _properties(shape: TypeShape, identity: TypeIdentity) -> dict[str, Property]:
    return {
        p.name: Property(p.name, p.type, identity.properties[p.name], p.embed, p.annotations)
        for p in shape.properties
    }


def _id_of(entity: EntityType, values: Mapping[str, object]) -> str:
    return canonical_id([canonical_text(values.get(name), entity.key_type(name)) for name in entity.key])


def _required(properties: Mapping[str, Property]) -> tuple[Property, ...]:
    return tuple(prop for prop in properties.values() if not prop.type.nullable)


def _columns(shape: TypeShape, *kinds: str) -> tuple[tuple[str, ...], ...]:
    return tuple(c.columns for c in shape.constraints if c.kind in kinds)


def _key(constraints: Sequence[ConstraintShape], identity: TypeIdentity) -> tuple[str, ...]:
    columns = next((c.columns for c in constraints if c.kind == "key"), ())
    ends = tuple(name for name in EDGE_ENDS if name in columns)
    return ends + tuple(sorted({*columns} - {*ends}, key=lambda name: identity.properties[name]))


def _node_type(shape: TypeShape, identity: TypeIdentity) -> NodeType:
    checks: dict[str, list[str]] = {}
    for constraint in shape.constraints:
        if constraint.kind == "check" and constraint.pattern is not None:
            checks.setdefault(constraint.columns[0], []).append(constraint.pattern)
    return NodeType(
        name=shape.name,
        id=identity.id,
        incarnation=identity.incarnation or 0,
        implements=shape.implements,
        properties=_properties(shape, identity),
        key=_key(shape.constraints, identity),
        uniques=_columns(shape, "unique"),
        indexes=_columns(shape, "key", "index"),
        ranges=tuple(Range(c.columns[0], c.low, c.high) for c in shape.constraints if c.kind == "range"),
        checks={column: tuple(patterns) for column, patterns in checks.items()},
        annotations=shape.annotations,
    )


def _edge_type(shape: TypeShape, identity: TypeIdentity) -> EdgeType:
    return EdgeType(
        name=shape.name,
        id=identity.id,
        incarnation=identity.incarnation or 0,
        source=shape.source or "",
        target=shape.target or "",
        minimum=shape.minimum,
        maximum=shape.maximum,
        properties=_properties(shape, identity),
        key=_key(shape.constraints, identity),
        uniques=_columns(shape, "unique"),
        indexes=_columns(shape, "key", "index"),
        annotations=shape.annotations,
    )
