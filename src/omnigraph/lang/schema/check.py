"""The rules for annotations and constraints, one declaration at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from omnigraph.lang.diagnostics import Diagnostics, Remedy, suggest
from omnigraph.lang.schema.patterns import pattern_problem
from omnigraph.lang.schema.shape import (
    METADATA_ANNOTATIONS,
    AnnotationShape,
    ConstraintShape,
    EmbedShape,
    TypeKind,
    bound_text,
)
from omnigraph.lang.schema.syntax import (
    Annotation,
    ConstraintSyntax,
    Literal,
    PropertySyntax,
    RangeArgument,
    literal_text,
)
from omnigraph.lang.source import Name, Span
from omnigraph.lang.values import Scalar, ValueType

_SUGAR = ("key", "unique", "index")
_ROW_COLUMNS = frozenset(
    {"_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version"}
)
_PHYSICAL = frozenset({"id", "src", "dst"})
_ENDPOINTS = frozenset({"from", "to"})


@dataclass(frozen=True, slots=True)
class RenameHint:
    """`@rename_from("old")` and where it stands."""

    old: str
    span: Span


@dataclass(slots=True)
class Owner:
    """The declaration whose rules are being checked."""

    kind: TypeKind
    name: str
    properties: dict[str, PropertySyntax]
    diagnostics: Diagnostics
    constraints: dict[ConstraintShape, Span] = field(default_factory=dict)
    has_key: bool = False

    def report(self, code: str, message: str, span: Span, remedy: Remedy = None) -> None:
        self.diagnostics.report(code, "parse error", message, span, remedy)

    def type_of(self, name: str) -> ValueType | None:
        """The type of a property, or of an edge's `src` and `dst` columns."""
        if self.kind == "edge" and name in ("src", "dst"):
            return ValueType(Scalar.STRING)
        found = self.properties.get(name)
        return None if found is None else found.type.resolve()


def check_property_name(owner: Owner, name: Name) -> None:
    """Refuse names that are columns of the tables themselves."""
    reserved = _ROW_COLUMNS | _PHYSICAL | (_ENDPOINTS if owner.kind == "edge" else frozenset())
    if name.text in reserved:
        owner.report(
            "S125",
            f"property name `{name.text}` is reserved",
            name.span,
            "the table has a column of that name already; choose another name",
        )


@dataclass(frozen=True, slots=True)
class Annotations:
    """What a set of annotations says, each in its own place."""

    kept: tuple[AnnotationShape, ...] = ()
    sugar: tuple[str, ...] = ()
    embed: EmbedShape | None = None
    rename: RenameHint | None = None


def check_header(owner: Owner, annotations: Iterable[Annotation]) -> Annotations:
    """Check the annotations behind a node's or an edge's name."""
    kept: list[AnnotationShape] = []
    rename = None
    for annotation in _without_repeats(owner, annotations):
        name = annotation.name.text
        if name in (*_SUGAR, "embed", "range", "check"):
            owner.report(
                "S110", f"`@{name}` belongs on a property, not on {owner.kind} {owner.name}", annotation.span
            )
        elif name == "rename_from":
            rename = _rename_hint(owner, annotation)
        else:
            if name in METADATA_ANNOTATIONS:
                _plain_text(owner, annotation)
            kept.append(_keep(annotation))
    return Annotations(tuple(sorted(kept, key=_annotation_order)), rename=rename)


def check_property(owner: Owner, prop: PropertySyntax) -> Annotations:
    """Check a property's annotations; `@key`, `@unique` and `@index` come back as sugar to expand."""
    kept: list[AnnotationShape] = []
    sugar: list[str] = []
    embed = None
    rename = None
    for annotation in _without_repeats(owner, prop.annotations):
        name = annotation.name.text
        if name in _SUGAR:
            sugar.append(name)
        elif name in ("range", "check"):
            owner.report(
                "S124",
                f"`@{name}` needs arguments",
                annotation.span,
                f"write `@{name}({prop.name}, …)` in the body",
            )
        elif name == "embed":
            embed = _embed(owner, prop, annotation)
        elif name == "instruction":
            owner.report("S110", "`@instruction` belongs on a node or an edge, not on a property", annotation.span)
        elif name == "rename_from":
            rename = _rename_hint(owner, annotation)
        else:
            if name == "description":
                _plain_text(owner, annotation)
            kept.append(_keep(annotation))
    return Annotations(tuple(sorted(kept, key=_annotation_order)), tuple(sugar), embed, rename)


