"""The steps of a match on Spark: the operations of the IR, with every condition where it costs least.

A condition on one variable is checked while that variable's table is read, by the code that the embedded engine
checks it with. If the variable may be missing by then, or belongs to an outer block, whether it holds is read as
one more column. Only conditions over several variables are left for Spark to compare.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from omnigraph.lang.query import ir
from omnigraph.lang.query.functions.table import may_fail
from omnigraph.lang.schema.catalog import Catalog, EdgeType, EntityType
from omnigraph.read.pattern.pattern import mentioned

Entity = EntityType
Carried = ir.Prop | ir.TextMatch | ir.Score | ir.Filter | ir.Call
"""A value that a variable carries as a column: a property, or something computed while its table is read."""


@dataclass(frozen=True, slots=True)
class Scan:
    """All entities of a type for which the conditions hold."""

    variable: str
    entity: Entity
    conditions: tuple[ir.Filter, ...] = ()


@dataclass(frozen=True, slots=True)
class Hop:
    """Follow an edge from a variable to the target: nodes to be read, or a variable that is bound already."""

    source: str
    edge: EdgeType
    direction: ir.Direction
    min_hops: int
    max_hops: int
    target: Scan | str
    edges: Scan | None
    """The edges to be read, if the query names them."""
    backwards: bool = False
    """Does a chain lead from the right variable of its clause to the left one?"""

    @property
    def is_single(self) -> bool:
        return self.min_hops == self.max_hops == 1


@dataclass(frozen=True, slots=True)
class Keep:
    """Keep the rows for which a condition holds."""

    condition: ir.Filter


@dataclass(frozen=True, slots=True)
class Block:
    """Inner steps for each row: an optional block adds what they find, an absent one drops rows that find any."""

    kind: Literal["optional", "absent"]
    inner: tuple[Step, ...]
    introduces: tuple[str, ...] = ()


Step = Scan | Hop | Keep | Block


@dataclass(frozen=True, slots=True)
class Match:
    """The steps of a whole match, the types of its variables, and the values that each variable carries, by name
    and table: blocks side by side may use one name for variables of different types."""

    steps: tuple[Step, ...]
    variables: Mapping[str, Entity]
    carried: Mapping[tuple[str, str], tuple[Carried, ...]]

    def carried_by(self, variable: str, entity: Entity) -> tuple[Carried, ...]:
        return self.carried.get((variable, entity.table_key), ())


def match_of(query: ir.QueryIR, catalog: Catalog) -> Match:
    """The steps of a query's match; variables carry the values that the results need."""
    arranging = _Arranging(catalog)
    variables: dict[str, Entity] = {}
    steps = arranging.block(query.pipeline, variables)
    every = (*(c.expression for c in query.columns), *(o.expression for o in query.order), *query.having)
    for expression in every:
        arranging.carry(values_in(expression), variables)
    return Match(steps, variables, {key: tuple(items) for key, items in arranging.carried.items()})


class _Arranging:
    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.carried: dict[tuple[str, str], dict[Carried, None]] = {}

    def block(self, operations: Sequence[ir.Operation], known: dict[str, Entity]) -> tuple[Step, ...]:
        """The steps of one block; ``known`` has the variables from outside and gets those it binds."""
        own = _bound_by(operations)
        pushed: dict[str, list[ir.Filter]] = {}
        for operation in operations:
            if isinstance(operation, ir.Filter) and len(names := set(mentioned(operation))) == 1 and names <= own:
                pushed.setdefault(names.pop(), []).append(operation)
        return tuple(self._steps(operations, known, pushed))

    def _steps(
        self, operations: Sequence[ir.Operation], known: dict[str, Entity], pushed: Mapping[str, list[ir.Filter]]
    ) -> Iterator[Step]:
        checked = {condition for conditions in pushed.values() for condition in conditions}
        for operation in operations:
            match operation:
                case ir.NodeScan(variable, type_name, filters):
                    known[variable] = self.catalog.nodes[type_name]
                    yield Scan(variable, known[variable], (*filters, *pushed.get(variable, ())))
                case ir.Expand():
                    yield self._hop(operation, known, pushed)
                case ir.Filter() if operation not in checked:
                    self.carry(_compared(operation), known)
                    yield Keep(operation)
                case ir.Optionally(inner, introduces):
                    within = dict(known)
                    yield Block("optional", self.block(inner, within), introduces)
                    known.update({name: within[name] for name in introduces})
                case ir.AntiJoin(_, inner):
                    yield Block("absent", self.block(inner, dict(known)))

    def _hop(self, expand: ir.Expand, known: dict[str, Entity], pushed: Mapping[str, list[ir.Filter]]) -> Hop:
        edge = self.catalog.followed(expand.edge_type)
        edges = None
        if expand.edge_variable is not None:
            known[expand.edge_variable] = edge
            edges = Scan(expand.edge_variable, edge, tuple(pushed.get(expand.edge_variable, ())))
        target: Scan | str
        if expand.closes is not None:
            target = expand.closes
        else:
            node = known[expand.target] = self.catalog.nodes[expand.target_type]
            conditions = (*expand.target_filters, *pushed.get(expand.target, ()))
            target = Scan(expand.target, node, conditions)
        return Hop(expand.source, edge, expand.direction, *expand.hops, target, edges, expand.backwards)

    def carry(self, items: Iterator[tuple[str, Carried]], known: Mapping[str, Entity]) -> None:
        """Make variables carry values."""
        for variable, item in items:
            self.carried.setdefault((variable, known[variable].table_key), {})[item] = None


