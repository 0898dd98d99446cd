"""Hypothesis strategies for the trees of query files, all of them trees that the grammar can express."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from hypothesis import strategies as st
from tests.lang.strategies import I64_MAX, U32_MAX, identifiers, names, texts, type_identifiers, type_names

from omnigraph.lang.query.functions.signature import UNITS
from omnigraph.lang.query.scores import SCORES
from omnigraph.lang.query.syntax import clauses as clause_syntax
from omnigraph.lang.query.syntax import expressions as expression_syntax
from omnigraph.lang.query.syntax import parts
from omnigraph.lang.query.syntax import queries as query_syntax
from omnigraph.lang.query.syntax.clauses import Clause
from omnigraph.lang.query.syntax.expressions import Expression
from omnigraph.lang.query.syntax.queries import Statement
from omnigraph.lang.source import Name
from omnigraph.lang.values import MAX_VECTOR

variables = st.builds(expression_syntax.Variable, identifiers)
_aliases = identifiers.filter(lambda name: name not in ("true", "false"))
_strings = st.builds(expression_syntax.StringLiteral, texts)

literals: st.SearchStrategy[expression_syntax.Literal] = st.recursive(
    st.one_of(
        _strings,
        st.builds(expression_syntax.IntegerLiteral, st.integers(-I64_MAX - 1, I64_MAX)),
        st.builds(expression_syntax.FloatLiteral, st.floats(allow_infinity=False, allow_nan=False)),
        st.builds(expression_syntax.BoolLiteral, st.booleans()),
        st.builds(expression_syntax.DateLiteral, texts),
        st.builds(expression_syntax.DateTimeLiteral, texts),
    ),
    lambda inner: st.builds(expression_syntax.ListLiteral, st.lists(inner, max_size=3).map(tuple)),
    max_leaves=4,
)
_property_refs = st.builds(expression_syntax.PropertyRef, variables, names)


def _calls(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    nearest = _score("nearest", _property_refs, inner)
    arms = nearest | _score("bm25", inner, inner)
    return st.one_of(
        st.builds(expression_syntax.Aggregate, st.sampled_from(expression_syntax.AGGREGATES[:-1]), inner),
        st.builds(expression_syntax.Aggregate, st.just("count"), inner, st.just(True)),
        st.builds(expression_syntax.TextCall, st.sampled_from(["search", "match_text"]), inner, inner),
        st.builds(expression_syntax.TextCall, st.just("fuzzy"), inner, inner, st.none() | inner),
        arms,
        _score("rrf", arms, arms) | _score("rrf", arms, arms, inner),
    )


def _score(
    function: str, *operands: st.SearchStrategy[Expression]
) -> st.SearchStrategy[expression_syntax.ScoreCall]:
    return st.builds(expression_syntax.ScoreCall, st.just(function), st.tuples(*operands))


def _takes_no_direction(expression: Expression) -> bool:
    return (
        isinstance(expression, expression_syntax.ScoreCall) and SCORES[expression.function].direction is not None
    )


_operands = st.one_of(
    _property_refs,
    _strings,
    st.builds(expression_syntax.IntegerLiteral, st.integers(-9, 9)),
    st.builds(expression_syntax.FloatLiteral, st.floats(-9, 9)),
    variables,
)


def _computations(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    """Everything that operators, `case` and functions make of other expressions."""
    operators = st.sampled_from((*expression_syntax.SUMS, *expression_syntax.PRODUCTS))
    pairs = st.lists(inner, min_size=2, max_size=3).map(tuple)
    branches = st.lists(st.builds(expression_syntax.Branch, inner, inner), min_size=1, max_size=2).map(tuple)
    duration = st.builds(expression_syntax.Duration, st.integers(-3, 3), st.sampled_from(UNITS))
    return st.one_of(
        st.builds(expression_syntax.Arithmetic, operators, inner, inner),
        st.builds(expression_syntax.Arithmetic, st.sampled_from(expression_syntax.SUMS), inner, duration),
        st.builds(expression_syntax.Minus, inner),
        st.builds(expression_syntax.Not, inner),
        _connected(pairs),
        st.builds(
            expression_syntax.Comparison,
            inner,
            st.sampled_from((*expression_syntax.SYMBOLS, *expression_syntax.WORD_OPERATORS)),
            inner,
        ),
        st.builds(expression_syntax.NullTest, inner, st.booleans()),
        st.builds(expression_syntax.Case, branches, st.none() | inner),
        st.builds(expression_syntax.FunctionCall, st.sampled_from(("lower", "sqrt")), st.tuples(inner)),
        st.builds(expression_syntax.Aggregate, st.just("percentile"), inner, fraction=inner),
        st.just(expression_syntax.Aggregate("count", expression_syntax.Everything())),
    )


def _connected(operands: st.SearchStrategy[tuple[Expression, ...]]) -> st.SearchStrategy[Expression]:
    """`and` and `or`."""
    return st.builds(expression_syntax.Connected, st.sampled_from(("and", "or")), operands)


@st.composite
def _computed(draw: st.DrawFn) -> Expression:
    """An expression that is computed from others, which may be computed too."""
    inner: st.SearchStrategy[Expression] = _operands
    if draw(st.booleans()):
        inner = _operands | _computations(_operands)
    return draw(_computations(inner).filter(lambda made: isinstance(made, expression_syntax.COMPUTED)))


computations: st.SearchStrategy[Expression] = _computed()
_counted = st.just(expression_syntax.Aggregate("count", expression_syntax.Everything()))
_lowered = st.builds(expression_syntax.FunctionCall, st.just("lower"), st.tuples(_operands))
_cases = st.builds(
    expression_syntax.Case,
    st.tuples(st.builds(expression_syntax.Branch, _operands, _lowered)),
    st.none() | _operands,
)
_groups = _connected(st.tuples(_operands, _counted)) | _cases | computations
_requirements = st.builds(
    clause_syntax.Requirement,
    computations.filter(
        lambda made: not isinstance(made, expression_syntax.Comparison | expression_syntax.NullTest)
    ),
)

_leaves = st.one_of(
    literals,
    st.just(expression_syntax.Now()),
    variables,
    _property_refs,
    st.builds(expression_syntax.Whole, variables),
    st.builds(expression_syntax.AliasRef, _aliases),
)
expressions: st.SearchStrategy[Expression] = st.recursive(_leaves, _calls, max_leaves=5)
_values = st.one_of(literals, variables, st.just(expression_syntax.Now()))


@st.composite
def traversals(draw: st.DrawFn) -> clause_syntax.Traversal:
    """A traversal; a bare `not` is no edge."""
    edge_variable = draw(st.none() | variables)
    undirected = draw(st.booleans())
    edge = draw(names)
    if edge.text == "not" and edge_variable is None and not undirected:
        edge = Name("knows")
    count = st.integers(0, U32_MAX)
    hops = draw(st.none() | st.builds(clause_syntax.Hops, count, st.none() | count))
    others = tuple(draw(st.lists(names, max_size=2)))
    return clause_syntax.Traversal(draw(variables), edge, draw(variables), edge_variable, undirected, hops, others)


@st.composite
def comparisons(draw: st.DrawFn) -> expression_syntax.Comparison:
    """A comparison; a word between two bare variables would read as a traversal."""
    left, right = draw(expressions), draw(expressions)
    operators: Sequence[str] = (*expression_syntax.SYMBOLS, *expression_syntax.WORD_OPERATORS)
    if isinstance(left, expression_syntax.Variable) and isinstance(right, expression_syntax.Variable):
        operators = expression_syntax.SYMBOLS
    return draw(st.builds(expression_syntax.Comparison, st.just(left), st.sampled_from(operators), st.just(right)))


def _reads_as_condition(clause: clause_syntax.Requirement) -> bool:
    """Does it not begin with a bare variable? That and a word would read as a traversal."""
    first: Expression = clause.condition
    while not isinstance(first, expression_syntax.Not | expression_syntax.Minus | expression_syntax.Case) and (
        inner := parts.operands_of(first)
    ):
        if isinstance(first, expression_syntax.FunctionCall | expression_syntax.Aggregate):
            return True
        first = inner[0]
    return not isinstance(first, expression_syntax.Variable)


_text_calls = st.builds(
    expression_syntax.TextCall, st.sampled_from(["search", "match_text"]), expressions, expressions
)
_fuzzy_calls = st.builds(
    expression_syntax.TextCall, st.just("fuzzy"), expressions, expressions, st.none() | expressions
)
_matches = st.lists(st.builds(clause_syntax.PropertyMatch, names, _values), max_size=3).map(tuple)
_plain_clauses: st.SearchStrategy[Clause] = st.one_of(
    st.builds(clause_syntax.Binding, variables, type_names, _matches),
    traversals(),
    comparisons(),
    st.builds(expression_syntax.NullTest, expressions, st.booleans()),
    st.builds(clause_syntax.TextPredicate, _text_calls | _fuzzy_calls),
    _requirements.filter(_reads_as_condition),
)


def _block(clauses: st.SearchStrategy[Clause], size: int) -> st.SearchStrategy[tuple[Clause, ...]]:
    return st.lists(clauses, min_size=1, max_size=size).filter(_keeps_apart).map(tuple)


def _keeps_apart(clauses: Sequence[Clause]) -> bool:
    """Does no clause begin with a word that joins it to the clause before it?"""
    joined = any(_first_word(after) in _claimed(before) for before, after in pairwise(clauses))
    return not joined and not any(_first_word(clause) in ("and", "or") for clause in clauses)


def _first_word(clause: Clause) -> str | None:
    first = None
    if isinstance(clause, expression_syntax.Comparison):
        first = clause.left
    elif isinstance(clause, expression_syntax.NullTest):
        first = clause.operand
    return first.name if isinstance(first, expression_syntax.AliasRef) else None


def _claimed(clause: Clause) -> Sequence[str | None]:
    """The words that behind this clause would go on with it."""
    if isinstance(clause, clause_syntax.TextPredicate | clause_syntax.Requirement):
        return ("is", "not", "and", "or", *expression_syntax.WORD_OPERATORS)
    if isinstance(clause, expression_syntax.Comparison) and _takes_no_direction(clause.right):
        return ("asc", "desc")
    return ()


clauses: st.SearchStrategy[Clause] = st.recursive(
    _plain_clauses,
    lambda inner: st.one_of(
        *(
            st.builds(block, _block(inner, 3))
            for block in (clause_syntax.Negation, clause_syntax.Existence, clause_syntax.OptionalBlock)
        )
    ),
    max_leaves=4,
)


@st.composite
def orderings(draw: st.DrawFn) -> query_syntax.Ordering:
    """A sort key; `nearest` takes no direction."""
    expression = draw(expressions)
    if _takes_no_direction(expression):
        return query_syntax.Ordering(expression)
    return draw(st.builds(query_syntax.Ordering, st.just(expression), st.sampled_from(["asc", "desc", None])))


_counts = variables | st.builds(expression_syntax.IntegerLiteral, st.integers(0, I64_MAX))
_projections = st.builds(query_syntax.Projection, expressions | computations, st.none() | names)


@st.composite
def reads(draw: st.DrawFn) -> query_syntax.ReadBody:
    """The body of a read; there is no offset without a limit."""
    limit = draw(st.none() | _counts)
    united = draw(st.lists(_returned(1), max_size=1).map(tuple))
    return replace(
        draw(_returned(4)),
        order=draw(st.lists(orderings(), max_size=2).map(tuple)),
        limit=limit,
        offset=None if limit is None else draw(st.none() | _counts),
        united=united,
        repeats=bool(united) and draw(st.booleans()),
    )


@st.composite
def _returned(draw: st.DrawFn, size: int) -> query_syntax.ReadBody:
    return query_syntax.ReadBody(
        draw(_block(clauses, size)),
        draw(st.lists(_projections, min_size=1, max_size=size).map(tuple)),
        draw(st.booleans()),
        having=draw(st.lists(st.builds(clause_syntax.Requirement, _groups), max_size=2).map(tuple)),
    )


_assignments = st.lists(st.builds(query_syntax.Assignment, names, _values), max_size=3).map(tuple)
_conditions = st.lists(
    st.builds(query_syntax.Condition, names, st.sampled_from(expression_syntax.SYMBOLS), _values),
    min_size=1,
    max_size=3,
).map(tuple)
_statements: st.SearchStrategy[Statement] = st.one_of(
    st.builds(query_syntax.Insert, type_names, _assignments),
    st.builds(query_syntax.Update, type_names, _assignments, _conditions),
    st.builds(query_syntax.Delete, type_names, _conditions),
)
mutations = st.builds(query_syntax.MutationBody, st.lists(_statements, min_size=1, max_size=3).map(tuple))

_parameters = st.one_of(
    st.builds(
        query_syntax.ParameterSyntax,
        names,
        type_identifiers.filter(lambda name: name != "Vector"),
        nullable=st.booleans(),
    ),
    st.builds(
        query_syntax.ParameterSyntax, names, type_identifiers, is_list=st.just(True), nullable=st.booleans()
    ),
    st.builds(
        query_syntax.ParameterSyntax,
        names,
        st.just("Vector"),
        dimension=st.integers(1, MAX_VECTOR),
        nullable=st.booleans(),
    ),
)


@st.composite
def _annotations(draw: st.DrawFn) -> tuple[query_syntax.QueryAnnotation, ...]:
    """Each of the two at most once, and never blank."""
    chosen = draw(st.lists(st.sampled_from(["description", "instruction"]), unique=True))
    return tuple(
        query_syntax.QueryAnnotation(
            Name(name), draw(_strings.filter(lambda literal: bool(literal.value.strip())))
        )
        for name in chosen
    )


queries = st.builds(
    query_syntax.QuerySyntax,
    names,
    st.lists(_parameters, max_size=3).map(tuple),
    _annotations(),
    reads() | mutations,
)
query_files = st.builds(query_syntax.QueryFileSyntax, st.lists(queries, max_size=3).map(tuple))
"""Query files that parse; what they say need not make sense."""
