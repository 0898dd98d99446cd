"""Parsing expressions: `or`, `and`, `not`, comparisons, sums, products and signs, from the loosest on."""

from __future__ import annotations

from typing import Final

from omnigraph.lang.query.grammar.primaries import PrimaryParser
from omnigraph.lang.query.syntax.expressions import (
    LITERALS,
    NO_NULL,
    PRODUCTS,
    SUMS,
    SYMBOLS,
    WORD_OPERATORS,
    AliasRef,
    Arithmetic,
    ArithmeticOperator,
    Comparison,
    ComparisonOperator,
    Connected,
    Connective,
    Expression,
    Minus,
    Not,
    Now,
    NullTest,
    PropertyRef,
    Variable,
)
from omnigraph.lang.query.syntax.parts import parts_of
from omnigraph.lang.source import Span
from omnigraph.lang.tokens import FLOAT, IDENT, INTEGER, STRING, VARIABLE, Token

MAX_OPERATORS: Final = 100
"""How many signs and operators of arithmetic one expression may have."""


class ExpressionParser(PrimaryParser):
    """A cursor that can read one expression."""

    loose = -1
    """The depth at which items stand side by side without commas, so that a minus may begin the next one."""
    operators = 0

    def loosely(self) -> Expression:
        """Read an expression behind which another one may follow without a comma."""
        before, self.loose = self.loose, self.depth
        try:
            return self.alone()
        finally:
            self.loose = before

    def alone(self) -> Expression:
        """Read an expression that is no part of another one."""
        self.operators = 0
        return self.expression()

    def expression(self) -> Expression:
        return self._connected("or")

    def _connected(self, connective: Connective) -> Expression:
        start = self.token
        operands = [self._joined(connective)]
        while self.accept_word(connective):
            operands.append(self._joined(connective))
        return operands[0] if len(operands) == 1 else Connected(connective, tuple(operands), self._since(start))

    def _joined(self, connective: Connective) -> Expression:
        return self._connected("and") if connective == "or" else self._negated()

    def _negated(self) -> Expression:
        start = self.token
        if self.at_word("not") and self._may_be_negated(self.peek()):
            with self.nested():
                self.advance()
                return Not(self._negated(), self._since(start))
        return self._comparison()

    def _may_be_negated(self, after: Token) -> bool:
        """Does a condition begin behind `not`? Otherwise it is the name of an alias."""
        if after.kind is IDENT:
            return after.text not in ("asc", "desc", "is", "as", "and", "or", *WORD_OPERATORS)
        return after.kind in (VARIABLE, STRING, INTEGER, FLOAT, "(", "[", "-")

    def _comparison(self) -> Expression:
        start = self.token
        left = self._sum()
        if self.accept_word("is"):
            negated = self.accept_word("not") is not None
            self.expect_word("null", "write `is null` or `is not null`")
            return NullTest(left, negated, self._since(start))
        if self.at_word("not") and self.peek().text in WORD_OPERATORS:
            self.advance()
            operator = self._operator()
            assert operator is not None  # noqa: S101  the next word is one
            return Not(Comparison(left, operator, self._sum(), self._since(start)), self._since(start))
        operator = self._operator()
        if operator is None:
            return left
        return Comparison(left, operator, self._sum(), self._since(start))

    def _operator(self) -> ComparisonOperator | None:
        for symbol in SYMBOLS:
            if self.accept(symbol):
                return symbol
        for word in WORD_OPERATORS:
            if self.accept_word(word):
                return word
        return None

    def _sum(self) -> Expression:
        start = self.token
        left = self._product()
        while (operator := self._arithmetic(SUMS)) is not None:
            left = Arithmetic(operator, left, self._product(), self._since(start))
        return left

    def _product(self) -> Expression:
        start = self.token
        left = self._signed()
        while (operator := self._arithmetic(PRODUCTS)) is not None:
            left = Arithmetic(operator, left, self._signed(), self._since(start))
        return left

    def _arithmetic(self, operators: tuple[ArithmeticOperator, ...]) -> ArithmeticOperator | None:
        if self.token.kind == "-" and self._begins_item():
            return None
        for operator in operators:
            if self.accept(operator):
                self._one_more()
                return operator
        return None

    def _begins_item(self) -> bool:
        """Does a minus begin the next clause or column? It is the first on its line, or it stands apart from what
        is before it and touches a number."""
        if self.depth != self.loose:
            return False
        after = self.peek()
        touches = after.kind in (INTEGER, FLOAT) and after.start == self.token.end
        return self.starts_line(self.at) or (touches and self.token.start > self.last.end)

    def _signed(self) -> Expression:
        start = self.token
        if start.kind != "-":
            return self.primary()
        if self.peek().kind in (INTEGER, FLOAT):
            return self.primary()
        with self.nested():
            self.advance()
            self._one_more()
            return Minus(self._signed(), self._since(start))

    def _one_more(self) -> None:
        self.operators += 1
        if self.operators > MAX_OPERATORS:
            self.fail(
                f"an expression with more than {MAX_OPERATORS} operators",
                span=self.last,
                code="P004",
                remedy="compute a part of it elsewhere, and pass it as a parameter",
            )

    def _since(self, start: Token) -> Span:
        return start.span.to(self.last)

    def require_value(self, value: Expression, start: Token) -> Expression:
        """Refuse a value that depends on a row."""
        if not any(isinstance(part, PropertyRef | AliasRef) for part in parts_of(value)):
            return value
        remedy = "compare two properties in a clause of their own: `$a.p = $b.p`"
        if isinstance(value, AliasRef):
            remedy = NO_NULL if value.name == "null" else f'a text is written in double quotes: `"{value.name}"`'
        self.fail("expected a literal, a parameter or `now()`", span=start.span.to(self.last), remedy=remedy)


def is_constant(expression: Expression) -> bool:
    """Is it a literal, a variable or `now()`?"""
    return isinstance(expression, (*LITERALS, Variable, Now))
