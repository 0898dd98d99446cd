"""Parsing .gq files: queries, parameters and mutations. Clauses and expressions have files of their own."""

from __future__ import annotations

from dataclasses import replace

from omnigraph.lang.diagnostics import Diagnostics, suggest
from omnigraph.lang.parsing import SyntaxProblem, describe
from omnigraph.lang.query.grammar.clauses import ClauseParser
from omnigraph.lang.query.grammar.expressions import is_constant
from omnigraph.lang.query.syntax.clauses import Requirement
from omnigraph.lang.query.syntax.expressions import (
    COMPUTED,
    SYMBOLS,
    AliasRef,
    BoolLiteral,
    Comparison,
    Connected,
    Expression,
    IntegerLiteral,
    StringLiteral,
    TextCall,
    Variable,
)
from omnigraph.lang.query.syntax.queries import (
    Assignment,
    Condition,
    Delete,
    Insert,
    MutationBody,
    Ordering,
    ParameterSyntax,
    Projection,
    QueryAnnotation,
    QueryFileSyntax,
    QuerySyntax,
    ReadBody,
    Statement,
    Update,
)
from omnigraph.lang.source import Name
from omnigraph.lang.tokens import END, IDENT, INTEGER, STRING, TYPE_NAME, VARIABLE, Token, Tokens
from omnigraph.lang.values import MAX_VECTOR

_STATEMENTS = ("insert", "update", "delete")
_ROW_LIMIT = 2**64 - 1


def parse_queries(diagnostics: Diagnostics) -> tuple[QueryFileSyntax, Tokens]:
    """The syntax tree and the tokens of a query file; problems are reported, sound queries are returned."""
    parser = _Parser(diagnostics)
    return parser.file(), parser.lexed


