"""Type checking of `match`: clauses in, a pattern of bound variables, steps and conditions out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from omnigraph.lang.diagnostics import Remedy, suggest
from omnigraph.lang.query.ir import Direction
from omnigraph.lang.query.syntax import (
    WORD_OPERATORS,
    Binding,
    Clause,
    Comparison,
    Expression,
    ListLiteral,
    Negation,
    NullTest,
    OptionalBlock,
    PropertyMatch,
    PropertyRef,
    ScoreCall,
    StringLiteral,
    TextCall,
    TextPredicate,
    Traversal,
    Variable,
)
from omnigraph.lang.query.typecheck.fits import check_match
from omnigraph.lang.query.typecheck.operands import bare_edge, check_text_call, unknown_variable, value_type
from omnigraph.lang.query.typecheck.scope import Bound, Context, Scope
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.values import ValueType, compatible

Condition = Comparison | NullTest | TextPredicate


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
                case Comparison():
                    self._comparison(clause, scope)
                    pattern.conditions.append(clause)
                case NullTest():
                    self._null_test(clause, scope)
                    pattern.conditions.append(clause)
                case TextPredicate():
                    check_text_call(clause.call, scope, self.context)
                    pattern.conditions.append(clause)
                case Negation():
                    inner = self.block(clause.clauses, Scope(scope))
                    inner.outer = self._outer_variables(clause.clauses, scope)
                    if not inner.outer:
                        self.context.report(
                            "T9",
                            "this `not` mentions no variable from outside",
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
            if clause.edge.text == operator:
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
            prop = node.properties.get(match.property.text)
            if prop is None:
                self.context.report(
                    "T2",
                    f"node {node.name} has no property `{match.property}`",
                    match.property.span,
                    partial(suggest, match.property.text, node.properties),
                )
                continue
            if self._not_a_parameter(match.value, scope):
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
        edge = context.catalog.edge(clause.edge.text)
        if edge is None:
            context.report(
                "T4",
                f"unknown edge `{clause.edge}`",
                clause.edge.span,
                lambda: suggest(clause.edge.text, context.catalog.edge_spellings),
            )
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

    def _null_test(self, clause: NullTest, scope: Scope) -> None:
        operand = clause.operand
        if isinstance(operand, Variable) and operand.name not in self.context.parameters:
            bound = scope.find(operand.name)
            if bound is None:
                unknown_variable(operand, scope, self.context)
            elif isinstance(bound.type, EdgeType):
                bare_edge(operand, self.context)
            return
        found = value_type(operand, scope, self.context, "tested for null")
        if found is not None and found.is_blob:
            self.context.report("T7", "a Blob cannot be tested in a query", operand.span)

    def _comparison(self, clause: Comparison, scope: Scope) -> None:
        left = value_type(clause.left, scope, self.context, "compared")
        right = value_type(clause.right, scope, self.context, "compared")
        if left is None or right is None:
            return
        problem = comparison_problem(clause, left, right)
        if problem is not None:
            self.context.report("T7", problem, clause.span)
            return
        self._warn_if_impossible(clause, left, right)

    def _warn_if_impossible(self, clause: Comparison, left: ValueType, right: ValueType) -> None:
        """An enum compared with a text that is none of its values."""
        for side, other in ((left, clause.right), (right, clause.left)):
            if side.members is None or not isinstance(other, StringLiteral) or clause.operator != "=":
                continue
            if not side.has_member(other.value):
                self.context.warn(
                    "L302",
                    f'"{other.value[:40]}" is not one of the enum\'s values, so this never matches',
                    other.span,
                    partial(suggest, other.value, side.members),
                )


def comparison_problem(clause: Comparison, left: ValueType, right: ValueType) -> str | None:
    """Why two types cannot be compared by an operator; None if they can."""
    operator = clause.operator
    if left.is_blob or right.is_blob:
        return "a Blob cannot be compared"
    if operator == "starts_with":
        if left.is_string and right.is_string:
            return None
        return f"`starts_with` compares String with String, not {left} with {right}"
    if operator == "contains":
        if left.is_list:
            return _membership_problem(operator, clause.left, left, right)
        if left.is_string and right.is_string:
            return None
        return (
            f"`contains` needs a list or a String on the left and one value on the right, not {left} and {right}"
        )
    if operator == "in":
        if not right.is_list:
            return f"`in` needs a list on the right, not {right}"
        return _membership_problem(operator, clause.right, right, left)
    for side in (left, right):
        if not side.is_plain:
            what = "a list" if side.is_list else "a vector"
            return f"{what} cannot be compared by `{operator}`"
    if not compatible(left, right):
        return f"{left.required()} cannot be compared with {right.required()}"
    return None


def _membership_problem(operator: str, list_side: Expression, list_type: ValueType, item: ValueType) -> str | None:
    if not item.is_plain:
        return f"`{operator}` looks for one value in a list, not for {item}"
    empty = isinstance(list_side, ListLiteral) and not list_side.items
    if not empty and not compatible(list_type.item, item):
        return f"{list_type} cannot hold {item.required()}"
    return None


def _mentioned(clause: Clause) -> Iterator[str]:
    """The names of variables that a clause mentions itself; nested blocks do not count."""
    match clause:
        case Binding():
            yield clause.variable.name
        case Traversal():
            yield clause.source.name
            yield clause.target.name
        case Comparison():
            yield from mentioned_in(clause.left)
            yield from mentioned_in(clause.right)
        case NullTest():
            yield from mentioned_in(clause.operand)
        case TextPredicate():
            yield from mentioned_in(clause.call)
        case OptionalBlock() | Negation():
            return


def mentioned_in(expression: Expression) -> Iterator[str]:
    """The names of variables in an operand of a condition."""
    match expression:
        case Variable(name):
            yield name
        case PropertyRef(variable):
            yield variable.name
        case TextCall():
            yield from mentioned_in(expression.subject)
            yield from mentioned_in(expression.query)
        case ScoreCall(_, operands):
            for operand in operands:
                yield from mentioned_in(operand)
        case _:
            return
