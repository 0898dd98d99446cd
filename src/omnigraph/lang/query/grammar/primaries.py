"""Parsing what expressions are made of: literals, properties, aggregates, calls and `case`."""

from __future__ import annotations

from abc import ABC, abstractmethod

from omnigraph.lang.diagnostics import suggest
from omnigraph.lang.parsing import I64_MAX, Cursor, describe, shorten
from omnigraph.lang.query.functions.signature import DURATIONS, Function
from omnigraph.lang.query.functions.table import FUNCTIONS
from omnigraph.lang.query.scores import ARMS, SCORES, Operand, ScoreFunction
from omnigraph.lang.query.syntax.expressions import (
    AGGREGATES,
    DISTINCT,
    NO_NULL,
    TEXT_PREDICATES,
    Aggregate,
    AggregateFunction,
    AliasRef,
    BoolLiteral,
    Branch,
    Case,
    DateLiteral,
    DateTimeLiteral,
    Duration,
    Everything,
    Expression,
    FloatLiteral,
    FunctionCall,
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
    Whole,
)
from omnigraph.lang.source import Name
from omnigraph.lang.tokens import FLOAT, IDENT, INTEGER, STRING, TYPE_NAME, VARIABLE, Token

_NAMES = (*AGGREGATES, *TEXT_PREDICATES, *SCORES, "now", "date", "datetime")
"""What is called by a name and is no row of the function table."""
_WORDS = frozenset({"and", "or", "not", "in", "is", "true", "false", "contains", "case", "exists", "optional"})
_OPERATORS = {"<>": "two values that differ are written `!=`", "==": "equality is written `=`"}
"""Operators of other languages, as two tokens, and what is written here."""


class PrimaryParser(Cursor, ABC):
    """A cursor that can read what stands between operators."""

    @abstractmethod
    def expression(self) -> Expression:
        """Read one expression, whatever it is; what may stand where is for the type checker."""

    def primary(self) -> Expression:
        """Read one expression that is not made by an operator, or one in parentheses."""
        token = self.token
        if token.kind is VARIABLE:
            return self._variable_or_property()
        if token.kind == "(":
            with self.nested():
                self.advance()
                inner = self.expression()
                self.expect(")", "`)`")
                return inner
        if self.at_word("case") and self.peek().text == "when":
            with self.nested():
                return self._case()
        if token.kind is IDENT and self.peek().kind == "(" and token.text not in ("true", "false"):
            with self.nested():
                return self._call()
        if token.kind is IDENT and token.text not in ("true", "false"):
            self.advance()
            return AliasRef(token.text, token.span)
        literal = self._literal()
        after = self.peek()
        is_call = after.kind == "(" and after.start == self.token.end
        is_duration = self.at_word(*DURATIONS) and not is_call
        if isinstance(literal, IntegerLiteral) and is_duration:
            word = self.advance().text
            return Duration(literal.value, DURATIONS[word], literal.span.to(self.last))
        return literal

    def _case(self) -> Case:
        start = self.advance()
        branches: list[Branch] = []
        while when := self.accept_word("when"):
            condition = self.expression()
            self.expect_word("then", "a branch reads `when condition then value`")
            branches.append(Branch(condition, self.expression(), when.span.to(self.last)))
        otherwise = self.expression() if self.accept_word("else") else None
        self.expect_word("end", "close it: `case when … then … else … end`")
        return Case(tuple(branches), otherwise, start.span.to(self.last))

    def variable(self, wanted: str) -> Variable:
        """Read `$name`."""
        token = self.expect(VARIABLE, wanted)
        return Variable(token.text, token.span)

    def _variable_or_property(self) -> Variable | PropertyRef | Whole:
        token = self.advance()
        variable = Variable(token.text, token.span)
        if not self.accept("."):
            return variable
        if star := self.accept("*"):
            return Whole(variable, token.span.to(star.span))
        name = self.expect(IDENT, f"a property of `${token.text}`")
        return PropertyRef(variable, Name(name.text, name.span), token.span.to(name.span))

    def _call(self) -> Expression:
        name = self.advance()
        function = name.text
        if function not in _NAMES and function not in FUNCTIONS:
            remedy = suggest(function, (*_NAMES, *FUNCTIONS))
            self.fail(f"unknown function `{shorten(function)}`", span=name.span, remedy=remedy)
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
                return self._aggregate(name, aggregate)
        for text_function in TEXT_PREDICATES:
            if function == text_function:
                return self._text_call(name, text_function)
        if function in FUNCTIONS:
            return self._function_call(name, FUNCTIONS[function])
        return self._score_call(name, SCORES[function])

    def _aggregate(self, name: Token, function: AggregateFunction) -> Aggregate:
        if function == "count" and (star := self.accept("*")):
            self.expect(")", "`)`")
            return Aggregate(function, Everything(star.span), span=name.span.to(self.last))
        if function not in DISTINCT and self.at_word("distinct") and self.peek().kind != ")":
            self.fail(
                f"`{function}` has no `distinct`; `count` and `collect` have it",
                remedy="leave it out, or make groups of equal values in a query of their own",
            )
        distinct = function in DISTINCT and self._accept_distinct()
        argument = self.expression()
        fraction = None
        if function == "percentile":
            self.expect(",", "`,` and a share such as 0.9")
            fraction = self.expression()
        self.expect(")", "`)`")
        return Aggregate(function, argument, distinct, fraction, name.span.to(self.last))

    def _function_call(self, name: Token, function: Function) -> FunctionCall:
        operands: list[Expression] = []
        if self.token.kind != ")":
            operands.append(self.expression())
            while self.accept(","):
                operands.append(self.expression())
        self.expect(")", "`,` or `)`")
        call = FunctionCall(function.name, tuple(operands), name.span.to(self.last))
        if len(operands) < function.least or (function.most is not None and len(operands) > function.most):
            self.fail(
                f"`{function.name}` takes other operands than these",
                span=call.span,
                remedy=f"write `{function.signature}`",
            )
        return call

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
            return self.number()
        if token.kind is IDENT and token.text in ("true", "false"):
            self.advance()
            return BoolLiteral(token.text == "true", token.span)
        if token.kind is IDENT and token.text in ("date", "datetime"):
            value = self.primary()
            if isinstance(value, DateLiteral | DateTimeLiteral):
                return value
        if token.kind == "[":
            with self.nested():
                return self._list()
        self.fail(f"expected a value, found {describe(token)}", remedy=self._as_written_here(token))

    def _as_written_here(self, token: Token) -> str | None:
        """What is written here in place of a word or an operator of another language."""
        before = self.tokens[self.at - 1].text if self.at else ""
        if token.text.lower() == "null":
            return NO_NULL
        if token.kind is TYPE_NAME and token.text.lower() in _WORDS:
            return f"words are written in small letters: `{token.text.lower()}`"
        return _OPERATORS.get(before + token.text)

    def number(self) -> IntegerLiteral | FloatLiteral:
        """Read a number, with its sign."""
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
