"""From a checked read query to its intermediate representation."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from omnigraph.lang.query import ir
from omnigraph.lang.query.functions.signature import unified
from omnigraph.lang.query.lowering.computed import conditions_of
from omnigraph.lang.query.lowering.dependencies import Known, Waiting, introduced_by, mentioned_by, untouched_by
from omnigraph.lang.query.lowering.expressions import lower_expression
from omnigraph.lang.query.scores import SCORES
from omnigraph.lang.query.syntax.clauses import Requirement, TextPredicate
from omnigraph.lang.query.syntax.expressions import (
    COMPUTED,
    AliasRef,
    Expression,
    IntegerLiteral,
    ScoreCall,
    Variable,
    Whole,
)
from omnigraph.lang.query.syntax.queries import Ordering, QuerySyntax
from omnigraph.lang.query.typecheck.naming import ResultColumn, column_name, without_aliases
from omnigraph.lang.query.typecheck.patterns import Condition, Pattern, Step
from omnigraph.lang.query.typecheck.reads import CheckedRead
from omnigraph.lang.query.typecheck.scope import Scope
from omnigraph.lang.query.typecheck.wholes import ENDS, fields_of
from omnigraph.lang.values import STRING, U64, ValueType

_REVERSED = {
    ir.Direction.OUT: ir.Direction.IN,
    ir.Direction.IN: ir.Direction.OUT,
    ir.Direction.BOTH: ir.Direction.BOTH,
}


def lower_read(query: QuerySyntax, checked: Sequence[CheckedRead], params: Mapping[str, ValueType]) -> ir.ReadIR:
    """The pipelines and projections of a read that has passed the type checker."""
    first, *others = checked
    name = query.name.text
    if not others:
        return _read(name, first, params)
    page = replace(first.body, order=(), limit=None, offset=None)
    reads = tuple(_read(name, one, params) for one in (replace(first, body=page), *others))
    columns = tuple(map(_united, zip(*(read.columns for read in reads), strict=True)))
    return ir.UnionIR(
        name=name,
        params=params,
        reads=reads,
        columns=columns,
        repeats=first.body.repeats,
        order=tuple(
            ir.Order(ir.Alias(column_name(one.expression)), descending=one.direction == "desc")
            for one in first.body.order
        ),
        limit=_count(first.body.limit),
        offset=_count(first.body.offset),
    )


def _united(columns: Sequence[ir.Column]) -> ir.Column:
    """The column that those of all reads become."""
    shared = unified([column.type for column in columns])
    assert shared is not None  # noqa: S101  the checker refuses columns without a shared type
    return replace(columns[0], type=shared)


def _read(name: str, checked: CheckedRead, params: Mapping[str, ValueType]) -> ir.QueryIR:
    body, pattern, columns = checked.body, checked.pattern, checked.columns
    scope = pattern.scope
    lowering = _Lowering(params)
    pipeline = tuple(lowering.block(pattern, Known()))
    by_name = {column.name: column for column in columns}
    return ir.QueryIR(
        name=name,
        params=params,
        pipeline=pipeline,
        columns=tuple(made for column in columns for made in _columns(column, scope, params)),
        distinct=body.distinct,
        order=tuple(_order(ordering, by_name, scope, params) for ordering in body.order),
        limit=_count(body.limit),
        offset=_count(body.offset),
        having=tuple(
            condition
            for one in body.having
            for condition in conditions_of(_of_groups(one.condition, by_name, scope, params))
        ),
    )


def _columns(column: ResultColumn, scope: Scope, params: Mapping[str, ValueType]) -> Iterator[ir.Column]:
    """What is computed for a column of the result: of a whole node or edge its fields."""
    if not isinstance(column.expression, Whole):
        yield ir.Column(column.name, lower_expression(column.expression, scope, params), column.type or STRING)
        return
    variable = column.expression.variable.name
    bound = scope.find(variable)
    assert bound is not None  # noqa: S101  the checker found it
    for field, kind in fields_of(bound):
        value = ir.Var(variable) if field == "id" else ir.Prop(variable, ENDS.get(field, field))
        yield ir.Column(column.name, value, kind, field)


def _of_groups(
    expression: Expression, columns: Mapping[str, ResultColumn], scope: Scope, params: Mapping[str, ValueType]
) -> ir.Expr:
    """An expression over groups, in which an alias is what its column computes."""
    return lower_expression(without_aliases(expression, columns), scope, params)


def _count(count: IntegerLiteral | Variable | None) -> ir.Constant | ir.Param | None:
    if count is None:
        return None
    return ir.Param(count.name) if isinstance(count, Variable) else ir.Constant(count.value, U64)


def _order(
    ordering: Ordering, columns: Mapping[str, ResultColumn], scope: Scope, params: Mapping[str, ValueType]
) -> ir.Order:
    """A sort key. Rankings put the best first, through an alias unless a direction says otherwise."""
    expression = ordering.expression
    key = lower_expression(expression, scope, params)
    if isinstance(expression, COMPUTED):
        key = _of_groups(expression, columns, scope, params)
    if isinstance(expression, ScoreCall):
        return ir.Order(key, descending=SCORES[expression.function].descending)
    if ordering.direction is not None:
        return ir.Order(key, descending=ordering.direction == "desc")
    named = columns[expression.name].expression if isinstance(expression, AliasRef) else None
    return ir.Order(key, descending=isinstance(named, ScoreCall) and SCORES[named.function].descending)


class _Lowering:
    def __init__(self, params: Mapping[str, ValueType]) -> None:
        self.params = params
        self.temporaries = 0

    def block(self, pattern: Pattern, known: Known) -> Iterator[ir.Operation]:
        """Scans and expands, then filters, then optional blocks and what builds on them, then negations."""
        late = {name for optional in pattern.optionals for name in introduced_by(optional)}
        for name in pattern.matches:
            if name not in pattern.introduced and name not in late:
                yield from self._matches(pattern, name)
        early = untouched_by(late, pattern)
        yield from self._steps(pattern, early, known, pattern.bound)
        deferred = [condition for condition in pattern.conditions if not self._settled(condition, known)]
        skipped = {id(condition) for condition in deferred}
        for condition in pattern.conditions:
            if id(condition) not in skipped:
                yield from self._filters(condition, pattern)
        waiting = Waiting(pattern, early)
        ahead = set(late)
        for optional in pattern.optionals:
            yield from self._steps(pattern, waiting.leading_to(optional, ahead, known), known)
            inner = Known(known)
            introduced = tuple(introduced_by(optional))
            yield ir.Optionally(tuple(self.block(optional, inner)), introduced)
            known.own |= inner.own
            ahead.difference_update(introduced)
        for name in pattern.matches:
            if name in late:
                yield from self._matches(pattern, name)
        yield from self._steps(pattern, waiting.rest(), known)
        for condition in deferred:
            yield from self._filters(condition, pattern)
        for negation in pattern.negations:
            absent = ir.AntiJoin(negation.outer, self._negated(negation, known))
            yield ir.AntiJoin(negation.outer, (absent,)) if negation.demanded else absent

    def _negated(self, negation: Pattern, known: Known) -> tuple[ir.Operation, ...]:
        """The inner operations; a variable of the block's own that has an outer namesake is renamed."""
        namesakes = [name for name in negation.scope.own if name in known]
        operations = tuple(self.block(negation, Known(known, namesakes)))
        if not namesakes:
            return operations
        from omnigraph.lang.query.lowering.renaming import rename

        return rename(operations, {name: self._hidden(name) for name in namesakes})

    def _hidden(self, name: str) -> str:
        """A name that no query can write."""
        self.temporaries += 1
        return f"{name}#{self.temporaries}"

    def _settled(self, condition: Condition, known: Known) -> bool:
        """Does everything a condition mentions have a value?"""
        return all(name in self.params or name in known for name in mentioned_by(condition))

    def _steps(
        self, pattern: Pattern, steps: list[Step], known: Known, bound: Iterable[str] = ()
    ) -> Iterator[ir.Operation]:
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
        for name in bound:
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
        self, pattern: Pattern, step: Step, known: Known, learn: Callable[[str], None]
    ) -> Iterator[ir.Operation]:
        source, target, direction, target_type = step.source, step.target, step.direction, step.target_type
        backwards = source not in known
        if backwards:
            source, target, target_type = target, source, step.source_type
            direction = _REVERSED[direction]
        closes = target in known
        yield ir.Expand(
            source=source,
            target=self._hidden(target) if closes else target,
            edge_type=step.edge.name,
            direction=direction,
            target_type=target_type,
            min_hops=step.min_hops,
            max_hops=step.max_hops,
            target_filters=() if closes else tuple(self._matches(pattern, target)),
            edge_variable=step.edge_variable,
            backwards=backwards and (step.min_hops, step.max_hops) != (1, 1),
            closes=target if closes else None,
            chains=step.edge.symmetric,
        )
        if step.edge_variable is not None:
            known.own.add(step.edge_variable)
        if not closes:
            learn(target)

    def _matches(self, pattern: Pattern, name: str) -> Iterator[ir.Filter]:
        """The conditions of a variable's bindings; on a list property they ask for membership."""
        for node, match in pattern.matches.get(name, ()):
            prop = match.property.text
            op = ir.Op.CONTAINS if node.properties[prop].type.is_list else ir.Op.EQ
            yield ir.Filter(ir.Prop(name, prop), op, self._value(match.value, pattern))

    def _value(self, expression: Expression, pattern: Pattern) -> ir.Expr:
        return lower_expression(expression, pattern.scope, self.params)

    def _filters(self, condition: Condition, pattern: Pattern) -> Iterator[ir.Filter]:
        match condition:
            case TextPredicate(call):
                yield ir.condition(self._value(call, pattern))
            case Requirement(inner):
                yield from conditions_of(self._value(inner, pattern))
            case _:
                yield ir.condition(self._value(condition, pattern))
