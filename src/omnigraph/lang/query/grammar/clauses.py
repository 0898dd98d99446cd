"""Parsing the clauses of `match`, `not` and `optional`."""

from __future__ import annotations

from omnigraph.lang.parsing import SyntaxProblem, describe, shorten
from omnigraph.lang.query.functions.table import FUNCTIONS
from omnigraph.lang.query.grammar.expressions import ExpressionParser
from omnigraph.lang.query.syntax.clauses import (
    Binding,
    Clause,
    Existence,
    Hops,
    Negation,
    OptionalBlock,
    PropertyMatch,
    Requirement,
    TextPredicate,
    Traversal,
)
from omnigraph.lang.query.syntax.expressions import (
    COMPUTED,
    TEXT_PREDICATES,
    WORD_OPERATORS,
    AliasRef,
    Comparison,
    Expression,
    NullTest,
    TextCall,
    Variable,
)
from omnigraph.lang.source import Name
from omnigraph.lang.tokens import END, IDENT, INTEGER, STRING, TYPE_NAME, VARIABLE

_U32_MAX = 2**32 - 1
_LIKE = "write `contains`, `starts_with`, `ends_with(…)`, `icontains(…)` or `regex_match(…)`"
_FOREIGN = {
    "between": "write two comparisons: `$x.p >= 1 and $x.p <= 2`",
    "like": _LIKE,
    "ilike": _LIKE,
    "matches": _LIKE,
    "where": "conditions stand in `match`, beside the other clauses",
}
"""Words of other languages, and what is written here."""


