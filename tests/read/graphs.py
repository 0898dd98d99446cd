"""Random schemas and random data for them: few distinct values, so that queries find something, and many nulls."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from omnigraph.lang.schema.catalog import Catalog, load_catalog

WORDS: Final = ("red", "fox", "foxes", "hén", "frog", "duck", "badger", "the")
"""Words that are their own stems, but also one with an ending, one with an accent, and a stop word."""
VECTORS: Final = ([0.0, 0.0], [1.0, 0.0], [0.0, 2.0], [3.0, 4.0], [-3.0, 4.0], [0.5, 0.5])
DIRECTIONS: Final = ([0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 3.0, 4.0], [0.0, -3.0, 4.0])

TYPES: Final[Mapping[str, str]] = {
    "text": "String",
    "name": "String",
    "enum": "enum(a, b, red)",
    "bool": "Bool",
    "i32": "I32",
    "i64": "I64",
    "u32": "U32",
    "u64": "U64",
    "f32": "F32",
    "f64": "F64",
    "date": "Date",
    "datetime": "DateTime",
    "names": "[String]",
    "i32s": "[I32]",
    "f32s": "[F32]",
    "bools": "[Bool]",
    "dates": "[Date]",
    "datetimes": "[DateTime]",
    "vector": "Vector(2)",
    "blob": "Blob",
}
"""The kinds of properties, each with its declared type. Properties are named after their kind."""

VALUES: Final[Mapping[str, Sequence[Any]]] = {
    "name": ("a", "ab", "B", "b", "ä", "ä b", "", "red", "İß", "e\u0301 😀"),
    "enum": ("a", "b", "red"),
    "bool": (True, False),
    "i32": (-2, 0, 1, 3, 2**31 - 1),
    "i64": (-(2**63), -2, 0, 1, 3, 2**53, 2**53 + 1, 2**63 - 1),
    "u32": (0, 1, 3, 2**32 - 1),
    "u64": (0, 1, 3, 2**53 + 1, 2**64 - 1),
    "f32": (-2.0, -0.0, 0.0, 0.1, 0.5, 3.0, 16777216.0),
    "f64": (-2.0, -0.0, 0.0, 0.1, 0.5, 3.0, 2.0**53, 1e300),
    "date": ("0001-01-01", "1969-12-31", "2024-01-01", "2024-02-29", "2024-03-31", "9999-12-31"),
    "datetime": (
        *("0001-01-01T00:00:00Z", "1969-12-31T23:59:59.999Z", "2024-01-01T00:00:00Z"),
        *("2024-01-01T00:00:00.001Z", "2024-05-31T06:07:08Z", "9999-01-01"),
    ),
    "vector": VECTORS,
    "meaning": DIRECTIONS,
    "blob": ("base64:", "base64:AAEC"),
}
LISTS: Final = {
    "names": "name",
    "i32s": "i32",
    "f32s": "f32",
    "bools": "bool",
    "dates": "date",
    "datetimes": "datetime",
}
_KEY_NAMES: Final = ("a", "B", "ä", "b", "n1", "n10", "n2", "n3", "n4", "n5", "Z", "_")
_SIZES: Final = (0, 1, 3, 4, 5, 5, 7, 7, 12, 12)
_EDGES: Final = (0, 4, 10, 15, 20, 30)
Record = dict[str, Any]


@dataclass(frozen=True)
class PropertyPlan:
    """A property of a random type."""

    name: str
    kind: str
    nullable: bool
    note: str = ""

    @property
    def text(self) -> str:
        declared = "Vector(3)" if self.kind == "meaning" else TYPES[self.kind]
        return f"{self.name}: {declared}{'?' if self.nullable else ''}{self.note}"


@dataclass(frozen=True)
class TypePlan:
    """A random node or edge type; ``key`` names its key properties."""

    name: str
    properties: tuple[PropertyPlan, ...]
    key: tuple[str, ...] = ()
    ends: tuple[str, str] | None = None

    @property
    def text(self) -> str:
        lines = [prop.text for prop in self.properties]
        if self.key:
            lines.append(f"@key({', '.join(self.key)})")
        body = "{ " + "  ".join(lines) + " }"
        if self.ends is None:
            return f"node {self.name} {body}"
        return f"edge {self.name}: {self.ends[0]} -> {self.ends[1]} {body}"

    @property
    def edge(self) -> str:
        """The name as queries write it."""
        return self.name[0].lower() + self.name[1:]


@dataclass(frozen=True)
class SchemaPlan:
    """A random schema."""

    nodes: tuple[TypePlan, ...]
    edges: tuple[TypePlan, ...]

    @property
    def text(self) -> str:
        return "\n".join(one.text for one in (*self.nodes, *self.edges)) + "\n"

    def node(self, name: str) -> TypePlan:
        return next(one for one in self.nodes if one.name == name)

    def edges_at(self, node: str) -> list[TypePlan]:
        return [one for one in self.edges if one.ends is not None and node in one.ends]


def random_schema(random: Random) -> SchemaPlan:
    """Two to four node types, one to five edge types; the first edge is between nodes of one type."""
    names = ["Alpha", "Beta", "Gamma", "Delta"][: random.randint(2, 4)]
    nodes = tuple(_random_node(random, name) for name in names)
    edges = []
    for i in range(random.randint(1, 5)):
        source = random.choice(names)
        target = source if i == 0 or random.random() < 0.3 else random.choice(names)
        properties = tuple(_random_properties(random, 3, exclude={"text", "vector"}))
        edges.append(TypePlan(f"Link{i}", properties, ends=(source, target)))
    return SchemaPlan(nodes, tuple(edges))


def _random_node(random: Random, name: str) -> TypePlan:
    keys: Sequence[tuple[str, ...]] = ((), ("k",), ("k",), ("n",), ("d",), ("k", "n"))
    key = random.choice(keys)
    kinds = {"k": "name", "n": "i64", "d": "date"}
    properties = [PropertyPlan(one, kinds[one], nullable=False) for one in key]
    properties += _random_properties(random, 9)
    if any(one.name == "text" for one in properties) and random.random() < 0.6:
        properties.append(PropertyPlan("meaning", "meaning", nullable=True, note=" @embed(text)"))
    return TypePlan(name, tuple(properties), key)


def _random_properties(random: Random, most: int, exclude: set[str] | None = None) -> Iterator[PropertyPlan]:
    kinds = [kind for kind in TYPES if kind != "blob" and kind not in (exclude or ())]
    for kind in random.sample(kinds, random.randint(most // 3, most)):
        indexed = kind not in LISTS and random.random() < 0.3
        yield PropertyPlan(kind, kind, random.random() < 0.7, " @index" if indexed else "")
    if random.random() < 0.2:
        yield PropertyPlan("blob", "blob", nullable=True)


def random_records(random: Random, schema: SchemaPlan, scale: int = 1) -> list[Record]:
    """Nodes and edges as the loader reads them: parallel edges and loops too, and equal ids in different types."""
    catalog = load_catalog(schema.text)
    records: list[Record] = []
    ids: dict[str, list[str]] = {}
    for node in schema.nodes:
        made = [_random_node_record(random, node, i) for i in range(random.choice(_SIZES) * scale)]
        ids[node.name] = [node_id(catalog, record) for record in made]
        records += made
    numbers = random.sample(range(1000 * scale), 200 * scale)
    for edge in schema.edges:
        assert edge.ends is not None
        sources, targets = (ids[end] for end in edge.ends)
        for _ in range(random.choice(_EDGES) * scale if sources and targets else 0):
            values = _random_values(random, edge)
            ends = {"from": random.choice(sources), "to": random.choice(targets)}
            records.append({"edge": edge.name, **ends, "data": {"id": f"e{numbers.pop()}", **values}})
    return records


def node_id(catalog: Catalog, record: Record) -> str:
    """The id under which the node of a record is stored."""
    node, values = catalog.nodes[record["type"]], record["data"]
    if not node.key:
        return str(values["id"])
    typed = {"d": dt.date.fromisoformat(values["d"])} if "d" in values else {}
    return node.id_of({**values, **typed})


def _random_node_record(random: Random, node: TypePlan, number: int) -> Record:
    values = _random_values(random, node)
    for name in node.key or ("id",):
        if name == "n":
            values[name] = 2**53 + number if len(node.key) == 1 else number % 2
        elif name == "d":
            values[name] = (dt.date(1969, 12, 29) + dt.timedelta(days=number)).isoformat()
        else:
            values[name] = _KEY_NAMES[number] if number < len(_KEY_NAMES) else f"n{number}"
    return {"type": node.name, "data": values}


def _random_values(random: Random, entity: TypePlan) -> dict[str, Any]:
    values = {}
    for prop in entity.properties:
        if prop.name in entity.key or (prop.nullable and random.random() < 0.3):
            continue
        values[prop.name] = random_value(random, prop.kind)
    return values


def random_value(random: Random, kind: str) -> Any:
    """A value of a kind, as JSON."""
    if kind == "text":
        return " ".join(random.choice(WORDS) for _ in range(random.choice((0, 1, 2, 2, 3, 4))))
    if kind in LISTS:
        return [random.choice(VALUES[LISTS[kind]]) for _ in range(random.randint(0, 3))]
    return random.choice(VALUES[kind])