def check_embed_source(owner: Owner, prop: PropertySyntax, embed: EmbedShape) -> None:
    """The source of an `@embed` is a String property of the same node."""
    source = owner.type_of(embed.source)
    span = next(a.span for a in prop.annotations if a.name.text == "embed")
    if source is None:
        owner.report(
            "S113",
            f"`@embed` source `{embed.source}` is not a property of {owner.name}",
            span,
            lambda: suggest(embed.source, owner.properties),
        )
    elif not source.is_string:
        owner.report("S113", f"`@embed` source `{embed.source}` is {source}, not String", span)


def add_sugar(owner: Owner, prop: PropertySyntax, sugar: Iterable[str]) -> None:
    """Add the single-column constraints that bare annotations stand for."""
    for kind in sugar:
        span = next(a.span for a in prop.annotations if a.name.text == kind)
        _add_columns(owner, kind, (prop.name.text,), span, as_property=True)


def add_constraint(owner: Owner, constraint: ConstraintSyntax) -> None:
    """Check one body constraint and add it."""
    _BODY[constraint.kind](owner, constraint)


def _columns_constraint(owner: Owner, constraint: ConstraintSyntax) -> None:
    names: list[str] = []
    for argument in constraint.arguments:
        if not isinstance(argument, Name):
            owner.report("S124", f"`@{constraint.kind}` takes property names", _span_of(argument, constraint))
            return
        if owner.type_of(argument.text) is None:
            _unknown_column(owner, constraint.kind, argument)
            return
        names.append(argument.text)
    _add_columns(owner, constraint.kind, tuple(sorted(set(names))), constraint.span, as_property=False)


def _add_columns(owner: Owner, kind: str, columns: tuple[str, ...], span: Span, *, as_property: bool) -> None:
    if kind == "key" and owner.kind == "edge" and not {"src", "dst"} <= {*columns}:
        message = f"the key of edge {owner.name} has to name both ends"
        listed = ", ".join(["src", "dst", *(name for name in columns if name not in ("src", "dst"))])
        owner.report("S121", message, span, f"write `@key({listed})` in the body of the edge")
        return
    for column in columns:
        misfit = _misfit(kind, owner.type_of(column), as_property=as_property)
        if misfit:
            owner.report("S122", f"`@{kind}` cannot use `{owner.name}.{column}`: {misfit}", span)
            return
    if kind == "key" and owner.has_key:
        owner.report(
            "S123",
            f"{owner.name} has more than one key",
            span,
            "write a composite key once, in the body: `@key(a, b)`",
        )
        return
    owner.has_key = owner.has_key or kind == "key"
    owner.constraints.setdefault(ConstraintShape(kind, columns), span)


def _misfit(kind: str, value_type: ValueType | None, *, as_property: bool) -> str | None:
    """Why a column of this type cannot carry a key, unique or index; None if it can."""
    if value_type is None:
        return None
    if value_type.is_blob:
        return "it is a Blob"
    if kind == "key" and value_type.nullable:
        return f"{value_type} may be null, and a key may not"
    if kind in ("key", "unique") and not value_type.is_plain:
        return f"{value_type} is not a single value"
    if kind == "index" and value_type.is_list and as_property:
        return f"there is no index over {value_type}"
    return None


def _range(owner: Owner, constraint: ConstraintSyntax) -> None:
    column, value_type = _single_column(owner, constraint, "@range(property, low..high)", RangeArgument)
    if column is None or value_type is None:
        return
    bounds = constraint.arguments[1]
    assert isinstance(bounds, RangeArgument)  # noqa: S101  _single_column checked it
    if not value_type.is_numeric:
        owner.report("S122", f"`@range` needs a number, and `{owner.name}.{column}` is {value_type}", bounds.span)
        return
    low, high = _bound(bounds.low), _bound(bounds.high)
    if low is not None and high is not None and low > high:
        message = f"`@range` minimum {bound_text(low)} exceeds its maximum {bound_text(high)}"
        owner.report("S124", message, bounds.span)
        return
    owner.constraints.setdefault(ConstraintShape("range", (column,), low, high), constraint.span)


def _check(owner: Owner, constraint: ConstraintSyntax) -> None:
    column, value_type = _single_column(owner, constraint, '@check(property, "regex")', Literal)
    if column is None or value_type is None:
        return
    pattern = constraint.arguments[1]
    assert isinstance(pattern, Literal)  # noqa: S101  _single_column checked it
    if not isinstance(pattern.value, str):
        owner.report("S124", "the second argument of `@check` is a string", pattern.span)
        return
    if not value_type.is_string:
        owner.report("S122", f"`@check` needs a String, and `{owner.name}.{column}` is {value_type}", pattern.span)
        return
    if (problem := pattern_problem(pattern.value)) is not None:
        owner.report(problem.code, problem.message, pattern.span, problem.remedy)
        return
    owner.constraints.setdefault(ConstraintShape("check", (column,), pattern=pattern.value), constraint.span)


