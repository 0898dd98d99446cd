"""Equal properties of variables that no hop connects, as links: a variable stands for the value that both have.

Without them every entity of one variable would be compared with every entity of the other. Where hops connect two
variables anyway, following them and comparing is less work.
"""

from __future__ import annotations

from omnigraph.lang.query import ir
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.read.pattern.pattern import Link, Node, Pattern


def link_equalities(pattern: Pattern, catalog: Catalog) -> None:
    """Replace conditions by links, where they connect parts of the pattern that are not connected otherwise."""
    part = {name: name for name in pattern.nodes}

    def root(name: str) -> str:
        while part[name] != name:
            name = part[name]
        return name

    for link in pattern.links:
        if link.ends <= part.keys():
            part[root(link.source)] = root(link.target)
    together: dict[tuple[str, str], list[tuple[ir.Filter, str, str]]] = {}
    for condition in pattern.conditions:
        found = _equality(pattern, condition, catalog)
        if found is not None and root(found[0].variable) != root(found[1].variable):
            one, other = found
            together.setdefault((one.variable, other.variable), []).append(
                (condition, one.property, other.property)
            )
    for (one_name, other_name), conditions in together.items():
        if root(one_name) != root(other_name):
            part[root(one_name)] = root(other_name)
            _link(pattern, one_name, other_name, [(name, other) for _, name, other in conditions])
            pattern.conditions = [c for c in pattern.conditions if all(c is not used for used, _, _ in conditions)]


def _equality(pattern: Pattern, condition: ir.Filter, catalog: Catalog) -> tuple[ir.Prop, ir.Prop] | None:
    """The two properties that a condition equates, of the variable that comes first first."""
    match condition:
        case ir.Filter(ir.Prop() as left, ir.Op.EQ, ir.Prop() as right) if left.variable != right.variable:
            if not {left.variable, right.variable} <= pattern.nodes.keys():
                return None
            if any(_is_blob(side, pattern, catalog) for side in (left, right)):
                return None
            order = list(pattern.nodes)
            ordered = sorted((left, right), key=lambda side: order.index(side.variable))
            return ordered[0], ordered[1]
    return None


def _is_blob(side: ir.Prop, pattern: Pattern, catalog: Catalog) -> bool:
    properties = catalog.nodes[pattern.nodes[side.variable].type_name].properties
    return side.property in properties and properties[side.property].type.is_blob


def _link(pattern: Pattern, left: str, right: str, properties: list[tuple[str, str]]) -> None:
    """Connect two variables by the value that they have in common."""
    from omnigraph.read.data.equality import Equality, Side, ValueHop

    sides = [
        Side(pattern.nodes[name].type_name, tuple(pair[number] for pair in properties))
        for number, name in enumerate((left, right))
    ]
    equality = Equality(*sides)
    shown = " and ".join(f"${left}.{one} = ${right}.{other}" for one, other in properties)
    value = f"{shown}#"
    pattern.nodes[value] = Node(value, "", equality=equality)
    for name, side in zip((left, right), sides, strict=True):
        hop = ValueHop(equality, side)
        pattern.links.append(Link(name, value, ", ".join(side.properties), ir.Direction.OUT, value=hop))
