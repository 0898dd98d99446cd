"""Type checking of `match`: clauses in, a pattern of bound variables, steps and conditions out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from functools import partial

from omnigraph.lang.diagnostics import Remedy, suggest
from omnigraph.lang.query.ir import Direction
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
from omnigraph.lang.query.syntax.expressions import (
    WORD_OPERATORS,
    Comparison,
    Expression,
    NullTest,
    PropertyRef,
    Variable,
    Whole,
)
from omnigraph.lang.query.syntax.parts import of_properties, parts_of
from omnigraph.lang.query.typecheck.fits import check_match
from omnigraph.lang.query.typecheck.operands import check_condition, check_text_call, unknown_variable
from omnigraph.lang.query.typecheck.scope import Bound, Context, Scope
from omnigraph.lang.schema.catalog import EdgeType, NodeType, united
from omnigraph.records import dataclass

Condition = Comparison | NullTest | TextPredicate | Requirement


@dataclass(frozen=True, slots=True)
class Step:
    """A traversal whose edge and direction are known. Anonymous ends have names of their own by now."""

    edge: EdgeType
    direction: Direction
    source: str
    target: str
    source_type: str
    target_type: str
    min_hops: int
    max_hops: int
    edge_variable: str | None


@dataclass(slots=True)
class Pattern:
    """One block of clauses, resolved.

    ``introduced`` lists the node variables first seen here with their types; ``matches`` the conditions that
    bindings put on a variable, also on one from outside.
    """

    scope: Scope
    introduced: dict[str, str] = field(default_factory=dict)
    bound: dict[str, None] = field(default_factory=dict)
    matches: dict[str, list[tuple[NodeType, PropertyMatch]]] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    edge_variables: dict[str, str] = field(default_factory=dict)
    conditions: list[Condition] = field(default_factory=list)
    optionals: list[Pattern] = field(default_factory=list)
    negations: list[Pattern] = field(default_factory=list)
    outer: tuple[str, ...] = ()
    demanded: bool = False
    """Of a block that rows are checked by: must there be a match, or must there be none?"""


def check_match_block(clauses: tuple[Clause, ...], context: Context) -> Pattern:
    """Check the clauses of `match`; the pattern's scope is what `return` and `order` see."""
    return _PatternChecker(context).block(clauses, Scope())