def _single_column(
    owner: Owner, constraint: ConstraintSyntax, usage: str, second: type[RangeArgument] | type[Literal]
) -> tuple[str | None, ValueType | None]:
    """The column of a `@range` or `@check`, once its arguments have the right form."""
    if owner.kind == "edge":
        owner.report("S121", f"an edge has no `@{constraint.kind}`", constraint.span, "put it on a node type")
        return None, None
    arguments = constraint.arguments
    if len(arguments) != 2 or not isinstance(arguments[0], Name) or not isinstance(arguments[1], second):
        owner.report("S124", f"`@{constraint.kind}` is written `{usage}`", constraint.span)
        return None, None
    value_type = owner.type_of(arguments[0].text)
    if value_type is None:
        _unknown_column(owner, constraint.kind, arguments[0])
    return arguments[0].text, value_type


_BODY: Mapping[str, Callable[[Owner, ConstraintSyntax], None]] = {
    "key": _columns_constraint,
    "unique": _columns_constraint,
    "index": _columns_constraint,
    "range": _range,
    "check": _check,
}


def _unknown_column(owner: Owner, kind: str, name: Name) -> None:
    known = [*owner.properties, *(("src", "dst") if owner.kind == "edge" else ())]
    owner.report(
        "S120",
        f"`@{kind}` names `{name.text}`, which is not a property of {owner.name}",
        name.span,
        lambda: suggest(name.text, known),
    )


def _embed(owner: Owner, prop: PropertySyntax, annotation: Annotation) -> EmbedShape | None:
    value_type = prop.type.resolve()
    if owner.kind == "edge":
        owner.report("S113", "an edge property cannot be embedded", annotation.span, "use a node type")
        return None
    if not value_type.is_vector:
        owner.report(
            "S113",
            f"`@embed` needs a Vector property, and `{prop.name}` is {value_type}",
            annotation.span,
            "declare it as `Vector(n)` with the length your model gives",
        )
        return None
    source = (annotation.value_text or "").strip()
    if not source:
        owner.report("S111", "`@embed` needs the property to embed", annotation.span, 'write `@embed("title")`')
        return None
    model = None
    for key, literal in annotation.options:
        if key.text != "model":
            owner.report("S111", f"`@embed` has no option `{key.text}`", key.span, "its one option is `model`")
            return None
        model = literal_text(literal)
    return EmbedShape(source, model)


def _rename_hint(owner: Owner, annotation: Annotation) -> RenameHint | None:
    old = (annotation.value_text or "").strip()
    if not old or annotation.options:
        owner.report("S111", "`@rename_from` takes one old name", annotation.span, 'write `@rename_from("Old")`')
        return None
    return RenameHint(old, annotation.span)


def _plain_text(owner: Owner, annotation: Annotation) -> None:
    name = annotation.name.text
    if not (annotation.value_text or "").strip() or annotation.options:
        owner.report("S111", f"`@{name}` needs a text", annotation.span, f'write `@{name}("…")`')


def _without_repeats(owner: Owner, annotations: Iterable[Annotation]) -> Iterable[Annotation]:
    """The annotations, with a repeated one that has a meaning reported instead, and repeated options reported."""
    seen: set[str] = set()
    for annotation in annotations:
        name = annotation.name.text
        if name in seen and name in (*_SUGAR, *METADATA_ANNOTATIONS, "embed", "rename_from"):
            owner.report("S112", f"`@{name}` is repeated", annotation.span, "leave one")
            continue
        seen.add(name)
        options: set[str] = set()
        for key, _ in annotation.options:
            if key.text in options:
                owner.report("S112", f"option `{key.text}` of `@{name}` is repeated", key.span, "leave one")
            options.add(key.text)
        yield annotation


def meaning(annotations: Iterable[Annotation]) -> frozenset[AnnotationShape]:
    """What annotations say, whatever their order and spelling; rename hints say nothing lasting."""
    return frozenset(_keep(a) for a in annotations if a.name.text != "rename_from")


def _keep(annotation: Annotation) -> AnnotationShape:
    options = tuple(sorted((key.text, literal_text(value)) for key, value in annotation.options))
    return AnnotationShape(annotation.name.text, annotation.value_text, options)


def _annotation_order(annotation: AnnotationShape) -> tuple[str, str, tuple[tuple[str, str], ...]]:
    return annotation.name, annotation.value or "", annotation.options


def _bound(literal: Literal | None) -> float | None:
    """A bound as it is stored; zero has no sign."""
    return None if literal is None else float(literal.value) + 0.0


def _span_of(argument: Name | Literal | RangeArgument, constraint: ConstraintSyntax) -> Span:
    return argument.span if argument.span.end else constraint.span
