"""Query files as text in the one standard layout: queries, sections, clauses and statements."""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.errors import QueryError
from omnigraph.lang.comments import WIDTH, Block, Item, Line, Original, no_original, render
from omnigraph.lang.diagnostics import Diagnostics
from omnigraph.lang.query.grammar.parser import parse_queries
from omnigraph.lang.query.spelling import (
    spell_assignment,
    spell_expression,
    spell_ordering,
    spell_parameter,
    spell_projection,
    spell_traversal,
    spell_where,
)
from omnigraph.lang.query.syntax.clauses import (
    Binding,
    Clause,
    Existence,
    Negation,
    OptionalBlock,
    PropertyMatch,
    Requirement,
    TextPredicate,
    Traversal,
)
from omnigraph.lang.query.syntax.expressions import Comparison, NullTest
from omnigraph.lang.query.syntax.queries import (
    Assignment,
    Delete,
    Insert,
    MutationBody,
    QueryFileSyntax,
    QuerySyntax,
    ReadBody,
    Statement,
    Update,
)
from omnigraph.lang.source import Source, Span


def format_queries(text: str, name: str = "<query>") -> str:
    """A query file in the standard layout, comments included; QueryError if it does not parse."""
    source = Source(text, name)
    diagnostics = Diagnostics(source)
    tree, tokens = parse_queries(diagnostics)
    diagnostics.raise_if_any(QueryError)
    return _print(tree, Original(source, tokens))


def print_queries(tree: QueryFileSyntax) -> str:
    """A query file as text, from its tree alone."""
    return _print(tree, no_original())


def _print(tree: QueryFileSyntax, original: Original) -> str:
    printer = _Printer(original)
    return render((printer.query(query) for query in tree.queries), original)


class _Printer:
    """Trees to blocks and lines, each knowing its place in the original."""

    def __init__(self, original: Original) -> None:
        self.original = original

    def query(self, query: QuerySyntax) -> Block:
        if isinstance(query.body, MutationBody):
            items = tuple(self._statement(s) for s in query.body.statements)
            first = query.body.statements[0].span
        else:
            items = self._read(query.body)
            first = _span_of(items[0])
        head = _header(query, query.span.to(self.original.before(first)))
        return Block(head, items, Line("}", self.original.before(self.original.behind(query.span))))

    def _read(self, body: ReadBody) -> tuple[Item, ...]:
        sections = self._returned(body)
        for one in body.united:
            word = "union all" if body.repeats else "union"
            brace, first = 2 + len(word.split()), one.match[0].span
            sections.append(Line(word, self.original.before(first, brace).to(self.original.before(first, 3))))
            sections += self._returned(one)
        if body.order:
            sections.append(self._list("order {", [Line(spell_ordering(o), o.span) for o in body.order]))
        if body.limit is not None:
            last = body.limit if body.offset is None else body.offset
            offset = "" if body.offset is None else f" offset {spell_expression(body.offset)}"
            span = self.original.before(body.limit.span).to(last.span)
            sections.append(Line(f"limit {spell_expression(body.limit)}{offset}", span))
        return tuple(sections)

    def _returned(self, body: ReadBody) -> list[Item]:
        """`match`, `return` and `having`."""
        sections: list[Item] = [self._clauses("match", body.match, inline=False)]
        projections = [Line(spell_projection(p), p.span) for p in body.projections]
        sections.append(self._list("return distinct {" if body.distinct else "return {", projections))
        if body.having:
            lines = [Line(spell_expression(one.condition), one.span) for one in body.having]
            sections.append(self._conditions("having {", lines))
        return sections

    def _clauses(self, word: str, clauses: Sequence[Clause], *, inline: bool) -> Block:
        items = tuple(self._clause(clause) for clause in clauses)
        start = self.original.before(clauses[0].span, 2)
        close = self.original.behind(clauses[-1].span)
        brace = self.original.before(clauses[0].span)
        return Block(Line(f"{word} {{", start.to(brace)), items, Line("}", close), inline=inline)

    def _list(self, head: str, items: Sequence[Line]) -> Block:
        """The block of `return` or `order`."""
        start = self.original.before(items[0].span, len(head.split()))
        brace = self.original.before(items[0].span)
        close = self.original.closing(items[-1].span)
        return Block(Line(head, start.to(brace)), tuple(items), Line("}", close), ",", inline=True)

    def _conditions(self, head: str, items: Sequence[Line]) -> Block:
        """The block of `having`."""
        start, brace = self.original.before(items[0].span, 2), self.original.before(items[0].span)
        close = self.original.behind(items[-1].span)
        return Block(Line(head, start.to(brace)), tuple(items), Line("}", close), inline=len(items) == 1)

    def _clause(self, clause: Clause) -> Item:
        match clause:
            case Negation(clauses):
                return self._clauses("not", clauses, inline=len(clauses) == 1)
            case Existence(clauses):
                return self._clauses("exists", clauses, inline=len(clauses) == 1)
            case OptionalBlock(clauses):
                return self._clauses("optional", clauses, inline=len(clauses) == 1)
            case Binding(variable, type_name, matches):
                head = f"${variable.name}: {type_name}"
                if not matches:
                    return Line(head, clause.span)
                brace = self.original.behind(type_name.span)
                return self._assigned(f"{head} {{", clause.span.to(brace), matches, "}", clause.span)
            case Traversal():
                return Line(spell_traversal(clause), clause.span)
            case Comparison() | NullTest():
                return Line(spell_expression(clause), clause.span)
            case Requirement(condition):
                return Line(spell_expression(condition), clause.span)
            case TextPredicate(call):
                return Line(spell_expression(call), clause.span)

    def _statement(self, statement: Statement) -> Item:
        name, span = statement.type_name, statement.span
        match statement:
            case Insert(_, assignments):
                head = span.to(self.original.behind(name.span))
                return self._assigned(f"insert {name} {{", head, assignments, "}", span)
            case Update(_, assignments, where):
                head = span.to(self.original.behind(name.span, 2))
                tail = f"}} {spell_where(where)}"
                return self._assigned(f"update {name} set {{", head, assignments, tail, span)  # noqa: S608  not SQL
            case Delete(_, where):
                return Line(f"delete {name} {spell_where(where)}", span)

    def _assigned(
        self,
        head: str,
        head_span: Span,
        entries: Sequence[Assignment | PropertyMatch | Requirement],
        tail: str,
        span: Span,
    ) -> Block:
        """`p: value, …` between braces; the last line reaches to the end of the whole."""
        close = self.original.closing(entries[-1].span if entries else head_span)
        items = tuple(Line(spell_assignment(entry), entry.span) for entry in entries)
        return Block(Line(head, head_span), items, Line(tail, close.to(span)), ",", inline=True)


def _span_of(item: Item) -> Span:
    return item.span if isinstance(item, Line) else item.head.span


def _header(query: QuerySyntax, span: Span) -> Line:
    """The line in front of a query's body; too long for one, it has parameters and annotations one by one."""
    parameters = [spell_parameter(p) for p in query.parameters]
    annotations = [f"@{a.name}({spell_expression(a.value)})" for a in query.annotations]
    head = f"query {query.name}({', '.join(parameters)})"
    lines = [head]
    if len(head) > WIDTH and parameters:
        lines = [f"query {query.name}(", *(f"  {p}," for p in parameters[:-1]), f"  {parameters[-1]}", ")"]
    lines += [f"  {annotation}" for annotation in annotations]
    wrapped = (*lines[:-1], ") {") if lines[-1] == ")" else (*lines, "{")
    return Line(" ".join([head, *annotations, "{"]), span, wrapped)