class _PatternChecker:
    def __init__(self, context: Context) -> None:
        self.context = context
        self.anonymous = 0

    def block(self, clauses: tuple[Clause, ...], scope: Scope) -> Pattern:
        pattern = Pattern(scope)
        for written in clauses:
            clause = self._understood(written, scope)
            match clause:
                case Binding():
                    self._binding(clause, scope, pattern)
                case Traversal():
                    self._traversal(clause, scope, pattern)
                case Comparison() | NullTest():
                    check_condition(clause, scope, self.context)
                    pattern.conditions.append(clause)
                case Requirement(condition):
                    check_condition(condition, scope, self.context)
                    pattern.conditions.append(clause)
                case TextPredicate():
                    check_text_call(clause.call, scope, self.context)
                    pattern.conditions.append(clause)
                case Negation() | Existence():
                    inner = self.block(clause.clauses, Scope(scope))
                    inner.outer = self._outer_variables(clause.clauses, scope)
                    inner.demanded = isinstance(clause, Existence)
                    if not inner.outer:
                        self.context.report(
                            "T9",
                            f"this `{'exists' if inner.demanded else 'not'}` mentions no variable from outside",
                            clause.span,
                            "it would keep all rows or none; use a variable bound before it",
                        )
                    pattern.negations.append(inner)
                case OptionalBlock():
                    pattern.optionals.append(self._optional(clause, scope))
        return pattern

    def _understood(self, clause: Clause, scope: Scope) -> Clause:
        """A traversal from a parameter over `contains`, `starts_with` or `in` is a comparison of two values."""
        if not isinstance(clause, Traversal) or clause.hops or clause.undirected or clause.edge_variable:
            return clause
        source = clause.source
        if source.name not in self.context.parameters or scope.find(source.name) is not None:
            return clause
        for operator in WORD_OPERATORS:
            if clause.edge.text == operator and not clause.others:
                return Comparison(source, operator, clause.target, clause.span)
        return clause

    def _optional(self, clause: OptionalBlock, scope: Scope) -> Pattern:
        inner_scope = Scope(scope)
        inner = self.block(clause.clauses, inner_scope)
        inner.outer = self._outer_variables(clause.clauses, scope)
        if not inner.outer:
            self.context.report(
                "Q115",
                "this `optional` shares no variable with the clauses around it",
                clause.span,
                "start it from a variable bound before it",
            )
        for name, bound in inner_scope.own.items():
            scope.own[name] = replace(bound, nullable=True)
        return inner

    def _outer_variables(self, clauses: tuple[Clause, ...], outer: Scope) -> tuple[str, ...]:
        """The outer variables that the direct clauses of a block mention."""
        found = {name: None for clause in clauses for name in _mentioned(clause) if outer.find(name)}
        return tuple(found)

    def _binding(self, clause: Binding, scope: Scope, pattern: Pattern) -> None:
        variable = clause.variable
        node = self.context.catalog.nodes.get(clause.type_name.text)
        if node is None:
            self._unknown_node_type(clause)
        name = self._fresh_name(variable)
        present = scope.find(name)
        if present is None:
            self._introduce(name, node, scope, pattern)
            pattern.bound[name] = None
        elif isinstance(present.type, EdgeType):
            self.context.report(
                "T23", f"`${variable.name}` is an edge variable and cannot be a node", variable.span
            )
        elif node is not None and present.type is not None and present.type.name != node.name:
            self.context.report(
                "Q104",
                f"`${variable.name}` is {present.type.name} already and cannot also be {node.name}",
                variable.span,
                "use another variable",
            )
        elif node is not None and present.type is None:
            self._introduce(name, node, scope, pattern)
            pattern.bound[name] = None
        elif name in pattern.introduced:
            pattern.bound[name] = None
        if node is None:
            return
        for match in clause.matches:
            if isinstance(match, Requirement):
                condition = of_properties(match.condition, Variable(name, variable.span))
                check_condition(condition, scope, self.context)
                pattern.conditions.append(Requirement(condition, match.span))
                continue
            prop = node.properties.get(match.property.text)
            if prop is None:
                self.context.report(
                    "T2",
                    f"node {node.name} has no property `{match.property}`",
                    match.property.span,
                    partial(suggest, match.property.text, node.properties),
                )
                continue
            if any(self._not_a_parameter(part, scope) for part in parts_of(match.value)):
                continue
            check_match(node.name, prop, match.value, scope, self.context)
            pattern.matches.setdefault(name, []).append((node, match))

    def _not_a_parameter(self, value: Expression, scope: Scope) -> bool:
        """Report a variable in an inline match that is no parameter."""
        if not isinstance(value, Variable) or value.name in self.context.parameters:
            return False
        if scope.find(value.name) is None:
            unknown_variable(value, scope, self.context)
        else:
            self.context.report(
                "Q103",
                f"`${value.name}` is a bound variable, not a parameter",
                value.span,
                f"compare properties in a clause of their own: `$x.p = ${value.name}.q`",
            )
        return True

    def _unknown_node_type(self, clause: Binding) -> None:
        name = clause.type_name.text
        catalog = self.context.catalog
        remedy: Remedy = partial(suggest, name, catalog.nodes)
        if name in catalog.interfaces:
            remedy = "it is an interface; bind a node type that implements it"
        elif name in catalog.edges:
            remedy = f"it is an edge; write `$a {name[0].lower() + name[1:]} $b`"
        self.context.report("T1", f"unknown node type `{name}`", clause.type_name.span, remedy)

    def _introduce(self, name: str, node: NodeType | None, scope: Scope, pattern: Pattern) -> None:
        scope.own[name] = Bound(node)
        if node is not None:
            pattern.introduced[name] = node.name

    def _fresh_name(self, variable: Variable) -> str:
        """The variable's name; each anonymous one gets a hidden name of its own."""
        if not variable.anonymous:
            return variable.name
        self.anonymous += 1
        return f"_#{self.anonymous}"

    def _traversal(self, clause: Traversal, scope: Scope, pattern: Pattern) -> None:
        context = self.context
        edge = self._followed(clause)
        hops = self._hops(clause)
        if edge is not None and clause.undirected and not edge.symmetric:
            context.report(
                "T22",
                f"`<{clause.edge}>` needs an edge between nodes of one type, "
                f"and {edge.name} leads from {edge.source} to {edge.target}",
                clause.edge.span,
                "leave out `<` and `>`; the direction follows from the types",
            )
        source, target = self._end(clause.source, scope), self._end(clause.target, scope)
        if edge is None or source is None or target is None:
            for name, end in ((source, clause.source), (target, clause.target)):
                if name is not None and scope.find(name) is None and not end.anonymous:
                    scope.own[name] = Bound(None)
            self._edge_variable(clause, edge, scope, pattern)
            return
        direction = self._direction(clause, edge, scope.find(source), scope.find(target))
        reverse = direction is Direction.IN
        source_type, target_type = (edge.target, edge.source) if reverse else (edge.source, edge.target)
        for name, type_name, end in ((source, source_type, clause.source), (target, target_type, clause.target)):
            self._bind_end(name, type_name, end, edge, scope, pattern)
        edge_variable = self._edge_variable(clause, edge, scope, pattern)
        pattern.steps.append(Step(edge, direction, source, target, source_type, target_type, *hops, edge_variable))

    def _followed(self, clause: Traversal) -> EdgeType | None:
        """The edge type of a traversal, several as one; None after reporting why there is none."""
        context, found = self.context, list[EdgeType]()
        for name in clause.edges:
            edge = context.catalog.edge(name.text)
            if edge is None:
                remedy = partial(suggest, name.text, context.catalog.edge_spellings)
                context.report("T4", f"unknown edge `{name}`", name.span, remedy)
                continue
            found.append(edge)
            if (edge.source, edge.target) != (found[0].source, found[0].target):
                context.report(
                    "T27",
                    f"one hop follows edges between the same types, and {edge.name} leads from {edge.source} to "
                    f"{edge.target}, {found[0].name} from {found[0].source} to {found[0].target}",
                    name.span,
                    "match them one by one, and unite what they return: `… union …`",
                )
                return None
        return united(found) if len(found) == len(clause.edges) else None

    def _hops(self, clause: Traversal) -> tuple[int, int]:
        hops = clause.hops
        if hops is None:
            return 1, 1
        problem = None
        if hops.maximum is None:
            problem = "a traversal needs a largest number of hops"
        elif hops.minimum < 1:
            problem = "the least number of hops is 1"
        elif hops.maximum < hops.minimum:
            problem = f"the largest number of hops, {hops.maximum}, is below the least, {hops.minimum}"
        if problem:
            remedy = f"write `{{{max(1, hops.minimum)},{max(1, hops.minimum, hops.maximum or 5)}}}`"
            self.context.report("T15", problem, hops.span, remedy)
        if clause.edge_variable is not None and not clause.edge_variable.anonymous and hops.maximum != 1:
            self.context.report(
                "T23",
                f"edge variable `${clause.edge_variable.name}` needs a single hop",
                clause.edge_variable.span,
                "leave out the hops or the edge variable",
            )
        return hops.minimum, hops.maximum or hops.minimum

    def _end(self, variable: Variable, scope: Scope) -> str | None:
        """The name of an endpoint, or None after reporting that it cannot be one."""
        bound = scope.find(variable.name)
        if bound is not None and isinstance(bound.type, EdgeType):
            self.context.report(
                "T23", f"edge variable `${variable.name}` cannot be an end of a traversal", variable.span
            )
            return None
        return self._fresh_name(variable)

    def _direction(
        self, clause: Traversal, edge: EdgeType, source: Bound | None, target: Bound | None
    ) -> Direction:
        """Out or in, by the type of whichever end is bound; the source decides if both are."""
        if edge.symmetric:
            return Direction.BOTH if clause.undirected else Direction.OUT
        if source is not None and source.type is not None:
            return Direction.IN if source.type.name == edge.target else Direction.OUT
        if target is not None and target.type is not None:
            return Direction.IN if target.type.name == edge.source else Direction.OUT
        return Direction.OUT

    def _bind_end(
        self, name: str, type_name: str, end: Variable, edge: EdgeType, scope: Scope, pattern: Pattern
    ) -> None:
        present = scope.find(name)
        if present is None:
            self._introduce(name, self.context.catalog.nodes[type_name], scope, pattern)
        elif present.type is not None and present.type.name != type_name:
            self.context.report(
                "T5",
                f"`${end.name}` is {present.type.name}, but {edge.name} leads from {edge.source} to {edge.target}",
                end.span,
            )

    def _edge_variable(
        self, clause: Traversal, edge: EdgeType | None, scope: Scope, pattern: Pattern
    ) -> str | None:
        variable = clause.edge_variable
        if variable is None or variable.anonymous:
            return None
        if scope.find(variable.name) is not None:
            self.context.report(
                "T23",
                f"edge variable `${variable.name}` needs a name of its own",
                variable.span,
                "another variable has this name",
            )
            return None
        scope.own[variable.name] = Bound(edge)
        if edge is not None:
            pattern.edge_variables[variable.name] = edge.name
        return variable.name


def _mentioned(clause: Clause) -> Iterator[str]:
    """The names of variables that a clause mentions itself; nested blocks do not count."""
    match clause:
        case Binding(variable, _, matches):
            yield variable.name
            for match in matches:
                if isinstance(match, Requirement):
                    yield from mentioned_in(match.condition)
        case Traversal():
            yield clause.source.name
            yield clause.target.name
        case Comparison() | NullTest():
            yield from mentioned_in(clause)
        case TextPredicate(call):
            yield from mentioned_in(call)
        case Requirement(condition):
            yield from mentioned_in(condition)
        case OptionalBlock() | Negation() | Existence():
            return


def mentioned_in(expression: Expression) -> Iterator[str]:
    """The names of variables in an expression."""
    for part in parts_of(expression):
        match part:
            case Variable(name):
                yield name
            case PropertyRef(variable) | Whole(variable):
                yield variable.name
