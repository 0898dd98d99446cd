"""Random changes of a random graph: rows replaced and added, properties set, nodes and edges deleted."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from random import Random

from tests.read.conditions import FAMILIES, Operands, spelled
from tests.read.graphs import Record, SchemaPlan, TypePlan, random_records, random_value

from omnigraph.graph import Graph


def change(random: Random, graph: Graph, schema: SchemaPlan, records: Sequence[Record], branch: str) -> None:
    """Make some changes, each a commit of its own."""
    operands = Operands(random, records)
    for _ in range(random.randint(1, 3)):
        if random.random() < 0.4:
            _merge(random, graph, schema, branch)
        else:
            entity = random.choice((*schema.nodes, *schema.edges))
            texts = list(_statements(random, entity, operands))
            if texts:
                graph.mutate(f"query q() {{ {random.choice(texts)} }}", branch=branch)


def _merge(random: Random, graph: Graph, schema: SchemaPlan, branch: str) -> None:
    """Nodes and edges with the ids of those there are, which replace some of them, and new ones."""
    made = random_records(random, schema)
    graph.load("\n".join(json.dumps(record) for record in made).encode(), mode="merge", branch=branch)


def _statements(random: Random, entity: TypePlan, operands: Operands) -> Iterator[str]:
    """A deletion, and for a node an update, by some property."""
    plain = [prop for prop in entity.properties if prop.kind in FAMILIES]
    if not plain:
        return
    where = random.choice(plain)
    condition = f"{where.name} {random.choice(('=', '=', '!=', '<'))} {operands.known(entity, where)}"
    yield f"delete {entity.name} where {condition}"
    settable = [
        prop for prop in plain if prop.name not in entity.key and prop.kind != "u64" and prop.kind != "f64"
    ]
    if entity.ends is None and settable:
        target = random.choice(settable)
        value = spelled(FAMILIES[target.kind], random_value(random, target.kind))
        yield f"update {entity.name} set {{ {target.name}: {value} }} where {condition}"
