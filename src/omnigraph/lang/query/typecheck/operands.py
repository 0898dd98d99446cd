"""The types of expressions, and the operands of searches and rankings."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import chain

from omnigraph.lang.diagnostics import suggest
from omnigraph.lang.query.syntax.expressions import (
    COMPUTED,
    LITERALS,
    NO_NULL,
    Aggregate,
    AliasRef,
    BoolLiteral,
    Comparison,
    DateLiteral,
    DateTimeLiteral,
    Everything,
    Expression,
    FloatLiteral,
    IntegerLiteral,
    ListLiteral,
    Literal,
    Now,
    NullTest,
    PropertyRef,
    ScoreCall,
    StringLiteral,
    TextCall,
    Variable,
    Whole,
)
from omnigraph.lang.query.typecheck.computed import computed_type, require_truth
from omnigraph.lang.query.typecheck.scope import Context, Scope, property_type
from omnigraph.lang.schema.catalog import EdgeType, EntityType
from omnigraph.lang.source import Span
from omnigraph.lang.values import (
    BOOL,
    DATE,
    DATETIME,
    F64,
    FLOATS,
    I64,
    INTEGERS,
    STRING,
    Scalar,
    ValueType,
    compatible,
    fitting_float,
    parse_date,
    parse_datetime,
)


def literal_type(literal: Literal, context: Context) -> ValueType | None:
    """The type of a literal, or None after reporting what is wrong with it."""
    match literal:
        case StringLiteral():
            return STRING
        case IntegerLiteral():
            return I64
        case FloatLiteral():
            return F64
        case BoolLiteral():
            return BOOL
        case DateLiteral(text):
            return DATE if _readable(parse_date, "date", text, literal.span, context) else None
        case DateTimeLiteral(text):
            return DATETIME if _readable(parse_datetime, "datetime", text, literal.span, context) else None
        case ListLiteral(items):
            return _list_type(items, context)


def _readable(parse: Callable[[str], object], what: str, text: str, span: Span, context: Context) -> bool:
    try:
        parse(text)
    except ValueError as error:
        context.report("T3", f'{what}("{text[:40]}") is not a {what}: {error}', span)
        return False
    return True


def _list_type(items: tuple[Literal, ...], context: Context) -> ValueType | None:
    if not items:
        return ValueType(Scalar.STRING, is_list=True)
    first = None
    for item in items:
        if isinstance(item, ListLiteral):
            context.report("Q105", "a list cannot hold lists", item.span)
            return None
        item_type = literal_type(item, context)
        if item_type is None:
            return None
        if first is None:
            first = item_type
        elif not compatible(first, item_type):
            context.report("Q105", f"this list mixes {first} and {item_type}", item.span)
            return None
        elif first.scalar in INTEGERS and item_type.scalar in FLOATS:
            first = item_type
    assert first is not None  # noqa: S101  the list is not empty
    return ValueType(first.scalar, is_list=True)


def value_type(expression: Expression, scope: Scope, context: Context, role: str) -> ValueType | None:
    """The type of an expression that must be a value; None after reporting why it is none.

    ``role`` completes the sentence "… cannot be <role>".
    """
    match expression:
        case Variable():
            return _variable_type(expression, scope, context, role)
        case PropertyRef():
            return property_type(expression, scope, context)
        case Now():
            return DATETIME
        case TextCall():
            check_text_call(expression, scope, context)
            return BOOL
        case ScoreCall():
            context.report(
                "T7",
                f"a score cannot be {role}",
                expression.span,
                "return it with an alias, and order by that alias",
            )
            return None
        case Aggregate():
            context.report(
                "T7",
                f"an aggregate cannot be {role}",
                expression.span,
                "aggregates belong in `return`, and conditions on them in `having { … }`",
            )
            return None
        case Whole(variable):
            context.report(
                "T7",
                f"`${variable.name}.*` is a whole node or edge and cannot be {role}",
                expression.span,
                f"use one of its properties: `${variable.name}.…`; only `return` takes all of it",
            )
            return None
        case AliasRef(name):
            remedy = NO_NULL if name == "null" else f'a property is written `$x.{name}`, a text `"{name}"`'
            context.report("T7", f"`{name}` is not a value here", expression.span, remedy)
            return None
        case NullTest(Variable(name)) if name not in context.parameters:
            _check_presence(expression.operand, scope, context)
            return BOOL
        case Comparison() if _compares_entities(expression, scope, context):
            return BOOL.or_null()
        case _ if isinstance(expression, COMPUTED):
            return computed_type(expression, lambda part: value_type(part, scope, context, role), context)
        case Everything():
            return None
        case _:
            return literal_type(expression, context)


def _compares_entities(comparison: Comparison, scope: Scope, context: Context) -> bool:
    """Is it `$a = $b` or `$a != $b`, of two nodes or two edges? They are compared by their ids, and reported if
    they are of two types."""
    if comparison.operator not in ("=", "!="):
        return False
    found: list[EntityType] = []
    for side in (comparison.left, comparison.right):
        bound = scope.find(side.name) if isinstance(side, Variable) else None
        if bound is None or bound.type is None or (isinstance(side, Variable) and side.name in context.parameters):
            return False
        found.append(bound.type)
    one, other = found
    if one.name != other.name:
        context.report(
            "T7",
            f"{one.name} and {other.name} are two types, and never the same",
            comparison.span,
            "compare properties: `$a.name = $b.name`",
        )
    return True


def check_condition(condition: Expression, scope: Scope, context: Context) -> None:
    """A condition that must be true or false, or unknown."""
    found = value_type(condition, scope, context, _role(condition))
    require_truth(condition, found, "a clause", context)


def _role(condition: Expression) -> str:
    return "tested for null" if isinstance(condition, NullTest) else "compared"


def _check_presence(operand: Expression, scope: Scope, context: Context) -> None:
    """A node or edge variable that is tested for null: an optional block may have left it without a value."""
    assert isinstance(operand, Variable)  # noqa: S101
    if scope.find(operand.name) is None:
        unknown_variable(operand, scope, context)


def _variable_type(variable: Variable, scope: Scope, context: Context, role: str) -> ValueType | None:
    if variable.name in context.parameters:
        return context.parameters[variable.name]
    bound = scope.find(variable.name)
    if bound is None:
        unknown_variable(variable, scope, context)
    elif isinstance(bound.type, EdgeType):
        bare_edge(variable, context)
    elif bound.type is not None:
        context.report(
            "T7",
            f"node `${variable.name}` cannot be {role}",
            variable.span,
            f"use one of its properties: `${variable.name}.…`",
        )
    return None


def unknown_variable(variable: Variable, scope: Scope, context: Context) -> None:
    """Report a bare variable that is nothing."""
    known = chain(context.parameters, scope.names())
    context.report(
        "Q103",
        f"`${variable.name}` is neither a parameter nor a bound variable",
        variable.span,
        partial(suggest, variable.name, known, "$", "declare it as a parameter of the query"),
    )


def bare_edge(variable: Variable, context: Context) -> None:
    """Report an edge variable that stands alone."""
    context.report(
        "T23",
        f"edge variable `${variable.name}` cannot stand alone",
        variable.span,
        f"use one of its properties: `${variable.name}.…`",
    )


def check_text_call(call: TextCall, scope: Scope, context: Context) -> None:
    """The operands of search, fuzzy and match_text."""
    code = "T20" if call.function == "match_text" else "T19"
    check_text_search(call, call.subject, call.query, code, scope, context)
    if call.edits is not None:
        check_constant(call.edits, "integer", code, call.function, scope, context)
        if isinstance(call.edits, IntegerLiteral) and call.edits.value < 0:
            context.report(code, "the number of edits cannot be negative", call.edits.span)


def check_text_search(
    call: TextCall | ScoreCall,
    subject: Expression,
    query: Expression,
    code: str,
    scope: Scope,
    context: Context,
) -> None:
    """The two operands of every search of texts: a String property, and a text to look for."""
    function = call.function
    if not isinstance(subject, PropertyRef):
        context.report(
            code,
            f"the first argument of `{function}` is a String property",
            call.span,
            f'write `{function}($x.title, "…")`',
        )
    else:
        searched = searched_type(subject, scope, context)
        if searched is not None and not searched.is_string:
            context.report(code, f"`{function}` searches String properties, not {searched}", subject.span)
    check_constant(query, "String", code, function, scope, context)


def searched_type(reference: PropertyRef, scope: Scope, context: Context) -> ValueType | None:
    """The type of a property that is searched; edges cannot be."""
    bound = scope.find(reference.variable.name)
    if bound is not None and isinstance(bound.type, EdgeType):
        context.report("T23", "edges cannot be searched", reference.span, "search a property of a node")
        return None
    return property_type(reference, scope, context)


def check_constant(
    expression: Expression, wanted: str, code: str, function: str, scope: Scope, context: Context
) -> None:
    """An operand that is the same for all rows: a literal or a parameter of the wanted type."""
    if not isinstance(expression, (*LITERALS, Variable)):
        context.report(
            code,
            f"this operand of `{function}` must be a literal or a parameter",
            expression.span,
            "it has to be the same for all rows",
        )
        return
    found = value_type(expression, scope, context, f"an operand of `{function}`")
    if found is None:
        return
    fits = found.is_string if wanted == "String" else found.is_integer
    if not fits:
        context.report(code, f"this operand of `{function}` must be {wanted}, not {found}", expression.span)


def check_vector_literal(literal: ListLiteral, dimension: int, code: str, context: Context) -> None:
    """A list literal that must be a vector of one length."""
    for item in literal.items:
        if not isinstance(item, IntegerLiteral | FloatLiteral):
            context.report(code, "a vector holds numbers only", item.span)
            return
        if fitting_float(item.value, Scalar.F32) is None:
            context.report(code, "this number is too large for a vector", item.span)
            return
    if len(literal.items) != dimension:
        context.report(code, f"this vector has {len(literal.items)} components, not {dimension}", literal.span)
