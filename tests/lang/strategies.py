"""Hypothesis strategies for syntax trees: every kind of node, and every tree one that the grammars can express."""

from __future__ import annotations

import re
import string
from typing import Final

from hypothesis import strategies as st

from omnigraph.lang.schema.parser import CONSTRAINT_KINDS
from omnigraph.lang.schema.syntax import (
    Annotation,
    CardinalitySyntax,
    ConstraintArgument,
    ConstraintSyntax,
    EdgeSyntax,
    InterfaceSyntax,
    Literal,
    Member,
    NodeSyntax,
    PropertySyntax,
    RangeArgument,
    SchemaSyntax,
    TypeSyntax,
)
from omnigraph.lang.source import Name
from omnigraph.lang.values import MAX_VECTOR, Scalar

I64_MAX: Final = 2**63 - 1
U32_MAX: Final = 2**32 - 1

_KEYWORDS: Final = re.findall(
    r"\w+",
    "and as asc bm25 card check contains count date datetime delete desc description distinct edge embed enum "
    "false fuzzy implements in index insert interface is key limit match match_text max nearest node not now null "
    "offset optional order query range return rrf search set starts_with true unique update where _",
)
_WORD: Final = string.ascii_letters + string.digits + "_"


def _words(first: str) -> st.SearchStrategy[str]:
    return st.builds(str.__add__, st.sampled_from(first), st.text(_WORD, max_size=4))


identifiers = st.sampled_from(_KEYWORDS) | _words(string.ascii_lowercase + "_")
"""Names that start in lower case; keywords are names wherever no keyword is expected."""

type_identifiers = st.sampled_from(["String", "Vector", "Person"]) | _words(string.ascii_uppercase)
texts = st.text(max_size=12) | st.text(st.sampled_from('"\\\n\r\t/*é '), max_size=6)
names = identifiers.map(Name)
type_names = type_identifiers.map(Name)
plain_names = identifiers.filter(lambda name: name not in ("true", "false")).map(Name)

_positive = st.integers(0, I64_MAX) | st.floats(0, allow_infinity=False, allow_nan=False)
_signed = st.integers(-I64_MAX, I64_MAX) | st.floats(allow_infinity=False, allow_nan=False)
literals = st.builds(Literal, texts | st.booleans() | _positive)
bounds = st.builds(Literal, _signed)

_enum_values = st.text(_WORD + "-", min_size=1, max_size=6).map(Name)
types = st.one_of(
    st.builds(TypeSyntax, st.sampled_from(Scalar), nullable=st.booleans()),
    st.builds(
        TypeSyntax,
        st.sampled_from([s for s in Scalar if s is not Scalar.BLOB]),
        is_list=st.just(True),
        nullable=st.booleans(),
    ),
    st.builds(TypeSyntax, st.just(Scalar.F32), dimension=st.integers(1, MAX_VECTOR), nullable=st.booleans()),
    st.builds(
        TypeSyntax,
        st.just(Scalar.STRING),
        members=st.lists(_enum_values, min_size=1, max_size=30, unique_by=str).map(tuple),
        nullable=st.booleans(),
    ),
)


@st.composite
def _annotation(draw: st.DrawFn) -> Annotation:
    """An annotation; those that share a name with a constraint or a cardinality have no arguments."""
    name = draw(names)
    if name.text in (*CONSTRAINT_KINDS, "card") or draw(st.booleans()):
        return Annotation(name)
    options = draw(st.lists(st.tuples(names, literals), max_size=2))
    return Annotation(name, draw(plain_names | literals), tuple(options))


_annotations = st.lists(_annotation(), max_size=3).map(tuple)
properties = st.builds(PropertySyntax, names, types, _annotations)

_ranges = st.builds(RangeArgument, bounds, bounds | st.none()) | st.builds(RangeArgument, st.none(), bounds)
_arguments: st.SearchStrategy[ConstraintArgument] = st.one_of(plain_names, literals, _ranges)
constraints = st.builds(
    ConstraintSyntax, st.sampled_from(CONSTRAINT_KINDS), st.lists(_arguments, min_size=1, max_size=3).map(tuple)
)
_members: st.SearchStrategy[tuple[Member, ...]] = st.lists(properties | constraints, max_size=4).map(tuple)


@st.composite
def cardinalities(draw: st.DrawFn) -> CardinalitySyntax:
    """Bounds in their order."""
    low, high = sorted(draw(st.tuples(st.integers(0, U32_MAX), st.integers(0, U32_MAX))))
    return CardinalitySyntax(low, draw(st.none() | st.just(high)))


_interfaces = st.builds(InterfaceSyntax, type_names, st.lists(properties, max_size=4).map(tuple))
_nodes = st.builds(NodeSyntax, type_names, _annotations, st.lists(type_names, max_size=3).map(tuple), _members)
_edges = st.builds(
    EdgeSyntax, type_names, type_names, type_names, st.none() | cardinalities(), _annotations, _members
)

schemas = st.builds(SchemaSyntax, st.lists(st.one_of(_interfaces, _nodes, _edges), max_size=4).map(tuple))
"""Schemas that parse; what they say need not make sense."""
