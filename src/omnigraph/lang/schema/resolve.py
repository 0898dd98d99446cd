"""From syntax to shape: interfaces are applied, rules are checked, and what is left is canonical."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from omnigraph.errors import SchemaError
from omnigraph.lang.diagnostics import Diagnostics, Remedy, suggest
from omnigraph.lang.remembering import remembering
from omnigraph.lang.schema.check import (
    Annotations,
    Owner,
    RenameHint,
    add_constraint,
    add_sugar,
    check_embed_source,
    check_header,
    check_property,
    check_property_name,
    meaning,
)
from omnigraph.lang.schema.parser import parse_schema
from omnigraph.lang.schema.shape import PropertyShape, Shape, TypeKind, TypeShape
from omnigraph.lang.schema.syntax import (
    Declaration,
    EdgeSyntax,
    InterfaceSyntax,
    NodeSyntax,
    PropertySyntax,
    SchemaSyntax,
)
from omnigraph.lang.source import MAX_SOURCE_CHARS, Name, Source

MAX_PROPERTIES: Final = 50_000
"""How many properties all types of a schema may have together, those from interfaces included."""

MAX_APPLIED_CHARS: Final = 4 * MAX_SOURCE_CHARS
"""How much text the properties that interfaces bring to nodes may amount to."""

_D = TypeVar("_D", InterfaceSyntax, NodeSyntax, EdgeSyntax)
HintKey = tuple[TypeKind, str] | tuple[TypeKind, str, str]


@dataclass(frozen=True, slots=True)
class CompiledSchema:
    """A schema that makes sense: its text, its tree, its shape, and the rename hints the shape leaves out."""

    source: Source
    syntax: SchemaSyntax
    shape: Shape
    hints: Mapping[HintKey, RenameHint]


@remembering(small_texts=64)
def compile_schema(text: str, name: str = "<schema>") -> CompiledSchema:
    """Parse and check a schema; SchemaError lists every problem."""
    diagnostics = Diagnostics(Source(text, name))
    syntax, _ = parse_schema(diagnostics)
    shape, hints = _Resolver(syntax, diagnostics).resolve()
    diagnostics.raise_if_any(SchemaError)
    return CompiledSchema(diagnostics.source, syntax, shape, hints)


class _Resolver:
    def __init__(self, syntax: SchemaSyntax, diagnostics: Diagnostics) -> None:
        self.diagnostics = diagnostics
        self.broken = syntax.broken
        self.interfaces = self._distinct(
            [d for d in syntax.declarations if isinstance(d, InterfaceSyntax)], "C205", "interface"
        )
        self.nodes = self._distinct(
            [d for d in syntax.declarations if isinstance(d, NodeSyntax)], "C201", "node type"
        )
        self.edges = self._distinct(
            [d for d in syntax.declarations if isinstance(d, EdgeSyntax)], "C202", "edge type"
        )
        self.hints: dict[HintKey, RenameHint] = {}

    def resolve(self) -> tuple[Shape, dict[HintKey, RenameHint]]:
        if self._too_large():
            return Shape(), {}
        interfaces = [self._interface(i) for i in self.interfaces.values()]
        nodes = [self._node(n) for n in self.nodes.values()]
        edges = [self._edge(e) for e in self.edges.values()]
        self._check_edge_names()
        shape = Shape(*(tuple(sorted(types, key=lambda t: t.name)) for types in (interfaces, nodes, edges)))
        return shape, self.hints

    def _catalog_error(self, code: str, message: str, name: Name, remedy: Remedy = None) -> None:
        self.diagnostics.report(code, "catalog error", message, name.span, remedy)

    def _distinct(self, declarations: list[_D], code: str, what: str) -> dict[str, _D]:
        by_name: dict[str, _D] = {}
        for declaration in declarations:
            if declaration.name.text in by_name:
                self._catalog_error(code, f"{what} {declaration.name} is declared twice", declaration.name)
            else:
                by_name[declaration.name.text] = declaration
        return by_name

    def _too_large(self) -> bool:
        """Interfaces multiply: count what they would inject before injecting it."""
        total = characters = 0
        written = {
            i.name.text: sum(m.span.end - m.span.start for m in i.members) for i in self.interfaces.values()
        }
        declarations: list[Declaration] = [*self.interfaces.values(), *self.nodes.values(), *self.edges.values()]
        for declaration in declarations:
            total += len(declaration.members)
            if isinstance(declaration, NodeSyntax):
                for name in {n.text for n in declaration.implements if n.text in self.interfaces}:
                    total += len(self.interfaces[name].members)
                    characters += written[name]
            problem = None
            if total > MAX_PROPERTIES:
                problem = f"the schema has more than {MAX_PROPERTIES:,} properties"
            elif characters > MAX_APPLIED_CHARS:
                problem = f"what interfaces bring to nodes amounts to more than {MAX_APPLIED_CHARS:,} characters"
            if problem:
                self._catalog_error("C208", problem, declaration.name)
                return True
        return False

    def _properties(self, declared: tuple[PropertySyntax, ...], owner: str) -> dict[str, PropertySyntax]:
        by_name: dict[str, PropertySyntax] = {}
        for prop in declared:
            if prop.name.text in by_name:
                self._catalog_error("C206", f"property {owner}.{prop.name} is declared twice", prop.name)
            else:
                by_name[prop.name.text] = prop
        return by_name

    def _interface(self, syntax: InterfaceSyntax) -> TypeShape:
        properties = self._properties(syntax.properties, syntax.name.text)
        owner = Owner("interface", syntax.name.text, properties, self.diagnostics)
        shapes = []
        for prop in properties.values():
            check_property_name(owner, prop.name)
            checked = check_property(owner, prop)
            add_sugar(owner, prop, checked.sugar)
            self._remember(("interface", owner.name, prop.name.text), checked)
            shapes.append(PropertyShape(prop.name.text, prop.type.resolve(), checked.kept, checked.embed))
        return _type_shape(owner, shapes)

    def _node(self, syntax: NodeSyntax) -> TypeShape:
        declared = self._properties(syntax.properties, syntax.name.text)
        properties, satisfies = self._apply_interfaces(syntax, declared)
        owner = Owner("node", syntax.name.text, properties, self.diagnostics)
        header = check_header(owner, syntax.annotations)
        self._remember(("node", owner.name), header)
        shapes: list[PropertyShape] = []
        for name, prop in properties.items():
            injected = name not in declared
            if not injected:
                check_property_name(owner, prop.name)
            checked = check_property(owner, prop)
            add_sugar(owner, prop, checked.sugar)
            if checked.embed is not None:
                check_embed_source(owner, prop, checked.embed)
            self._remember(("node", owner.name, name), checked)
            shapes.append(
                PropertyShape(
                    name,
                    prop.type.resolve(),
                    checked.kept,
                    checked.embed,
                    injected,
                    tuple(sorted(satisfies.get(name, ()))),
                )
            )
        for constraint in syntax.constraints:
            add_constraint(owner, constraint)
        implements = tuple(sorted({n.text for n in syntax.implements}))
        return _type_shape(owner, shapes, header, implements=implements)

    def _apply_interfaces(
        self, syntax: NodeSyntax, declared: dict[str, PropertySyntax]
    ) -> tuple[dict[str, PropertySyntax], dict[str, set[str]]]:
        """All properties of a node, and for each the interfaces that ask for it."""
        properties = dict(declared)
        satisfies: dict[str, set[str]] = {}
        origin: dict[str, str] = {}
        named: dict[str, Name] = {}
        for name in syntax.implements:
            named.setdefault(name.text, name)
        for name in named.values():
            interface = self.interfaces.get(name.text)
            if interface is None:
                if name.text not in self.broken:
                    self.diagnostics.report(
                        "S101",
                        "parse error",
                        f"{syntax.name} implements `{name}`, which is not an interface",
                        name.span,
                        partial(suggest, name.text, self.interfaces),
                    )
                continue
            for wanted in interface.properties:
                key = wanted.name.text
                present = properties.get(key)
                satisfies.setdefault(key, set()).add(name.text)
                if present is None:
                    properties[key] = wanted
                    origin[key] = name.text
                elif key in declared:
                    self._same_type(syntax, present, wanted, name.text)
                elif origin[key] != name.text and not _same_property(present, wanted):
                    self._catalog_error(
                        "C207",
                        f"{syntax.name} gets two different properties `{key}`, from {origin[key]} and {name}",
                        name,
                        f"declare `{key}` on {syntax.name} itself, or make the interfaces agree",
                    )
        return properties, satisfies

    def _same_type(
        self, syntax: NodeSyntax, present: PropertySyntax, wanted: PropertySyntax, interface: str
    ) -> None:
        has, needs = present.type.resolve(), wanted.type.resolve()
        if has != needs:
            self.diagnostics.report(
                "S102",
                "parse error",
                f"{syntax.name}.{present.name} is {has}, but {interface} requires {needs}",
                present.type.span,
                f"write `{present.name}: {needs}`, or leave the property to {interface}",
            )

    def _edge(self, syntax: EdgeSyntax) -> TypeShape:
        properties = self._properties(syntax.properties, syntax.name.text)
        owner = Owner("edge", syntax.name.text, properties, self.diagnostics)
        for end, name in (("source", syntax.source), ("target", syntax.target)):
            if name.text not in self.nodes and name.text not in self.broken:
                known_interface = name.text in self.interfaces
                self._catalog_error(
                    "C203",
                    f"unknown {end} type `{name}` of edge {syntax.name}",
                    name,
                    "an interface cannot be an endpoint; name a node type"
                    if known_interface
                    else partial(suggest, name.text, self.nodes),
                )
        header = check_header(owner, syntax.annotations)
        self._remember(("edge", owner.name), header)
        shapes = []
        for prop in properties.values():
            check_property_name(owner, prop.name)
            checked = check_property(owner, prop)
            add_sugar(owner, prop, checked.sugar)
            self._remember(("edge", owner.name, prop.name.text), checked)
            shapes.append(PropertyShape(prop.name.text, prop.type.resolve(), checked.kept, checked.embed))
        for constraint in syntax.constraints:
            add_constraint(owner, constraint)
        card = syntax.cardinality
        return _type_shape(
            owner,
            shapes,
            header,
            source=syntax.source.text,
            target=syntax.target.text,
            minimum=card.minimum if card else 0,
            maximum=card.maximum if card else None,
        )

    def _check_edge_names(self) -> None:
        folded: dict[str, Name] = {}
        for edge in self.edges.values():
            first = folded.setdefault(edge.name.text.lower(), edge.name)
            if first is not edge.name:
                self._catalog_error(
                    "C204",
                    f"edge names {first} and {edge.name} differ only in letter case",
                    edge.name,
                    "queries find edges whatever their case; rename one of them",
                )

    def _remember(self, key: HintKey, checked: Annotations) -> None:
        if checked.rename is not None:
            self.hints[key] = checked.rename


def _type_shape(
    owner: Owner,
    properties: list[PropertyShape],
    header: Annotations | None = None,
    *,
    implements: tuple[str, ...] = (),
    source: str | None = None,
    target: str | None = None,
    minimum: int = 0,
    maximum: int | None = None,
) -> TypeShape:
    return TypeShape(
        owner.kind,
        owner.name,
        tuple(sorted(properties, key=lambda p: p.name)),
        tuple(sorted(owner.constraints, key=lambda c: c.order)),
        header.kept if header else (),
        implements,
        source,
        target,
        minimum,
        maximum,
    )


def _same_property(left: PropertySyntax, right: PropertySyntax) -> bool:
    """Do two interface properties mean the same: type and annotations, however written?"""
    return left.type.resolve() == right.type.resolve() and meaning(left.annotations) == meaning(right.annotations)
