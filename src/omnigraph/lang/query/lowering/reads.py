"""From a checked read query to its intermediate representation."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping

from omnigraph.lang.query import ir
from omnigraph.lang.query.lowering.expressions import lower_expression
from omnigraph.lang.query.syntax import (
    AliasRef,
    Comparison,
    Expression,
    IntegerLiteral,
    ListLiteral,
    Nearest,
    NullTest,
    Ordering,
    PropertyRef,
    QuerySyntax,
    ReadBody,
    TextPredicate,
    Variable,
)
from omnigraph.lang.query.typecheck.patterns import Condition, Pattern, Step, mentioned_in
from omnigraph.lang.query.typecheck.results import ResultColumn, is_ranking
from omnigraph.lang.query.typecheck.scope import Scope
from omnigraph.lang.values import BOOL, I64, STRING, ValueType

COMPARISONS: Mapping[str, ir.Op] = {
    op.value: op for op in (ir.Op.EQ, ir.Op.NE, ir.Op.GT, ir.Op.LT, ir.Op.GE, ir.Op.LE)
}
_TRUE = ir.Constant(True, BOOL)
_REVERSED = {
    ir.Direction.OUT: ir.Direction.IN,
    ir.Direction.IN: ir.Direction.OUT,
    ir.Direction.BOTH: ir.Direction.BOTH,
}


def lower_read(
    query: QuerySyntax,
    body: ReadBody,
    pattern: Pattern,
    columns: list[ResultColumn],
    params: Mapping[str, ValueType],
) -> ir.QueryIR:
    """The pipeline and projection of a read that has passed the type checker."""
    scope = pattern.scope
    lowering = _Lowering(params)
    pipeline = tuple(lowering.block(pattern, _Known()))
    by_name = {column.name: column for column in columns}
    return ir.QueryIR(
        name=query.name.text,
        params=params,
        pipeline=pipeline,
        columns=tuple(
            ir.Column(c.name, lower_expression(c.expression, scope, params), c.type or STRING) for c in columns
        ),
        distinct=body.distinct,
        order=tuple(_order(ordering, by_name, scope, params) for ordering in body.order),
        limit=_count(body.limit),
        offset=_count(body.offset),
    )


def _count(count: IntegerLiteral | Variable | None) -> ir.Constant | ir.Param | None:
    if count is None:
        return None
    return ir.Param(count.name) if isinstance(count, Variable) else ir.Constant(count.value, I64)


def _order(
    ordering: Ordering, columns: Mapping[str, ResultColumn], scope: Scope, params: Mapping[str, ValueType]
) -> ir.Order:
    """A sort key. Rankings put the best first, through an alias unless a direction says otherwise."""
    expression = ordering.expression
    key = lower_expression(expression, scope, params)
    if is_ranking(expression):
        return ir.Order(key, descending=not isinstance(expression, Nearest))
    if ordering.direction is not None:
        return ir.Order(key, descending=ordering.direction == "desc")
    best_is_largest = False
    if isinstance(expression, AliasRef):
        column = columns[expression.name]
        best_is_largest = column.is_score and not isinstance(column.expression, Nearest)
    return ir.Order(key, descending=best_is_largest)


class _Known:
    """The variables that have a value at some point of a pipeline, inner blocks building on outer ones."""

    def __init__(self, outer: _Known | None = None) -> None:
        self.outer = outer
        self.own: set[str] = set()

    def __contains__(self, name: str) -> bool:
        known: _Known | None = self
        while known is not None:
            if name in known.own:
                return True
            known = known.outer
        return False


class _Lowering:
    def __init__(self, params: Mapping[str, ValueType]) -> None:
        self.params = params
        self.temporaries = 0

    def block(self, pattern: Pattern, known: _Known) -> Iterator[ir.Operation]:
        """Scans and expands, then filters, then optional blocks and what builds on them, then negations."""
        late = {name for optional in pattern.optionals for name in _introduced(optional)}
        for name in pattern.matches:
            if name not in pattern.introduced and name not in late:
                yield from self._matches(pattern, name)
        yield from self._steps(pattern, _untouched_by(late, pattern), known)
        yield from (self._filter(c, pattern) for c in pattern.conditions if not _uses(c, late))
        for optional in pattern.optionals:
            inner = _Known(known)
            yield ir.Optionally(tuple(self.block(optional, inner)), tuple(_introduced(optional)))
            known.own |= inner.own
        for name in pattern.matches:
            if name in late:
                yield from self._matches(pattern, name)
        if late:
            early = {id(step) for step in _untouched_by(late, pattern)}
            yield from self._steps(pattern, [s for s in pattern.steps if id(s) not in early], known)
        yield from (self._filter(c, pattern) for c in pattern.conditions if _uses(c, late))
        for negation in pattern.negations:
            yield ir.AntiJoin(negation.outer, tuple(self.block(negation, _Known(known))))

    def _steps(self, pattern: Pattern, steps: list[Step], known: _Known) -> Iterator[ir.Operation]:
        """Each component from its first binding; each traversal as soon as one of its ends is known."""
        waiting: dict[str, list[int]] = {}
        for index, step in enumerate(steps):
            for end in {step.source, step.target}:
                waiting.setdefault(end, []).append(index)
        ready = sorted(index for name, indexes in waiting.items() if name in known for index in indexes)
        done = [False] * len(steps)

        def learn(name: str) -> None:
            known.own.add(name)
            for index in waiting.get(name, ()):
                heapq.heappush(ready, index)

        def drain() -> Iterator[ir.Operation]:
            while ready:
                index = heapq.heappop(ready)
                if not done[index]:
                    done[index] = True
                    yield from self._expand(pattern, steps[index], known, learn)

        yield from drain()
        for name in pattern.bound:
            if name not in known:
                yield self._scan(pattern, name)
                learn(name)
                yield from drain()
        for index, step in enumerate(steps):
            if not done[index]:
                yield self._scan(pattern, step.source)
                learn(step.source)
                yield from drain()

    def _scan(self, pattern: Pattern, name: str) -> ir.NodeScan:
        return ir.NodeScan(name, pattern.introduced[name], tuple(self._matches(pattern, name)))

    def _expand(
        self, pattern: Pattern, step: Step, known: _Known, learn: Callable[[str], None]
    ) -> Iterator[ir.Operation]:
        source, target, direction, target_type = step.source, step.target, step.direction, step.target_type
        if source not in known:
            source, target, target_type = target, source, step.source_type
            direction = _REVERSED[direction]
        closes = target in known
        reached = target
        if closes:
            self.temporaries += 1
            reached = f"{target}#{self.temporaries}"
        yield ir.Expand(
            source=source,
            target=reached,
            edge_type=step.edge.name,
            direction=direction,
            target_type=target_type,
            min_hops=step.min_hops,
            max_hops=step.max_hops,
            target_filters=() if closes else tuple(self._matches(pattern, target)),
            edge_variable=step.edge_variable,
        )
        if closes:
            yield ir.Filter(ir.Prop(reached, "id"), ir.Op.EQ, ir.Prop(target, "id"))
        else:
            learn(target)

    def _matches(self, pattern: Pattern, name: str) -> Iterator[ir.Filter]:
        """The conditions of a variable's bindings; on a list property they ask for membership."""
        for node, match in pattern.matches.get(name, ()):
            prop = match.property.text
            op = ir.Op.CONTAINS if node.properties[prop].type.is_list else ir.Op.EQ
            yield ir.Filter(ir.Prop(name, prop), op, self._value(match.value, pattern))

    def _value(self, expression: Expression, pattern: Pattern) -> ir.Expr:
        return lower_expression(expression, pattern.scope, self.params)

    def _filter(self, condition: Condition, pattern: Pattern) -> ir.Filter:
        match condition:
            case NullTest(operand, negated):
                op = ir.Op.IS_NOT_NULL if negated else ir.Op.IS_NULL
                return ir.Filter(self._value(operand, pattern), op)
            case TextPredicate(call):
                return ir.Filter(self._value(call, pattern), ir.Op.EQ, _TRUE)
            case Comparison(left, operator, right):
                lowered, other = self._value(left, pattern), self._value(right, pattern)
                if operator == "in":
                    return ir.Filter(other, ir.Op.CONTAINS, lowered)
                if operator == "contains":
                    op = ir.Op.CONTAINS if self._is_list(left, pattern.scope) else ir.Op.STRING_CONTAINS
                    return ir.Filter(lowered, op, other)
                op = ir.Op.STARTS_WITH if operator == "starts_with" else COMPARISONS[operator]
                return ir.Filter(lowered, op, other)

    def _is_list(self, expression: Expression, scope: Scope) -> bool:
        """Is the left side of `contains` a list, or a text?"""
        match expression:
            case Variable(name):
                return self.params[name].is_list
            case PropertyRef(variable, name):
                bound = scope.find(variable.name)
                return (
                    bound is not None and bound.type is not None and bound.type.properties[name.text].type.is_list
                )
            case _:
                return isinstance(expression, ListLiteral)


