"""What the parts of a block need before they can run: variables with a value, and the steps that lead to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from omnigraph.lang.query.syntax.clauses import Requirement, TextPredicate
from omnigraph.lang.query.typecheck.patterns import Condition, Pattern, Step, mentioned_in


class Known:
    """The variables that have a value at some point of a pipeline, inner blocks building on outer ones.

    ``hidden`` are outer variables that have nothing to do with a variable of the same name in here.
    """

    def __init__(self, outer: Known | None = None, hidden: Iterable[str] = ()) -> None:
        self.outer = outer
        self.hidden = frozenset(hidden)
        self.own: set[str] = set()

    def __contains__(self, name: str) -> bool:
        known: Known | None = self
        while known is not None:
            if name in known.own:
                return True
            if name in known.hidden:
                return False
            known = known.outer
        return False


def introduced_by(pattern: Pattern) -> Iterator[str]:
    """All variables that exist only if an optional block matches."""
    yield from pattern.introduced
    yield from pattern.edge_variables
    for optional in pattern.optionals:
        yield from introduced_by(optional)


def mentioned_by(condition: Condition) -> Iterable[str]:
    """The variables and parameters of a condition."""
    match condition:
        case TextPredicate(call):
            return tuple(mentioned_in(call))
        case Requirement(inner):
            return tuple(mentioned_in(inner))
        case _:
            return tuple(mentioned_in(condition))


class Waiting:
    """The steps that build on optional blocks. Each is taken once, by the block that needs it or at the end."""

    def __init__(self, pattern: Pattern, early: list[Step]) -> None:
        taken = {id(step) for step in early}
        self.steps = {i: step for i, step in enumerate(pattern.steps) if id(step) not in taken}
        self.reaching: dict[str, list[int]] = {}
        for index, step in self.steps.items():
            for name in _names_of(step):
                self.reaching.setdefault(name, []).append(index)

    def leading_to(self, optional: Pattern, ahead: set[str], known: Known) -> list[Step]:
        """The steps to variables that a block mentions; none of a block ``ahead``, which must bind its own."""
        found: set[int] = set()
        frontier = [name for name in _all_mentioned(optional) if name not in known] if self.steps else []
        seen = set(frontier)
        while frontier:
            for index in self.reaching.get(frontier.pop(), ()):
                names = _names_of(self.steps[index])
                if index in found or not ahead.isdisjoint(names):
                    continue
                found.add(index)
                unknown = [name for name in names if name not in known and name not in seen]
                frontier += unknown
                seen.update(unknown)
        return [self.steps.pop(index) for index in sorted(found)]

    def rest(self) -> list[Step]:
        """All clauses that were not taken."""
        return list(self.steps.values())


def _names_of(step: Step) -> tuple[str, ...]:
    return tuple(name for name in (step.source, step.target, step.edge_variable) if name is not None)


def _all_mentioned(pattern: Pattern) -> Iterator[str]:
    """All names in a block and the blocks in it."""
    yield from pattern.matches
    for step in pattern.steps:
        yield from _names_of(step)
    for condition in pattern.conditions:
        yield from mentioned_by(condition)
    for inner in (*pattern.optionals, *pattern.negations):
        yield from _all_mentioned(inner)


def untouched_by(late: set[str], pattern: Pattern) -> list[Step]:
    """The steps that do not start from a variable of an optional block, directly or over other steps."""
    if not late:
        return pattern.steps
    reached = set(late)
    anchored = set(pattern.bound)
    linked: dict[str, list[str]] = {}
    for step in pattern.steps:
        linked.setdefault(step.source, []).append(step.target)
        linked.setdefault(step.target, []).append(step.source)
    frontier = list(late)
    while frontier:
        for neighbour in linked.get(frontier.pop(), ()):
            if neighbour not in reached and neighbour in pattern.introduced and neighbour not in anchored:
                reached.add(neighbour)
                frontier.append(neighbour)
    return [s for s in pattern.steps if s.source not in reached and s.target not in reached]
