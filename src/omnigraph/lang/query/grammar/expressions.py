"""Parsing the expressions of .gq: literals, properties, aggregates and search calls."""

from __future__ import annotations

from omnigraph.lang.diagnostics import suggest
from omnigraph.lang.parsing import I64_MAX, Cursor, describe, shorten
from omnigraph.lang.query.scores import ARMS, SCORES, Operand, ScoreFunction
from omnigraph.lang.query.syntax import (
    AGGREGATES,
    LITERALS,
    NO_NULL,
    TEXT_PREDICATES,
    Aggregate,
    AliasRef,
    BoolLiteral,
    DateLiteral,
    DateTimeLiteral,
    Expression,
    FloatLiteral,
    IntegerLiteral,
    ListLiteral,
    Literal,
    Now,
    PropertyRef,
    ScoreCall,
    StringLiteral,
    TextCall,
    TextFunction,
    Variable,
)
from omnigraph.lang.source import Name
from omnigraph.lang.tokens import FLOAT, IDENT, INTEGER, STRING, VARIABLE, Token

_FUNCTIONS = (*AGGREGATES, *TEXT_PREDICATES, *SCORES, "now", "date", "datetime")


class ExpressionParser(Cursor):
    """A cursor that can read one expression."""

    def expression(self) -> Expression:
        """Read one expression, whatever it is; what may stand where is for the type checker."""
        token = self.token
        if token.kind is VARIABLE:
            return self._variable_or_property()
        if token.kind is IDENT and self.peek().kind == "(":
            with self.nested():
                return self._call()
        if token.kind is IDENT and token.text not in ("true", "false"):
            self.advance()
            return AliasRef(token.text, token.span)
        return self._literal()

    def require_value(self, value: Expression, start: Token) -> Expression:
        """Refuse anything but a literal, a variable or `now()`."""
        if isinstance(value, (*LITERALS, Variable, Now)):
            return value
        remedy = "compare two properties in a clause of their own: `$a.p = $b.p`"
        if isinstance(value, AliasRef):
            remedy = NO_NULL if value.name == "null" else f'a text is written in double quotes: `"{value.name}"`'
        self.fail("expected a literal, a parameter or `now()`", span=start.span.to(self.last), remedy=remedy)

    def variable(self, wanted: str) -> Variable:
        """Read `$name`."""
        token = self.expect(VARIABLE, wanted)
        return Variable(token.text, token.span)

    def _variable_or_property(self) -> Variable | PropertyRef:
        token = self.advance()
        variable = Variable(token.text, token.span)
        if not self.accept("."):
            return variable
        name = self.expect(IDENT, f"a property of `${token.text}`")
        return PropertyRef(variable, Name(name.text, name.span), token.span.to(name.span))

    def _call(self) -> Expression:
        name = self.advance()
        function = name.text
        if function not in _FUNCTIONS:
            self.fail(
                f"unknown function `{shorten(function)}`", span=name.span, remedy=suggest(function, _FUNCTIONS)
            )
        self.advance()
        if function == "now":
            self.expect(")", "`)`; `now()` takes no arguments")
            return Now(name.span.to(self.last))
        if function in ("date", "datetime"):
            text = self.expect(STRING, 'a text such as "2024-01-31"')
            self.expect(")", "`)`")
            span = name.span.to(self.last)
            return DateLiteral(text.text, span) if function == "date" else DateTimeLiteral(text.text, span)
        for aggregate in AGGREGATES:
            if function == aggregate:
                distinct = aggregate == "count" and self._accept_distinct()
                argument = self.expression()
                self.expect(")", "`)`")
                return Aggregate(aggregate, argument, distinct, name.span.to(self.last))
        for text_function in TEXT_PREDICATES:
            if function == text_function:
                return self._text_call(name, text_function)
        return self._score_call(name, SCORES[function])

    def _accept_distinct(self) -> bool:
        """`distinct` in front of an argument; an alias of that name would be followed by `)`."""
        return self.peek().kind != ")" and self.accept_word("distinct") is not None

    def _score_call(self, name: Token, function: ScoreFunction) -> ScoreCall:
        operands: list[Expression] = []
        for operand in function.operands:
            if operand.optional and not self.accept(","):
                break
            if operands and not operand.optional:
                self.expect(",", f"`,` and {operand.wanted}")
            operands.append(self._operand(function, operand))
        self.expect(")", "`)`")
        call = ScoreCall(function.name, tuple(operands), name.span.to(self.last))
        if function.direction is not None and self.at_word("asc", "desc"):
            self.fail(
                f"`{function.name}` has only one direction: {function.direction}",
                remedy="leave it out",
            )
        return call

    def _operand(self, function: ScoreFunction, operand: Operand) -> Expression:
        if operand.kind == "ranking" and not (self.at_word(*ARMS) and self.peek().kind == "("):
            expected = " or ".join(f"`{arm}(…)`" for arm in ARMS)
            self.fail(
                f"expected {expected}, found {describe(self.token)}",
                remedy=f"`{function.name}` fuses two rankings",
            )
        expression = self.expression()
        if operand.kind == "property" and not isinstance(expression, PropertyRef):
            self.fail(
                f"the first argument of `{function.name}` is a property",
                span=self.last,
                remedy=f"write `{operand.example}`",
            )
        return expression

    def _text_call(self, name: Token, function: TextFunction) -> TextCall:
        subject = self.expression()
        self.expect(",", "`,` and the text to look for")
        query = self.expression()
        edits = self.expression() if function == "fuzzy" and self.accept(",") else None
        self.expect(")", "`)`")
        return TextCall(function, subject, query, edits, name.span.to(self.last))

    def _literal(self) -> Literal:
        token = self.token
        if token.kind is STRING:
            self.advance()
            written = self.diagnostics.source.text[token.start : token.end]
            return StringLiteral(token.text, written, token.span)
        if token.kind in (INTEGER, FLOAT, "-"):
            return self._number()
        if token.kind is IDENT and token.text in ("true", "false"):
            self.advance()
            return BoolLiteral(token.text == "true", token.span)
        if token.kind is IDENT and token.text in ("date", "datetime"):
            value = self.expression()
            if isinstance(value, DateLiteral | DateTimeLiteral):
                return value
        if token.kind == "[":
            with self.nested():
                return self._list()
        self.fail(f"expected a value, found {describe(token)}", remedy=NO_NULL if token.text == "null" else None)

    def _number(self) -> IntegerLiteral | FloatLiteral:
        start = self.token
        negative = self.accept("-") is not None
        token = self.token
        sign = -1 if negative else 1
        if token.kind is INTEGER:
            self.advance()
            value = sign * self.integer_value(token, I64_MAX + negative)
            return IntegerLiteral(value, start.span.to(token.span))
        token = self.expect(FLOAT, "a number")
        written = ("-" if negative else "") + token.text
        return FloatLiteral(sign * self.float_value(token), written, start.span.to(token.span))

    def _list(self) -> ListLiteral:
        start = self.advance()
        items: list[Literal] = []
        if not self.accept("]"):
            items.append(self._literal())
            while self.accept(","):
                items.append(self._literal())
            self.expect("]", "`,` or `]`")
        return ListLiteral(tuple(items), start.span.to(self.last))