def _bound_by(operations: Sequence[ir.Operation]) -> set[str]:
    """The variables that operations bind in every row."""
    names: set[str] = set()
    for operation in operations:
        match operation:
            case ir.NodeScan(variable, _, _):
                names.add(variable)
            case ir.Expand(_, target):
                names |= {target} if operation.edge_variable is None else {target, operation.edge_variable}
    return names


def _compared(condition: ir.Filter) -> Iterator[tuple[str, Carried]]:
    """What a condition needs of its variables: whether it holds, if it has only one and always a value, else both
    sides."""
    names = set(mentioned(condition))
    if len(names) == 1 and not may_fail(condition):
        yield names.pop(), condition
    elif names:
        yield from values_in(condition.left)
        yield from values_in(condition.right)


def values_in(expression: ir.Expr | None) -> Iterator[tuple[str, Carried]]:
    """The values of single variables that an expression is made of. Ids are always carried; what may have no value
    is not computed while a table is read, for there are rows that do not match."""
    match expression:
        case ir.Prop(variable, name) if name != "id":
            yield variable, expression
        case ir.TextMatch():
            yield expression.variable, expression
        case ir.Score() | ir.Rrf():
            yield from ((arm.variable, arm) for arm in expression.arms())
        case ir.Agg(_, argument, _):
            yield from values_in(argument)
        case ir.Call() | ir.Filter():
            names = set(mentioned(expression))
            if len(names) == 1 and is_of_rows(expression) and not may_fail(expression):
                yield names.pop(), expression
            else:
                operands = (
                    expression.operands if isinstance(expression, ir.Call) else (expression.left, expression.right)
                )
                for operand in operands:
                    yield from values_in(operand)


def is_of_rows(expression: ir.Expr) -> bool:
    """Is it computed from rows, and not from groups of them?"""
    return not any(isinstance(part, ir.Agg) for part in ir.parts(expression))


def scans_in(steps: Sequence[Step]) -> Iterator[Scan]:
    """Every scan, also those of hops and of blocks."""
    for step in steps:
        match step:
            case Scan():
                yield step
            case Hop(target=target, edges=edges):
                yield from (scan for scan in (target, edges) if isinstance(scan, Scan))
            case Block(_, inner):
                yield from scans_in(inner)


def hops_in(steps: Sequence[Step]) -> Iterator[Hop]:
    """Every hop, also those of blocks."""
    for step in steps:
        match step:
            case Hop():
                yield step
            case Block(_, inner):
                yield from hops_in(inner)


def named_in(steps: Sequence[Step]) -> set[str]:
    """All variables that steps bind or mention."""
    names: set[str] = set()
    for step in steps:
        match step:
            case Scan(variable):
                names.add(variable)
            case Hop(source, target=target, edges=edges):
                names |= {source, target if isinstance(target, str) else target.variable}
                names |= set() if edges is None else {edges.variable}
            case Keep(condition):
                names |= set(mentioned(condition))
            case Block(_, inner, introduces):
                names |= named_in(inner) | set(introduces)
    return names


def compared_of(variable: str, steps: Sequence[Step]) -> set[Carried]:
    """The values of a variable that steps compare, besides its id."""
    compared: set[Carried] = set()
    for step in steps:
        match step:
            case Keep(condition):
                compared |= {item for name, item in _compared(condition) if name == variable}
            case Block(_, inner):
                compared |= compared_of(variable, inner)
    return compared
