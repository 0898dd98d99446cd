"""The IR as text: one line per operation, inner ones indented."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Iterator, Sequence

from omnigraph.lang.query import ir

_ARROWS = {ir.Direction.OUT: "-{}->", ir.Direction.IN: "<-{}-", ir.Direction.BOTH: "<-{}->"}


def explain_ir(plan: ir.ReadIR | ir.MutationIR) -> str:
    """A plan a person can read."""
    match plan:
        case ir.MutationIR():
            lines = _mutation(plan)
        case ir.UnionIR():
            lines = _union(plan)
        case ir.QueryIR():
            lines = _read(plan)
    return "\n".join(lines)


def _union(union: ir.UnionIR) -> Iterator[str]:
    for index, read in enumerate(union.reads):
        if index:
            yield show_union(union)
        yield from _read(read)
    yield from _page(union)


def show_union(union: ir.UnionIR) -> str:
    """What stands between the reads of a union."""
    return "Union all" if union.repeats else "Union"


def _read(query: ir.QueryIR) -> Iterator[str]:
    yield from explain_operations(query.pipeline, "")
    shown = ", ".join(map(show_column, ir.result_columns(query.columns)))
    yield f"{'Aggregate' if query.aggregates else 'Return'}{' distinct' if query.distinct else ''} {shown}"
    if query.having:
        yield f"Having {' and '.join(map(show_condition, query.having))}"
    yield from _page(query)


def _page(query: ir.ReadIR) -> Iterator[str]:
    if query.order:
        keys = (f"{show(o.expression)}{' desc' if o.descending else ''}" for o in query.order)
        yield f"Order {', '.join(keys)}"
    if query.limit is not None:
        offset = "" if query.offset is None else f" offset {show(query.offset)}"
        yield f"Limit {show(query.limit)}{offset}"


def show_column(fields: Sequence[ir.Column]) -> str:
    """A column of the result, with its name if that is another one."""
    column = fields[0]
    shown = show(column.expression)
    if column.field is not None:
        return f"{shown}.*" if shown == f"${column.name}" else f"{shown}.* as {column.name}"
    return shown if shown in (column.name, f"${column.name}") else f"{shown} as {column.name}"


def explain_operations(operations: Iterable[ir.Operation], indent: str = "") -> Iterator[str]:
    """Operations as lines, inner ones indented."""
    for operation in operations:
        match operation:
            case ir.NodeScan(variable, type_name, filters):
                yield f"{indent}Scan ${variable}: {type_name}{_where(filters)}"
            case ir.Expand():
                yield f"{indent}Expand {_expand(operation)}{_where(operation.target_filters)}"
                if operation.closes is not None:
                    yield f"{indent}Filter ${operation.target}.id = ${operation.closes}.id"
            case ir.Filter():
                yield f"{indent}Filter {show_condition(operation)}"
            case ir.Optionally(inner, introduces):
                yield f"{indent}Optional introducing {_variables(introduces)}"
                yield from explain_operations(inner, indent + "  ")
            case ir.AntiJoin(outer, inner):
                yield f"{indent}AntiJoin on {_variables(outer)}"
                yield from explain_operations(inner, indent + "  ")


def _expand(expand: ir.Expand) -> str:
    edge = expand.edge_type
    if expand.edge_variable is not None:
        edge = f"${expand.edge_variable}:{edge}"
    if (expand.min_hops, expand.max_hops) != (1, 1):
        edge += f"{{{expand.min_hops},{expand.max_hops}}}"
    arrow = _ARROWS[expand.direction].format(edge)
    return f"${expand.source} {arrow} ${expand.target}: {expand.target_type}"


def _variables(names: Iterable[str]) -> str:
    return ", ".join(f"${name}" for name in names) or "nothing"


def _where(filters: tuple[ir.Filter, ...]) -> str:
    return f" where {' and '.join(show_condition(f) for f in filters)}" if filters else ""


def show_condition(condition: ir.Filter) -> str:
    """A condition, close to how a query writes it."""
    if condition.right == ir.TRUE and isinstance(condition.left, ir.Call):
        return show(condition.left)
    right = "" if condition.right is None else f" {show(condition.right)}"
    return f"{show(condition.left)} {condition.op.value}{right}"


def show(expression: ir.Expr) -> str:
    """An expression, close to how a query writes it."""
    match expression:
        case ir.Prop(variable, name):
            return name if variable == ir.ROW else f"${variable}.{name}"
        case ir.Var(name):
            return f"${name}"
        case ir.Param(name):
            return "now()" if name == ir.NOW else f"param ${name}"
        case ir.Alias(name):
            return name
        case ir.Constant(value):
            return _constant(value)
        case ir.Agg("count", ir.Constant()):
            return "count(*)"
        case ir.Agg(function, argument, distinct):
            last = "" if expression.fraction is None else f", {expression.fraction}"
            return f"{function}({'distinct ' if distinct else ''}{show(argument)}{last})"
        case ir.TextMatch(function, variable, name, query, edits):
            last = "" if edits is None else f", {show(edits)}"
            return f"{function}(${variable}.{name}, {show(query)}{last})"
        case ir.Score() | ir.Rrf():
            return f"{expression.label()}({', '.join(map(show, expression.operands()))})"
        case ir.Filter():
            return show_condition(expression)
        case ir.Call():
            return _call(expression)


def _call(call: ir.Call) -> str:
    """A computed value; every operand that is computed itself stands in parentheses."""
    function, operands = call.function, call.operands
    if function == "case":
        pairs = zip(operands[::2], operands[1::2], strict=False)
        shown = [f"when {show(one)} then {show(value)}" for one, value in pairs]
        last = [f"else {show(operands[-1])}"] if len(operands) % 2 else []
        return " ".join(["case", *shown, *last, "end"])
    if function in ("and", "or", "+", "-", "*", "/", "%"):
        return f" {function} ".join(map(_operand, operands))
    if function in ("not", "minus"):
        return f"{'not ' if function == 'not' else '-'}{_operand(operands[0])}"
    match operands:
        case (moment, ir.Constant(str(unit)), ir.Constant(int(amount))) if function == "date_add":
            return (
                f"{_operand(moment)} {'-' if amount < 0 else '+'} {abs(amount)} {unit}{'s' * (abs(amount) != 1)}"
            )
    return f"{function}({', '.join(map(show, operands))})"


def _operand(expression: ir.Expr) -> str:
    """An operand of an operator."""
    is_whole = not isinstance(expression, ir.Call) or (
        expression.function.isalpha() and expression.function not in ("and", "or", "not", "minus")
    )
    return show(expression) if is_whole or "_" in getattr(expression, "function", "") else f"({show(expression)})"


def _constant(value: ir.Scalar | tuple[ir.Scalar, ...]) -> str:
    match value:
        case tuple():
            return f"[{', '.join(_constant(v) for v in value)}]"
        case dt.datetime():
            return f'datetime("{value.isoformat(timespec="milliseconds").replace("+00:00", "Z")}")'
        case dt.date():
            return f'date("{value.isoformat()}")'
        case str() | bool():
            return json.dumps(value, ensure_ascii=False)
        case _:
            return repr(value)


def _mutation(mutation: ir.MutationIR) -> Iterator[str]:
    for op in mutation.ops:
        match op:
            case ir.InsertOp(kind, type_name, assignments):
                yield f"Insert {kind} {type_name} {_assigned(assignments)}"
            case ir.UpdateOp(type_name, assignments):
                yield f"Update {op.kind} {type_name} {_assigned(assignments)}{_predicates(op)}"
            case ir.DeleteOp(kind, type_name):
                yield f"Delete {kind} {type_name}{_predicates(op)}"


def _assigned(assignments: tuple[ir.Assign, ...]) -> str:
    return "{ " + ", ".join(f"{a.property}: {show(a.value)}" for a in assignments) + " }"


def _predicates(op: ir.UpdateOp | ir.DeleteOp) -> str:
    shown = [f"{p.property} {p.op.value} {show(p.value)}" for p in op.predicates]
    return " where " + " and ".join([*shown, *map(show_condition, op.conditions)])