class ClauseParser(ExpressionParser):
    """A cursor that can read a block of clauses."""

    def clause_block(self, word: str) -> tuple[Clause, ...]:
        """Read `{ clause … }`; a bad clause does not hide the next ones."""
        self.expect("{", "`{`")
        clauses: list[Clause] = []
        failed = False
        with self.nested():
            while not self.accept("}"):
                if self.at_block_end():
                    self.fail(f"the `{word}` block is never closed", remedy="close it with `}`")
                begun = self.at
                try:
                    clauses.append(self._clause())
                except SyntaxProblem:
                    failed = True
                    self._skip_to_clause(begun)
        if not clauses and not failed:
            self.fail(f"`{word} {{ }}` is empty", span=self.last, remedy="it needs at least one clause")
        return tuple(clauses)

    def at_block_end(self) -> bool:
        """Is there certainly no further clause here?"""
        return self.token.kind is END

    def _skip_to_clause(self, begun: int) -> None:
        """Go on at the next line that may begin a clause, or at the end of the block."""
        passed = [token.kind for token in self.tokens[begun : self.at]]
        level = max(0, passed.count("{") - passed.count("}"))
        while not self.at_block_end():
            kind = self.token.kind
            if kind == "}":
                if level == 0:
                    return
                level -= 1
            elif kind == "{":
                level += 1
            elif self.at_word("return") and (self.peek().kind == "{" or self.peek().text == "distinct"):
                raise SyntaxProblem
            elif self.at > begun and self.starts_line(self.at) and self._may_begin_clause():
                return
            self.advance()

    def _may_begin_clause(self) -> bool:
        return self.token.kind is VARIABLE or self.at_word(
            "not", "exists", "optional", *TEXT_PREDICATES, *FUNCTIONS
        )

    def _clause(self) -> Clause:
        start = self.token
        if start.kind is IDENT and self.peek().kind == "{":
            if start.text == "not":
                self.advance()
                return Negation(self.clause_block("not"), start.span.to(self.last))
            if start.text == "exists":
                self.advance()
                return Existence(self.clause_block("exists"), start.span.to(self.last))
            if start.text == "optional":
                self.advance()
                return OptionalBlock(self.clause_block("optional"), start.span.to(self.last))
        if self.at_word("not") and self._negates_a_traversal():
            self.fail(
                "`not` in front of a traversal",
                remedy=f"write it as a block: `not {{ ${self.peek().text} … ${self.peek(3).text} }}`",
            )
        if start.kind is VARIABLE:
            after = self.peek()
            if after.kind == ":":
                return self._binding()
            if after.kind is VARIABLE or self._at_traversal():
                return self._traversal()
            if after.kind is TYPE_NAME:
                self.advance()
                spelled = after.text[0].lower() + after.text[1:]
                self.fail(
                    f"expected an edge or a comparison, found {describe(after)}",
                    remedy=f"edges are written with a lower-case first letter: `{shorten(spelled)}`",
                )
        return self._condition()

    def _negates_a_traversal(self) -> bool:
        """`not $a edge $b`, where the word is none of an operator."""
        edge = self.peek(2)
        ends = self.peek().kind is VARIABLE and self.peek(3).kind is VARIABLE
        return ends and edge.kind is IDENT and edge.text not in ("and", "or", "is", "not", *WORD_OPERATORS)

    def _at_traversal(self) -> bool:
        """`$a edge $b`, `$a edge{…} $b`, `$a edge|… $b` or `$a <edge> …`: a bare variable and then an edge.

        The word operators are edges only between two bare variables, and of these the type checker knows better.
        """
        after, behind = self.peek(), self.peek(2)
        if after.kind is IDENT and behind.kind == "|":
            return True
        if after.kind is IDENT and after.text in WORD_OPERATORS:
            is_value = behind.kind is VARIABLE and self.peek(3).kind == "."
            return not is_value and (behind.kind is VARIABLE or not _may_begin_expression(behind.kind))
        if after.kind is IDENT and after.text != "not":
            return behind.kind in (VARIABLE, "{") or (after.text != "is" and behind.kind != "(")
        return after.kind == "<" and behind.kind in (IDENT, TYPE_NAME) and self.peek(3).kind in (">", "|")

    def _binding(self) -> Binding:
        variable = self.variable("a variable")
        self.advance()
        token = self.token
        if token.kind is IDENT:
            self.fail(
                f"expected a node type, found {describe(token)}",
                remedy="node types start with an upper-case letter",
            )
        self.expect(TYPE_NAME, "a node type")
        matches: list[PropertyMatch | Requirement] = []
        if self.accept("{"):
            if self.token.kind == "}":
                span = self.advance().span
                remedy = f"write `${variable.name}: {token.text}` without them"
                self.fail("empty braces", span=span, remedy=remedy)
            matches.append(self._entry())
            while self.accept(",") and self.token.kind != "}":
                matches.append(self._entry())
            self.expect("}", "`,` or `}`")
        return Binding(variable, Name(token.text, token.span), tuple(matches), variable.span.to(self.last))

    def _entry(self) -> PropertyMatch | Requirement:
        """`p: value`, or a condition on properties, which stand alone."""
        start = self.token
        if self.peek().kind != ":" and (start.kind is not IDENT or self.peek().kind not in (",", "}", STRING)):
            condition = self.alone()
            if not isinstance(condition, (*COMPUTED, TextCall)):
                self.fail(
                    "expected `property: value` or a condition",
                    span=start.span.to(self.last),
                    remedy="write `age: 30` or `age > 30`",
                )
            return Requirement(condition, start.span.to(self.last))
        name = self.expect(IDENT, "a property's name")
        self.expect(":", "`:` and a value")
        start = self.token
        value = self.require_value(self.alone(), start)
        return PropertyMatch(Name(name.text, name.span), value, name.span.to(self.last))

    def _traversal(self) -> Traversal:
        source = self.variable("a variable")
        edge_variable = None
        if self.token.kind is VARIABLE:
            edge_variable = self.variable("an edge variable")
            self.expect(":", f"`:` and the edge that `${edge_variable.name}` stands for")
        undirected = self.accept("<") is not None
        edge, others = self._edge(), list[Name]()
        while self.accept("|"):
            others.append(self._edge())
        if undirected:
            self.expect(">", "`>`")
        hops = self._hops() if self.token.kind == "{" else None
        target = self._target(edge.text)
        return Traversal(
            source,
            edge,
            target,
            edge_variable,
            undirected,
            hops,
            tuple(others),
            source.span.to(self.last),
        )

    def _edge(self) -> Name:
        if self.token.kind is TYPE_NAME:
            spelled = self.token.text[0].lower() + self.token.text[1:]
            self.fail(
                f"expected an edge, found {describe(self.token)}",
                remedy=f"edges are written with a lower-case first letter: `{shorten(spelled)}`",
            )
        edge = self.expect(IDENT, "an edge")
        return Name(edge.text, edge.span)

    def _target(self, edge: str) -> Variable:
        target = self.variable(f"the variable that `{shorten(edge)}` leads to")
        if self.token.kind == "." and self.token.start == target.span.end:
            self.fail(
                "a traversal ends in a variable, not in a property",
                remedy=f"compare the property in a clause of its own: `${target.name}.…`",
            )
        return target

    def _hops(self) -> Hops:
        start = self.advance()
        minimum, _ = self.unsigned("the least number of hops", _U32_MAX)
        if self.token.kind == "}":
            span = start.span.to(self.advance().span)
            remedy = f"write `{{{minimum},{minimum}}}` or `{{1,{minimum}}}`"
            self.fail("hop bounds have two sides", span=span, remedy=remedy)
        self.expect(",", "`,`")
        maximum = None
        if self.token.kind is INTEGER:
            maximum, _ = self.unsigned("the largest number of hops", _U32_MAX)
        self.expect("}", "`}`")
        return Hops(minimum, maximum, start.span.to(self.last))

    def _condition(self) -> Clause:
        start = self.token
        if not _may_begin_expression(start.kind):
            self.fail(f"expected a clause, found {describe(start)}")
        self._refuse_connective()
        found = self.loosely()
        if isinstance(found, Comparison | NullTest):
            return found
        if isinstance(found, TextCall):
            return TextPredicate(found, start.span.to(self.last))
        if not isinstance(found, COMPUTED):
            self._not_a_clause(found)
        return Requirement(found, start.span.to(self.last))

    def _refuse_connective(self) -> None:
        if self.at_word("and", "or"):
            self.fail(
                f"`{self.token.text}` stands between two conditions",
                remedy="clauses standing side by side all have to hold",
            )

    def _not_a_clause(self, left: Expression) -> None:
        self._refuse_connective()
        remedy = "compare it: `=`, `!=`, `<`, `<=`, `>`, `>=`, `contains`, `starts_with`, `in`, `is null`"
        if isinstance(left, AliasRef) and left.name in _FOREIGN:
            remedy = _FOREIGN[left.name]
        elif self.token.text.lower() in _FOREIGN:
            remedy = _FOREIGN[self.token.text.lower()]
        elif isinstance(left, Variable):
            remedy = f"write `${left.name}: Type`, `${left.name} edge $other` or `${left.name}.property = …`"
        self.fail(f"expected a comparison, found {describe(self.token)}", remedy=remedy)


def _may_begin_expression(kind: str) -> bool:
    return kind not in ("{", "}", ")", "]", ":", ",", ".", "@", "?", "<", ">", "=", "..", "->", END)
