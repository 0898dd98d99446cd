"""Walking an IR: every variable is introduced before it is used, once, and where it can be seen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from omnigraph.lang.query import ir


def check_variables(query: ir.QueryIR) -> None:
    """AssertionError if the query uses a variable that has no value yet, or gives one a value twice."""
    known: set[str] = set()
    _operations(query.pipeline, known)
    used = [name for column in query.columns for name in variables(column.expression)]
    used += [name for order in query.order for name in variables(order.expression)]
    _known(used, known, "the result")


def operations(pipeline: Iterable[ir.Operation]) -> Iterator[ir.Operation]:
    """All operations, those of inner blocks included."""
    for operation in pipeline:
        yield operation
        if isinstance(operation, ir.Optionally | ir.AntiJoin):
            yield from operations(operation.inner)


def variables(expression: ir.Expr | None) -> Iterator[str]:
    """The variables that an expression mentions."""
    match expression:
        case ir.Prop(variable) | ir.Score(variable) | ir.TextMatch(_, variable):
            yield variable
        case ir.Var(name):
            yield name
        case ir.Agg(_, argument):
            yield from variables(argument)
        case ir.Rrf(first, second):
            yield from variables(first)
            yield from variables(second)
        case _:
            return


def _operations(pipeline: Iterable[ir.Operation], known: set[str]) -> None:
    for operation in pipeline:
        match operation:
            case ir.NodeScan(variable, _, filters):
                _introduce([variable], known, operation)
                _filters(filters, {variable}, operation)
            case ir.Expand(source, target, edge_variable=edge):
                _known([source] if operation.closes is None else [source, operation.closes], known, operation)
                _introduce([target] if edge is None else [target, edge], known, operation)
                _filters(operation.target_filters, {target}, operation)
            case ir.Filter():
                _filters([operation], known, operation)
            case ir.Optionally(inner, introduces):
                inside = set(known)
                _operations(inner, inside)
                named = {name for name in inside - known if "#" not in name}
                assert named <= set(introduces) <= inside - known, operation
                known |= set(introduces)
            case ir.AntiJoin(outer, inner):
                _known(outer, known, operation)
                _operations(inner, set(known))


def _introduce(names: Iterable[str], known: set[str], where: ir.Operation) -> None:
    for name in names:
        assert name not in known, f"${name} has a value already: {where}"
        known.add(name)


def _filters(filters: Iterable[ir.Filter], known: set[str], where: ir.Operation) -> None:
    for condition in filters:
        _known([*variables(condition.left), *variables(condition.right)], known, where)


def _known(names: Iterable[str], known: set[str], where: object) -> None:
    for name in names:
        assert name in known, f"${name} has no value yet: {where}"