def _introduced(pattern: Pattern) -> Iterator[str]:
    """All variables that exist only if an optional block matches."""
    yield from pattern.introduced
    yield from pattern.edge_variables
    for optional in pattern.optionals:
        yield from _introduced(optional)


def _uses(condition: Condition, names: set[str]) -> bool:
    return bool(names) and any(name in names for name in _mentioned(condition))


def _mentioned(condition: Condition) -> Iterable[str]:
    match condition:
        case Comparison(left, _, right):
            return (*mentioned_in(left), *mentioned_in(right))
        case NullTest(operand):
            return tuple(mentioned_in(operand))
        case TextPredicate(call):
            return tuple(mentioned_in(call))


def _untouched_by(late: set[str], pattern: Pattern) -> list[Step]:
    """The steps that do not start from a variable of an optional block, directly or over other steps."""
    if not late:
        return pattern.steps
    reached = set(late)
    anchored = set(pattern.bound)
    linked: dict[str, list[str]] = {}
    for step in pattern.steps:
        linked.setdefault(step.source, []).append(step.target)
        linked.setdefault(step.target, []).append(step.source)
    frontier = list(late)
    while frontier:
        for neighbour in linked.get(frontier.pop(), ()):
            if neighbour not in reached and neighbour in pattern.introduced and neighbour not in anchored:
                reached.add(neighbour)
                frontier.append(neighbour)
    return [s for s in pattern.steps if s.source not in reached and s.target not in reached]
