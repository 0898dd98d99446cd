"""Parsing .pg schemas: one function per rule of the grammar."""

from __future__ import annotations

from omnigraph.lang.diagnostics import Diagnostics, suggest
from omnigraph.lang.parsing import I64_MAX, Cursor, SyntaxProblem, describe, shorten
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
from omnigraph.lang.source import MAX_NAME_CHARS, Name, Span
from omnigraph.lang.tokens import END, FLOAT, IDENT, INTEGER, STRING, TYPE_NAME, Tokens
from omnigraph.lang.values import MAX_VECTOR, SCALAR_NAMES, Scalar

CONSTRAINT_KINDS = ("key", "unique", "index", "range", "check")
_U32_MAX = 2**32 - 1
_DECLARATIONS = ("interface", "node", "edge")


def parse_schema(diagnostics: Diagnostics) -> tuple[SchemaSyntax, Tokens]:
    """The syntax tree and the tokens of a schema; problems are reported, and what is sound is returned."""
    parser = _Parser(diagnostics)
    return parser.schema(), parser.lexed


class _Parser(Cursor):
    recovered = False
    """Was a member of the current declaration skipped?"""

    def schema(self) -> SchemaSyntax:
        declarations: list[Declaration] = []
        broken: set[str] = set()
        while self.token.kind is not END:
            before, start, named = self.diagnostics.count, self.at, self.peek().text
            self.recovered = False
            try:
                declaration = self._declaration()
            except SyntaxProblem:
                broken.add(named)
                self._skip_to_declaration(start)
                continue
            if self.recovered or self.diagnostics.count > before:
                broken.add(declaration.name.text)
            else:
                declarations.append(declaration)
        return SchemaSyntax(tuple(declarations), frozenset(broken))

    def _declaration(self) -> Declaration:
        start = self.token
        if start.kind is IDENT and self.peek().kind is TYPE_NAME:
            if start.text == "interface":
                return self._interface()
            if start.text == "node":
                return self._node()
            if start.text == "edge":
                return self._edge()
        if start.kind is IDENT and start.text in _DECLARATIONS:
            self.advance()
            self.fail(
                f"expected the {start.text}'s name, found {describe(self.token)}",
                remedy="type names start with an upper-case letter, such as `Person`",
            )
        remedy = suggest(start.text, _DECLARATIONS, otherwise=None) if start.kind is IDENT else None
        self.fail(f"expected `node`, `edge` or `interface`, found {describe(start)}", remedy=remedy)

    def _skip_to_declaration(self, start: int) -> None:
        """Go on at the next declaration behind the one that started here."""
        if self.at == start:
            self.advance()
        while self.token.kind is not END and not self._at_declaration():
            self.advance()

    def _at_declaration(self) -> bool:
        behind = self.peek(2).text
        return (
            self.at_word(*_DECLARATIONS)
            and self.peek().kind is TYPE_NAME
            and (behind in ("{", ":", "@", "implements") or self.starts_line(self.at))
        )

    def _interface(self) -> InterfaceSyntax:
        start = self.advance()
        name = self._type_name("the interface's name")
        self.expect("{", "`{`")
        members = self._members(in_interface=True)
        properties = tuple(m for m in members if isinstance(m, PropertySyntax))
        return InterfaceSyntax(name, properties, start.span.to(self.last))

    def _node(self) -> NodeSyntax:
        start = self.advance()
        name = self._type_name("the node's name")
        annotations = self._annotations()
        implements: list[Name] = []
        if self.accept_word("implements"):
            implements.append(self._type_name("an interface's name"))
            while self.accept(","):
                implements.append(self._type_name("an interface's name"))
            if self.token.kind == "@":
                self.fail("annotations come before `implements`", remedy="move them behind the node's name")
        self.expect("{", "`{`")
        members = self._members(in_interface=False)
        return NodeSyntax(name, annotations, tuple(implements), members, start.span.to(self.last))

    def _edge(self) -> EdgeSyntax:
        start = self.advance()
        name = self._type_name("the edge's name")
        self.expect(":", "`:` and the edge's endpoints, such as `: Person -> Company`")
        source = self._type_name("the source node type")
        self.expect("->", "`->`")
        target = self._type_name("the target node type")
        cardinality = self._cardinality() if self._at_card() else None
        annotations = self._annotations()
        members: tuple[Member, ...] = ()
        if self.accept("{"):
            members = self._members(in_interface=False)
        return EdgeSyntax(name, source, target, cardinality, annotations, members, start.span.to(self.last))

    def _at_card(self) -> bool:
        return self.token.kind == "@" and self.peek().text == "card" and self.peek(2).kind == "("

    def _cardinality(self) -> CardinalitySyntax:
        start = self.advance()
        self.advance()
        self.expect("(", "`(`")
        minimum, _ = self.unsigned("the least number of edges", _U32_MAX)
        self.expect("..", "`..`")
        maximum = None
        if self.token.kind is INTEGER:
            maximum, _ = self.unsigned("the largest number of edges", _U32_MAX)
        self.expect(")", "`)`")
        span = start.span.to(self.last)
        if maximum is not None and minimum > maximum:
            self.diagnostics.report(
                "S124", "parse error", f"@card minimum {minimum} exceeds its maximum {maximum}", span
            )
        return CardinalitySyntax(minimum, maximum, span)

    def _members(self, *, in_interface: bool) -> tuple[Member, ...]:
        """Properties and constraints up to the closing brace; a bad one does not hide the next."""
        members: list[Member] = []
        while not self.accept("}"):
            if self.token.kind is END:
                self.fail("this block is never closed", remedy="close it with `}`")
            if self._at_declaration() and self.starts_line(self.at):
                self.fail("the block of the declaration above is never closed", remedy="close it with `}`")
            start = self.at
            try:
                members.append(self._member(in_interface))
            except SyntaxProblem:
                self.recovered = True
                self._skip_to_member(start)
        return tuple(members)

    def _skip_to_member(self, start: int) -> None:
        """Go on at the next line that begins a member or a declaration, or at the block's end."""
        while self.token.kind not in (END, "}"):
            if self.at > start and self.starts_line(self.at) and (self._at_member() or self._at_declaration()):
                return
            self.advance()

    def _at_member(self) -> bool:
        if self.token.kind == "@":
            return self.peek().text in CONSTRAINT_KINDS and self.peek(2).kind == "("
        return self.token.kind in (IDENT, TYPE_NAME) and self.peek().kind == ":"

    def _member(self, in_interface: bool) -> Member:
        if self.token.kind == "@":
            if in_interface:
                self.fail(
                    "an interface has no constraints of its own",
                    remedy="write `@key`, `@unique` or `@index` bare behind a property",
                )
            return self._constraint()
        if self.token.kind == ",":
            self.fail("properties are not separated by commas", remedy="leave the comma out")
        if self.token.kind is TYPE_NAME and self.peek().kind == ":":
            self.fail(
                f"property names start with a lower-case letter, found {describe(self.token)}",
                remedy=f"write `{shorten(self.token.text[0].lower() + self.token.text[1:])}`",
            )
        start = self.expect(IDENT, "a property, a constraint or `}`")
        self.expect(":", f"`:` and the type of `{shorten(start.text)}`")
        written = self._type()
        annotations = self._annotations(in_interface=in_interface)
        return PropertySyntax(Name(start.text, start.span), written, annotations, start.span.to(self.last))

    def _type(self) -> TypeSyntax:
        start = self.token
        if self.accept("["):
            scalar = self._scalar(in_list=True)
            self.expect("]", "`]`")
            return TypeSyntax(scalar, is_list=True, nullable=self._nullable(), span=start.span.to(self.last))
        if self.at_word("enum") and self.peek().kind == "(":
            members = self._enum_members()
            return TypeSyntax(
                Scalar.STRING, members=members, nullable=self._nullable(), span=start.span.to(self.last)
            )
        if start.kind is TYPE_NAME and start.text == "Vector":
            self.advance()
            self.expect("(", "`(` and the vector's length, such as `Vector(768)`")
            length, span = self.unsigned("the vector's length", MAX_VECTOR)
            if length == 0:
                self.fail("a vector has at least one component", span=span, code="P003")
            self.expect(")", "`)`")
            return TypeSyntax(
                Scalar.F32, dimension=length, nullable=self._nullable(), span=start.span.to(self.last)
            )
        scalar = self._scalar(in_list=False)
        return TypeSyntax(scalar, nullable=self._nullable(), span=start.span.to(self.last))

    def _nullable(self) -> bool:
        return self.accept("?") is not None

    def _scalar(self, *, in_list: bool) -> Scalar:
        token = self.token
        scalar = SCALAR_NAMES.get(token.text) if token.kind is TYPE_NAME else None
        if scalar is None:
            if in_list and token.text in ("enum", "Vector"):
                self.fail(f"a list cannot hold {token.text} values", remedy="lists hold scalars")
            known = SCALAR_NAMES if in_list else [*SCALAR_NAMES, "Vector", "enum"]
            self.fail(f"unknown type {describe(token)}", remedy=suggest(token.text, known))
        if in_list and scalar is Scalar.BLOB:
            self.fail("a list cannot hold Blob values", remedy="use a node type with one Blob property")
        self.advance()
        return scalar

    def _enum_members(self) -> tuple[Name, ...]:
        self.advance()
        self.expect("(", "`(`")
        members = [self._enum_value()]
        while self.accept(","):
            members.append(self._enum_value())
        self.expect(")", "`,` or `)`")
        seen: set[str] = set()
        for member in members:
            if member.text in seen:
                self.diagnostics.report(
                    "S126", "parse error", f"enum value `{shorten(member.text)}` is listed twice", member.span
                )
            seen.add(member.text)
        return tuple(members)

    def _enum_value(self) -> Name:
        """Letters, digits, `_` and `-`, unquoted: the tokens that touch make up one value."""
        first = self.token
        if first.kind is STRING:
            self.fail("enum values are written without quotes", remedy=f"write {shorten(first.text)}")
        while self.token.kind in (IDENT, TYPE_NAME, INTEGER, "-") and (
            self.token is first or self.token.start == self.last.end
        ):
            self.advance()
        if self.token is first:
            self.fail(f"expected an enum value, found {describe(first)}")
        span = first.span.to(self.last)
        if span.end - span.start > MAX_NAME_CHARS:
            self.fail(f"an enum value has at most {MAX_NAME_CHARS} characters", span=span, code="P004")
        return Name(self.diagnostics.source.text[span.start : span.end], span)

    def _constraint(self) -> ConstraintSyntax:
        start = self.advance()
        name = self.expect(IDENT, "a constraint such as `@unique(…)`")
        if name.text not in CONSTRAINT_KINDS:
            self.fail(
                f"`@{shorten(name.text)}` is not a constraint",
                span=start.span.to(name.span),
                remedy=suggest(name.text, CONSTRAINT_KINDS, "@"),
            )
        self.expect("(", f"`(` and the arguments of `@{name.text}`")
        arguments = [self._constraint_argument()]
        while self.accept(","):
            arguments.append(self._constraint_argument())
        self.expect(")", "`,` or `)`")
        return ConstraintSyntax(name.text, tuple(arguments), start.span.to(self.last))

    def _constraint_argument(self) -> ConstraintArgument:
        token = self.token
        if token.kind is IDENT and token.text not in ("true", "false"):
            self.advance()
            return Name(token.text, token.span)
        if token.kind == ".." or token.kind == "-" or token.kind in (INTEGER, FLOAT):
            low = None if token.kind == ".." else self._signed()
            if low is not None and self.token.kind != "..":
                if token.kind == "-":
                    self.fail("a signed number is only allowed as a bound of `@range`", span=low.span)
                return low
            self.expect("..", "`..`")
            high = self._signed() if self.token.kind in (INTEGER, FLOAT, "-") else None
            span = token.span.to(self.last)
            if low is None and high is None:
                self.fail("a range needs at least one bound", span=span)
            return RangeArgument(low, high, span)
        return self._literal()

    def _signed(self) -> Literal:
        start = self.token
        negative = self.accept("-") is not None
        if self.token.kind not in (INTEGER, FLOAT):
            self.fail(f"expected a number, found {describe(self.token)}")
        number = self._literal()
        assert isinstance(number.value, int | float)  # noqa: S101  the token is a number
        written = ("-" if negative else "") + (number.written or "")
        value = -number.value if negative else number.value
        return Literal(value, written, start.span.to(self.last))

    def _annotations(self, *, in_interface: bool = False) -> tuple[Annotation, ...]:
        annotations: list[Annotation] = []
        while self.token.kind == "@":
            name = self.peek()
            if name.text in CONSTRAINT_KINDS and self.peek(2).kind == "(":
                if in_interface:
                    self.fail(
                        f"an interface property takes `@{name.text}` without arguments only",
                        remedy="interfaces have no constraints of their own; put this one on the nodes",
                    )
                break
            annotations.append(self._annotation())
        return tuple(annotations)

    def _annotation(self) -> Annotation:
        start = self.advance()
        name = self.expect(IDENT, "an annotation's name")
        if name.text == "card" and self.token.kind == "(":
            self.fail(
                "`@card(…)` stands right behind an edge's endpoints, before other annotations",
                span=start.span.to(name.span),
                remedy="write `edge E: A -> B @card(0..1) …`",
            )
        value: Literal | Name | None = None
        options: list[tuple[Name, Literal]] = []
        if self.accept("("):
            token = self.token
            if token.kind is IDENT and token.text not in ("true", "false"):
                self.advance()
                value = Name(token.text, token.span)
            else:
                value = self._literal()
            while self.accept(","):
                key = self.expect(IDENT, "an option's name")
                self.expect("=", "`=`")
                options.append((Name(key.text, key.span), self._literal()))
            self.expect(")", "`,` or `)`")
        return Annotation(Name(name.text, name.span), value, tuple(options), start.span.to(self.last))

    def _literal(self) -> Literal:
        token = self.token
        written = self.diagnostics.source.text[token.start : token.end]
        if token.kind is STRING:
            self.advance()
            return Literal(token.text, written, token.span)
        if token.kind is INTEGER:
            self.advance()
            return Literal(self.integer_value(token, I64_MAX), written, token.span)
        if token.kind is FLOAT:
            self.advance()
            return Literal(self.float_value(token), written, token.span)
        if token.kind is IDENT and token.text in ("true", "false"):
            self.advance()
            return Literal(token.text == "true", written, token.span)
        self.fail(f"expected a literal, found {describe(token)}")

    def _type_name(self, wanted: str) -> Name:
        token = self.token
        if token.kind is IDENT:
            self.fail(
                f"expected {wanted}, found {describe(token)}",
                remedy="type names start with an upper-case letter",
            )
        self.expect(TYPE_NAME, wanted)
        return Name(token.text, Span(token.start, token.end))