class _Parser(ClauseParser):
    def file(self) -> QueryFileSyntax:
        queries: list[QuerySyntax] = []
        while self.token.kind is not END:
            before, begun = self.diagnostics.count, self.at
            try:
                query = self._query()
            except SyntaxProblem:
                self._skip_to_query(begun)
                continue
            if self.diagnostics.count == before:
                queries.append(query)
        return QueryFileSyntax(tuple(queries))

    def _skip_to_query(self, begun: int) -> None:
        while self.token.kind is not END and (self.at == begun or not self._at_query()):
            self.advance()

    def _at_query(self) -> bool:
        return self.at_word("query") and self.peek().kind is IDENT and self.peek(2).kind == "("

    def at_block_end(self) -> bool:
        return super().at_block_end() or (self._at_query() and self.starts_line(self.at))

    def _query(self) -> QuerySyntax:
        start = self.token
        if not self.at_word("query"):
            remedy = suggest(start.text, ["query"], otherwise=None) if start.kind is IDENT else None
            self.fail(f"expected `query`, found {describe(start)}", remedy=remedy)
        self.advance()
        if self.token.kind is TYPE_NAME:
            self.fail(
                f"expected the query's name, found {describe(self.token)}",
                remedy="query names start with a lower-case letter",
            )
        name = self.expect(IDENT, "the query's name")
        self.expect("(", "`(` and the parameters; write `()` if there are none")
        parameters: list[ParameterSyntax] = []
        if not self.accept(")"):
            parameters.append(self._parameter())
            while self.accept(","):
                parameters.append(self._parameter())
            self.expect(")", "`,` or `)`")
        annotations = self._annotations()
        self.expect("{", "`{`")
        body = self._body()
        self.expect("}", "the end of the query, `}`")
        return QuerySyntax(
            Name(name.text, name.span),
            tuple(parameters),
            annotations,
            body,
            start.span.to(self.last),
        )

    def _parameter(self) -> ParameterSyntax:
        token = self.expect(VARIABLE, "a parameter such as `$name: String`")
        name = Name(token.text, token.span)
        self.expect(":", "`:` and the parameter's type")
        start = self.token
        if self.accept("["):
            item = self.expect(TYPE_NAME, "a scalar type")
            self.expect("]", "`]`")
            nullable = self.accept("?") is not None
            return ParameterSyntax(
                name, item.text, is_list=True, nullable=nullable, type_span=start.span.to(self.last)
            )
        if self.at_word("enum"):
            self.fail("a parameter cannot be an enum", remedy="declare it as `String`")
        written = self.expect(TYPE_NAME, "the parameter's type")
        dimension = None
        if written.text == "Vector":
            self.expect("(", "`(` and the vector's length, such as `Vector(768)`")
            dimension, span = self.unsigned("the vector's length", MAX_VECTOR)
            if dimension == 0:
                self.fail("a vector has at least one component", span=span, code="P003")
            self.expect(")", "`)`")
        nullable = self.accept("?") is not None
        return ParameterSyntax(
            name, written.text, dimension=dimension, nullable=nullable, type_span=start.span.to(self.last)
        )

    def _annotations(self) -> tuple[QueryAnnotation, ...]:
        annotations: list[QueryAnnotation] = []
        seen: set[str] = set()
        while at := self.accept("@"):
            name = self.expect(IDENT, "`description` or `instruction`")
            if name.text not in ("description", "instruction"):
                self.fail(
                    f"a query has no `@{name.text}`",
                    span=at.span.to(name.span),
                    code="Q116",
                    remedy="queries take `@description` and `@instruction`",
                )
            self.expect("(", "`(`")
            value = self.expect(STRING, "a text in double quotes")
            self.expect(")", "`)`")
            span = at.span.to(self.last)
            if name.text in seen:
                self.fail(f"`@{name.text}` is repeated", span=span, code="Q116", remedy="leave one")
            if not value.text.strip():
                self.fail(f"`@{name.text}` is blank", span=span, code="Q116")
            seen.add(name.text)
            written = self.diagnostics.source.text[value.start : value.end]
            literal = StringLiteral(value.text, written, value.span)
            annotations.append(QueryAnnotation(Name(name.text, name.span), literal, span))
        return tuple(annotations)

    def _body(self) -> ReadBody | MutationBody:
        if self.at_word(*_STATEMENTS):
            statements: list[Statement] = []
            while self.at_word(*_STATEMENTS):
                statements.append(self._statement())
            if self.token.kind != "}":
                self._misplaced(_STATEMENTS, "another statement or `}`")
            return MutationBody(tuple(statements))
        if not self.at_word("match"):
            self._misplaced(("match", *_STATEMENTS), "`match`, `insert`, `update` or `delete`")
        return self._read()

    def _misplaced(self, words: tuple[str, ...], wanted: str) -> None:
        remedy = suggest(self.token.text, words, otherwise=None) if self.token.kind is IDENT else None
        self.fail(f"expected {wanted}, found {describe(self.token)}", remedy=remedy)

    def _read(self) -> ReadBody:
        """A read: matches and returns united by `union`, then the order and the page of all rows."""
        first, others = self._returned(), list[ReadBody]()
        repeats: bool | None = None
        while self.at_word("union"):
            start = self.advance()
            keeps = self.accept_word("all") is not None
            if repeats is not None and keeps != repeats:
                self.fail(
                    "a query has `union` or `union all`, not both",
                    span=start.span.to(self.last),
                    remedy="`union` leaves out equal rows, `union all` keeps them",
                )
            repeats = keeps
            if not self.at_word("match"):
                self._misplaced(("match",), "`match` behind `union`")
            others.append(self._returned())
        order: list[Ordering] = []
        if self.accept_word("order"):
            self.expect("{", "`{`")
            order.append(self._ordering())
            while self.accept(","):
                order.append(self._ordering())
            self.expect("}", "`,` or `}`")
        limit = self._count("limit") if self.accept_word("limit") else None
        offset = None
        if self.at_word("offset"):
            if limit is None:
                self.fail("`offset` comes behind `limit`", remedy="write `limit 10 offset 20`")
            self.advance()
            offset = self._count("offset")
        if self.token.kind != "}":
            self._section_out_of_place()
        return replace(
            first, order=tuple(order), limit=limit, offset=offset, united=tuple(others), repeats=bool(repeats)
        )

    def _returned(self) -> ReadBody:
        """`match { … } return { … } having { … }`."""
        self.advance()
        clauses = self.clause_block("match")
        self.expect_word("return", "a query reads `match { … } return { … }`")
        distinct = self.accept_word("distinct") is not None
        self.expect("{", "`{`")
        projections = [self._projection()]
        while not self.accept("}"):
            projections.append(self._projection())
        having = self._having() if self.accept_word("having") else ()
        return ReadBody(clauses, tuple(projections), distinct, having=having)

    def _having(self) -> tuple[Requirement, ...]:
        self.expect("{", "`{`")
        conditions: list[Requirement] = []
        while not self.accept("}"):
            start = self.token
            condition = self.loosely()
            if not isinstance(condition, COMPUTED):
                self.fail(
                    "expected a condition on groups",
                    span=start.span.to(self.last),
                    remedy="write `having { count(*) > 3 }`",
                )
            conditions.append(Requirement(condition, start.span.to(self.last)))
        if not conditions:
            self.fail("`having { }` is empty", span=self.last, remedy="it needs at least one condition")
        return tuple(conditions)

    def _section_out_of_place(self) -> None:
        if self.at_word("union"):
            self.fail(
                "`union` comes in front of `order` and `limit`",
                remedy="they are of all rows together: `… union match { … } return { … } order { … }`",
            )
        if self.at_word("match", "return", "having", "order", "limit", "offset", "distinct"):
            self.fail(
                f"`{self.token.text}` is out of place",
                remedy="the order is `match`, `return`, `having`, `order`, `limit`, `offset`, each at most once",
            )
        words = ("having", "order", "limit", "offset", "union")
        self._misplaced(words, "`having`, `order`, `limit`, `offset` or `}`")

    def _projection(self) -> Projection:
        start = self.token
        if start.kind == "}":
            self.fail("`return` needs at least one expression", remedy="write `return { $x.name }`")
        expression = self.loosely()
        alias = None
        if self.accept_word("as"):
            token = self.expect(IDENT, "an alias, a name that starts with a lower-case letter")
            alias = Name(token.text, token.span)
        span = start.span.to(self.last)
        self.accept(",")
        return Projection(expression, alias, span)

    def _ordering(self) -> Ordering:
        start = self.token
        expression = self.alone()
        if self.at_word("asc"):
            self.advance()
            return Ordering(expression, "asc", start.span.to(self.last))
        if self.at_word("desc"):
            self.advance()
            return Ordering(expression, "desc", start.span.to(self.last))
        return Ordering(expression, None, start.span.to(self.last))

    def _count(self, word: str) -> IntegerLiteral | Variable:
        if self.token.kind is VARIABLE:
            token = self.advance()
            return Variable(token.text, token.span)
        if self.token.kind is not INTEGER:
            self.fail(f"expected a whole number or a parameter behind `{word}`, found {describe(self.token)}")
        value, span = self.unsigned("a whole number", _ROW_LIMIT)
        return IntegerLiteral(value, span)

    def _statement(self) -> Statement:
        start = self.advance()
        name = self._mutated_type(start.text)
        if start.text == "insert":
            assignments = self._assignments(start.text)
            return Insert(name, assignments, start.span.to(self.last))
        if start.text == "update":
            self.expect_word("set", "write `update Type set { … } where …`")
            assignments = self._assignments(start.text)
            where = self._where("update")
            return Update(name, assignments, where, start.span.to(self.last))
        where = self._where("delete")
        return Delete(name, where, start.span.to(self.last))

    def _mutated_type(self, verb: str) -> Name:
        token = self.token
        if token.kind is IDENT:
            self.fail(
                f"expected the type to {verb}, found {describe(token)}",
                remedy="types are written as declared, with an upper-case first letter",
            )
        self.expect(TYPE_NAME, f"the type to {verb}")
        return Name(token.text, token.span)

    def _assignments(self, word: str) -> tuple[Assignment, ...]:
        self.expect("{", "`{`")
        assignments: list[Assignment] = []
        while not self.accept("}"):
            name = self.expect(IDENT, "a property or `}`")
            self.expect(":", "`:` and a value")
            start = self.token
            value = self.alone()
            if word == "insert":
                self.require_value(value, start)
            assignments.append(Assignment(Name(name.text, name.span), value, name.span.to(self.last)))
            self.accept(",")
        return tuple(assignments)

    def _where(self, verb: str) -> tuple[Condition | Requirement, ...]:
        self.expect_word("where", f"`{verb}` always says which rows: `where name = $name`")
        if self.token.kind is VARIABLE and self.peek().kind == ".":
            self.fail(
                f"expected a property's name, found {describe(self.token)}",
                remedy="in `where` properties stand alone: `where age > 30`",
            )
        if self.token.kind == "}":
            self.fail(f"expected a property's name, found {describe(self.token)}")
        start = self.token
        found = self.alone()
        parts = found.operands if isinstance(found, Connected) and found.connective == "and" else (found,)
        return tuple(self._where_condition(part, start) for part in parts)

    def _where_condition(self, found: Expression, start: Token) -> Condition | Requirement:
        match found:
            case Comparison(AliasRef(name, at), operator, value) if operator in SYMBOLS and is_constant(value):
                return Condition(Name(name, at), operator, value, found.span)
            case Comparison(BoolLiteral(truth, at), operator, value) if operator in SYMBOLS and is_constant(value):
                return Condition(Name("true" if truth else "false", at), operator, value, found.span)
        if not isinstance(found, (*COMPUTED, TextCall)):
            self.fail(
                f"expected a comparison, found {describe(self.token)}",
                span=None if isinstance(found, AliasRef) else start.span.to(self.last),
                remedy="`where` takes conditions such as `age > 30`",
            )
        return Requirement(found, found.span)
