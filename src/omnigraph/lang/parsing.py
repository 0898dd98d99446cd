"""What both parsers are made of: a cursor over tokens that reports, recovers and never nests too deep."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NoReturn

from omnigraph.lang.diagnostics import Diagnostics
from omnigraph.lang.source import MAX_DEPTH, Span
from omnigraph.lang.tokens import (
    END,
    FLOAT,
    IDENT,
    INTEGER,
    INVALID,
    STRING,
    TYPE_NAME,
    VARIABLE,
    Token,
    lex,
)

I64_MAX: Final = 2**63 - 1
_LONGEST_FLOAT: Final = 400


class SyntaxProblem(Exception):
    """Raised after a problem was reported, to unwind to the nearest place where parsing can go on."""


class Cursor:
    """A position in the tokens of one text."""

    def __init__(self, diagnostics: Diagnostics) -> None:
        self.diagnostics = diagnostics
        self.lexed = lex(diagnostics)
        self.tokens = self.lexed.tokens
        self.at = 0
        self.depth = 0

    @property
    def token(self) -> Token:
        """The token the cursor stands on."""
        return self.tokens[self.at]

    def peek(self, ahead: int = 1) -> Token:
        """A token further on; END for all that lies behind the text."""
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)]

    @property
    def last(self) -> Span:
        """The span of the token just passed."""
        return self.tokens[max(0, self.at - 1)].span

    def advance(self) -> Token:
        """Step over the current token and return it."""
        token = self.tokens[self.at]
        if token.kind is not END:
            self.at += 1
        return token

    def accept(self, kind: str) -> Token | None:
        """Step over the token if it is of this kind."""
        if self.tokens[self.at].kind == kind:
            return self.advance()
        return None

    def at_word(self, *words: str) -> bool:
        """Does the cursor stand on one of these keywords? Keywords are ordinary names elsewhere."""
        token = self.tokens[self.at]
        return token.kind is IDENT and token.text in words

    def accept_word(self, word: str) -> Token | None:
        """Step over a keyword if it is there."""
        return self.advance() if self.at_word(word) else None

    def expect(self, kind: str, wanted: str) -> Token:
        """Step over a token of this kind, or report that ``wanted`` was expected."""
        if self.tokens[self.at].kind == kind:
            return self.advance()
        self.fail(f"expected {wanted}, found {describe(self.token)}")

    def expect_word(self, word: str, remedy: str | None = None) -> Token:
        """Step over a keyword, or report that it is missing."""
        if self.at_word(word):
            return self.advance()
        self.fail(f"expected `{word}`, found {describe(self.token)}", remedy=remedy)

    def fail(
        self, message: str, *, span: Span | None = None, remedy: str | None = None, code: str = "P001"
    ) -> NoReturn:
        """Report a syntax problem and unwind; what is no token at all was reported by the lexer."""
        if span is None and self.token.kind is INVALID:
            raise SyntaxProblem
        self.diagnostics.report(code, "parse error", message, span or self.token.span, remedy)
        raise SyntaxProblem

    @contextmanager
    def nested(self) -> Iterator[None]:
        """Count one level of nesting; too many are refused while the stack is still sound."""
        self.depth += 1
        try:
            if self.depth > MAX_DEPTH:
                self.fail(
                    f"nested more than {MAX_DEPTH} levels deep",
                    code="P004",
                    remedy="split the query, or flatten the expression",
                )
            yield
        finally:
            self.depth -= 1

    def starts_line(self, index: int) -> bool:
        """Is the token the first one on its line?"""
        if index == 0:
            return True
        text = self.diagnostics.source.text
        return "\n" in text[self.tokens[index - 1].end : self.tokens[index].start]

    def unsigned(self, wanted: str, maximum: int) -> tuple[int, Span]:
        """An unsigned integer of at most ``maximum``."""
        token = self.expect(INTEGER, wanted)
        return self.integer_value(token, maximum), token.span

    def integer_value(self, token: Token, maximum: int) -> int:
        """The value of an integer token, refused if too large or glued to a word."""
        self.refuse_glued()
        digits = token.text.lstrip("0") or "0"
        if len(digits) > 20 or int(digits) > maximum:
            self.fail(
                f"{shorten(token.text)} is too large; the limit here is {maximum}",
                span=token.span,
                code="P003",
            )
        return int(digits)

    def float_value(self, token: Token) -> float:
        """The value of a float token, refused if no 64-bit float holds it."""
        self.refuse_glued()
        if len(token.text) > _LONGEST_FLOAT or math.isinf(value := float(token.text)):
            self.fail(f"{shorten(token.text)} is too large for a float", span=token.span, code="P003")
        return value

    def refuse_glued(self) -> None:
        """Refuse a number that runs straight into a word, such as `12abc`."""
        after = self.token
        if after.kind in (IDENT, TYPE_NAME) and after.start == self.last.end:
            self.fail(
                f"a number runs into the word `{shorten(after.text)}`",
                span=after.span,
                remedy="put a space between them",
            )


def shorten(text: str, limit: int = 40) -> str:
    """A text short enough for a message."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def describe(token: Token) -> str:
    """A token as a person would name it."""
    text = shorten(token.text)
    if token.kind is END:
        return "the end of the file"
    if token.kind is VARIABLE:
        return f"the variable `${text}`"
    if token.kind is STRING:
        return "a string"
    if token.kind in (INTEGER, FLOAT):
        return f"the number `{text}`"
    return f"`{text}`"
