"""Schemas as text in the one standard layout."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from omnigraph.errors import SchemaError
from omnigraph.lang.comments import WIDTH, Block, Item, Line, Original, no_original, render
from omnigraph.lang.diagnostics import Diagnostics
from omnigraph.lang.schema.parser import parse_schema
from omnigraph.lang.schema.syntax import (
    Annotation,
    CardinalitySyntax,
    ConstraintArgument,
    ConstraintSyntax,
    Declaration,
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
from omnigraph.lang.source import Name, Source
from omnigraph.lang.tokens import spell_float, spell_string

_ENUM_WIDTH = WIDTH - 4


def format_schema(text: str, name: str = "<schema>") -> str:
    """A schema in the standard layout, comments included; SchemaError if it does not parse."""
    source = Source(text, name)
    diagnostics = Diagnostics(source)
    tree, tokens = parse_schema(diagnostics)
    diagnostics.raise_if_any(SchemaError)
    return _print(tree, Original(source, tokens))


def print_schema(tree: SchemaSyntax) -> str:
    """A schema as text, from its tree alone."""
    return _print(tree, no_original())


def _print(tree: SchemaSyntax, original: Original) -> str:
    return render((_declaration(declaration, original) for declaration in tree.declarations), original)


def _declaration(declaration: Declaration, original: Original) -> Item:
    match declaration:
        case InterfaceSyntax(name):
            return _block(f"interface {name}", (), declaration, original)
        case NodeSyntax(name, annotations, implements):
            parts = [_annotation(a) for a in annotations]
            if implements:
                parts.append(f"implements {', '.join(n.text for n in implements)}")
            return _block(f"node {name}", parts, declaration, original)
        case EdgeSyntax(name, source, target, cardinality, annotations, members):
            head = f"edge {name}: {source} -> {target}{_cardinality(cardinality)}"
            parts = [_annotation(a) for a in annotations]
            if members:
                return _block(head, parts, declaration, original)
            return Line(" ".join([head, *parts]), declaration.span, _wrapped(head, parts))


def _block(head: str, parts: Sequence[str], declaration: Declaration, original: Original) -> Block:
    """A declaration with a body; a header too long for one line has its parts on lines of their own."""
    span, members = declaration.span, declaration.members
    tail = original.before(original.behind(span))
    brace = original.before(members[0].span if members else tail)
    wrapped = (*_wrapped(head, parts), "{") if parts else ()
    header = Line(" ".join([head, *parts, "{"]), span.to(brace), wrapped)
    return Block(header, tuple(_member(m) for m in members), Line("}", tail))


def _wrapped(head: str, parts: Iterable[str]) -> tuple[str, ...]:
    return (head, *(f"  {part}" for part in parts))


def _cardinality(cardinality: CardinalitySyntax | None) -> str:
    if cardinality is None:
        return ""
    maximum = "" if cardinality.maximum is None else str(cardinality.maximum)
    return f" @card({cardinality.minimum}..{maximum})"


def _member(member: Member) -> Line:
    if isinstance(member, ConstraintSyntax):
        arguments = ", ".join(_argument(a) for a in member.arguments)
        return Line(f"@{member.kind}({arguments})", member.span)
    return _property(member)


def _property(prop: PropertySyntax) -> Line:
    """A property; where it is too long its annotations, and then an enum's values, get lines of their own."""
    head = f"{prop.name}: {_type(prop.type)}"
    annotations = [_annotation(a) for a in prop.annotations]
    lines = [head]
    if len(head) > _ENUM_WIDTH and prop.type.members is not None:
        close = ")?" if prop.type.nullable else ")"
        lines = [f"{prop.name}: enum(", *_filled([m.text for m in prop.type.members]), close]
    wrapped = (*lines, *(f"  {a}" for a in annotations))
    return Line(" ".join([head, *annotations]), prop.span, wrapped)


def _filled(values: Sequence[str]) -> Iterator[str]:
    """Values on as few lines as hold them."""
    line = ""
    for index, value in enumerate(values):
        piece = value if index == len(values) - 1 else f"{value},"
        if line and len(line) + len(piece) >= _ENUM_WIDTH:
            yield f"  {line}"
            line = piece
        else:
            line = f"{line} {piece}" if line else piece
    yield f"  {line}"


def _type(written: TypeSyntax) -> str:
    if written.members is not None:
        shown = f"enum({', '.join(m.text for m in written.members)})"
    elif written.dimension is not None:
        shown = f"Vector({written.dimension})"
    else:
        shown = f"[{written.scalar}]" if written.is_list else str(written.scalar)
    return shown + ("?" if written.nullable else "")


def _annotation(annotation: Annotation) -> str:
    if annotation.value is None:
        return f"@{annotation.name}"
    options = "".join(f", {key}={_literal(value)}" for key, value in annotation.options)
    return f"@{annotation.name}({_argument(annotation.value)}{options})"


def _argument(argument: ConstraintArgument) -> str:
    match argument:
        case Name(text):
            return text
        case Literal():
            return _literal(argument)
        case RangeArgument(low, high):
            return f"{'' if low is None else _literal(low)}..{'' if high is None else _literal(high)}"


def _literal(literal: Literal) -> str:
    if literal.written is not None:
        return literal.written
    match literal.value:
        case bool():
            return "true" if literal.value else "false"
        case str():
            return spell_string(literal.value)
        case float():
            return spell_float(literal.value)
        case int():
            return str(literal.value)
