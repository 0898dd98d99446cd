"""Planning a pattern: what is only counted, where enumeration starts, and in which order links are followed."""

from __future__ import annotations

from collections.abc import Iterator, Set
from itertools import combinations
from typing import Final

from omnigraph.lang.query import ir
from omnigraph.lang.query.explain import explain_operations
from omnigraph.read.pattern.pattern import Link, Pattern, Reach, distinct_links, mentioned
from omnigraph.read.plan.estimates import Estimates, best_order
from omnigraph.read.run.steps import (
    AsWritten,
    Close,
    Condition,
    CountCommon,
    Follow,
    FollowEdges,
    Intersect,
    Keep,
    LookUp,
    Start,
    Step,
    Tools,
    Total,
    Unconnected,
    Unequal,
)
from omnigraph.records import dataclass

_SELECTIVE: Final = 4


@dataclass(slots=True)
class _Arrangement:
    """A plan as it grows."""

    pattern: Pattern
    kept: set[str]
    tools: Tools
    estimates: Estimates
    steps: list[Step]
    bound: set[str]
    """Every variable that has a value by now, or had one."""
    present: set[str]
    """The variables of the frame."""
    links: list[Link]
    conditions: list[ir.Filter]
    unequal: list[tuple[str, str]]
    unconnected: list[Link]


def arrange(pattern: Pattern, needed: Set[str], tools: Tools, estimates: Estimates) -> list[Step]:
    """Steps that make the rows of a pattern, with the needed variables. The pattern itself stays as it is."""
    if pattern.is_single:
        [node] = pattern.nodes.values()
        return [Start(node) if node.variable in needed else Total(node)]
    pattern = pattern.copy()
    plan = _arrangement(pattern, set(needed) | pattern.mentioned_at_end(), tools, estimates)
    components = _components(plan)
    for index, component in enumerate(components):
        _arrange_component(plan, component, last=index == len(components) - 1)
    plan.steps.extend(_rest(pattern))
    return plan.steps


def _arrangement(pattern: Pattern, kept: set[str], tools: Tools, estimates: Estimates) -> _Arrangement:
    return _Arrangement(
        pattern,
        kept,
        tools,
        estimates,
        [],
        set(),
        set(),
        distinct_links(pattern.links),
        list(pattern.conditions),
        list(pattern.unequal),
        list(pattern.unconnected),
    )


def arrange_lookups(pattern: Pattern, needed: Set[str], start: str, tools: Tools) -> list[Step]:
    """Steps that make the rows of a pattern by look-ups from one variable; all variables are enumerated."""
    kept = set(needed) | pattern.mentioned_at_end()
    plan = _arrangement(pattern, kept, tools, Estimates(tools.operators.tables, tools.operators.expressions))
    core = set(pattern.nodes)
    waiting = [start, *(name for name in pattern.nodes if name != start)]
    while core - plan.bound:
        link = next((one for one in plan.links if one.ends & plan.bound and not one.ends <= plan.bound), None)
        if link is None:
            name = next(name for name in waiting if name not in plan.bound)
            ahead = None if plan.bound else next((one for one in plan.links if name in one.ends), None)
            plan.steps.append(LookUp(pattern.nodes[name], None if ahead is None else ahead.from_(name)))
            _bind(plan, name)
        else:
            plan.links.remove(link)
            seen = link.from_(next(iter(link.ends & plan.bound)))
            plan.steps.append(FollowEdges(seen, pattern.nodes[seen.target]))
            _bind(plan, seen.target, *([] if seen.edge_variable is None else [seen.edge_variable]))
        _settle(plan, core, last=True)
    plan.steps.extend(_rest(pattern))
    return plan.steps


def _rest(pattern: Pattern) -> list[Step]:
    return [AsWritten((one,), "\n".join(explain_operations((one,)))) for one in pattern.rest]


def _entangled(plan: _Arrangement) -> set[str]:
    """Variables in conditions over several variables: they have to be enumerated."""
    names = {name for condition in plan.conditions for name in mentioned(condition)}
    names |= {name for pair in plan.unequal for name in pair}
    names |= {name for link in plan.unconnected for name in link.ends}
    return names


def _components(plan: _Arrangement) -> list[set[str]]:
    """Variables that links connect, in the order of their first ones."""
    part = {name: {name} for name in plan.pattern.nodes}
    for link in plan.links:
        first, second = part[link.source], part[link.target]
        if first is not second:
            first |= second
            for name in second:
                part[name] = first
    return list({id(members): members for members in part.values()}.values())


def _arrange_component(plan: _Arrangement, component: set[str], *, last: bool) -> None:
    own = [link for link in plan.links if link.ends <= component and link.source != link.target]
    order: list[str] = []
    if len(own) >= len(component) and all(link.is_hop for link in own):
        core = _eliminate(plan, component, None)
        if _arrange_triangle(plan, core, last=last):
            return
        order = best_order(core, [link for link in plan.links if link.ends <= core], plan.pattern, plan.estimates)
        start = order[0]
    else:
        start = _choose_start(plan, component)
        core = _eliminate(plan, component, start)
    node = plan.pattern.nodes[start]
    if core == {start} and start not in plan.kept | _entangled(plan) and not _own_links(plan, start):
        plan.steps.append(Total(node))
        _settle(plan, set(), last=last)
        return
    plan.steps.append(Start(node))
    _bind(plan, start)
    _settle(plan, core, last=last)
    while core - plan.bound:
        _advance(plan, core, order)
        _settle(plan, core, last=last)


def _arrange_triangle(plan: _Arrangement, core: set[str], *, last: bool) -> bool:
    """Begin with three variables that are all connected by one symmetric relation, if there are such."""
    found = None if plan.steps else next(_triangles(plan, core), None)
    if found is None:
        return False
    from omnigraph.read.run.triangles import Corners, Triangles, symmetric_relation

    names, links = found
    plan.estimates.is_particular = True  # the steps refer to arrays, which the cache may drop
    relation = symmetric_relation([(link.edge_type, link.direction) for link in links], plan.tools)
    if relation is None:
        return False
    plan.links = [link for link in plan.links if link not in links]
    needed = frozenset(name for name in names if _is_needed(plan, name))
    nodes = [plan.pattern.nodes[name] for name in names]
    edge_type = links[0].edge_type
    plan.steps += [Corners(relation, edge_type), Triangles(relation, edge_type, nodes, needed)]
    plan.bound.update(names)
    plan.present.update(needed)
    _settle(plan, core, last=last)
    while core - plan.bound:
        _advance(plan, core, [])
        _settle(plan, core, last=last)
    return True


def _triangles(plan: _Arrangement, core: set[str]) -> Iterator[tuple[tuple[str, ...], list[Link]]]:
    """Three variables each, with the links of one edge type that connect all of them; none if one of them is
    selective, because then it is less work to begin there."""
    by_type: dict[str, list[Link]] = {}
    for link in plan.links:
        if link.is_hop and link.edge_variable is None and link.value is None and len(link.ends) > 1:
            by_type.setdefault(link.edge_type, []).append(link)
    for links in by_type.values():
        ends = {link.ends for link in links if link.ends <= core}
        names = [name for name in plan.pattern.nodes if any(name in pair for pair in ends)]
        for three in combinations(names, 3):
            nodes = [plan.pattern.nodes[name] for name in three]
            common = all(plan.estimates.of(node) * _SELECTIVE > plan.estimates.whole(node) for node in nodes)
            if common and all(frozenset(pair) in ends for pair in combinations(three, 2)):
                yield three, [link for link in links if link.ends <= set(three)]


def _own_links(plan: _Arrangement, variable: str) -> bool:
    return any(variable in link.ends for link in plan.links)


def _choose_start(plan: _Arrangement, component: set[str]) -> str:
    """The most selective variable, unless one that is enumerated anyway is about as good."""
    ordered = [name for name in plan.pattern.nodes if name in component]
    if any(not link.is_hop for link in plan.links if link.ends & component):
        return _start_of_chain(plan, ordered)
    estimates = {name: plan.estimates.of(plan.pattern.nodes[name]) for name in ordered}
    best = min(ordered, key=lambda name: (estimates[name], name not in plan.kept))
    wanted = [name for name in ordered if name in plan.kept | _entangled(plan)]
    whole = plan.estimates.whole(plan.pattern.nodes[best])
    if not wanted:
        return _hub(plan, ordered, best, estimates, whole)
    if best in wanted or estimates[best] * _SELECTIVE <= whole:
        return best
    return min(wanted, key=lambda name: estimates[name])


def _start_of_chain(plan: _Arrangement, ordered: list[str]) -> str:
    """A variable from which chains of hops can be followed forwards, where equal values connect it to others; else
    the first one."""
    chains = [link for link in plan.links if not link.is_hop]
    if any(plan.pattern.nodes[name].equality is not None for name in ordered):
        sources = {link.source for link in chains} - {link.target for link in chains}
        return next((name for name in ordered if name in sources), ordered[0])
    return ordered[0]


def _hub(plan: _Arrangement, ordered: list[str], best: str, estimates: dict[str, float], whole: int) -> str:
    """The start of a pattern that is only counted, if nothing is selective: the variable with most links, whose
    neighbours then only need counting."""
    if estimates[best] * _SELECTIVE <= whole:
        return best
    return max(ordered, key=lambda name: sum(name in link.ends for link in plan.links))


def _eliminate(plan: _Arrangement, component: set[str], start: str | None) -> set[str]:
    """Turn variables that only need counting into subtrees of their neighbours; return those that are left."""
    core = set(component)
    fixed = plan.kept | _entangled(plan) | ({start} if start is not None else set())
    edges = plan.kept | {name for condition in plan.conditions for name in mentioned(condition)}
    found = True
    while found:
        found = False
        for name in sorted(core - fixed):
            own = [link for link in plan.links if name in link.ends]
            if len(own) != 1 or not own[0].is_hop or own[0].source == own[0].target:
                continue
            [link] = own
            if link.edge_variable is not None and link.edge_variable in edges:
                continue
            parent = link.other(name)
            reach = Reach(link.from_(parent), plan.pattern.nodes[name])
            plan.pattern.nodes[parent].reaches.append(reach)
            plan.links.remove(link)
            core.discard(name)
            found = True
    return core


def _advance(plan: _Arrangement, core: set[str], order: list[str]) -> None:
    """Bind one more variable: the next of the order, or the one that makes the fewest rows."""
    candidates: dict[str, list[Link]] = {}
    for link in plan.links:
        if link.ends & plan.bound and not link.ends <= plan.bound and link.ends <= core:
            bound = next(iter(link.ends & plan.bound))
            if link.is_hop or bound == link.source:
                candidates.setdefault(link.other(bound), []).append(link)
    if not candidates:
        _bind_apart(plan, core)
        return
    planned = next((name for name in order if name in candidates), None)
    name = planned or min(candidates, key=lambda n: _growth(plan, n, candidates[n]))
    links = [link.from_(link.other(name)) for link in candidates[name]]
    node = plan.pattern.nodes[name]
    plan.links = [link for link in plan.links if link not in candidates[name]]
    hops = [link for link in links if link.is_hop and link.edge_variable is None]
    others = [link for link in links if link not in hops]
    if len(hops) > 1 and not others and not _is_needed(plan, name):
        plan.steps.append(CountCommon(tuple(hops), node))
        plan.bound.add(name)
        return
    if len(hops) > 1:
        plan.steps.append(Intersect(tuple(hops), node))
    elif hops:
        plan.steps.append(Follow(hops[0], node))
    else:
        plan.steps.append(Follow(others.pop(0), node))
    _bind(plan, name, *(link.edge_variable for link in links if link.edge_variable is not None))
    plan.steps.extend(Close(link) for link in others)


def _is_needed(plan: _Arrangement, name: str) -> bool:
    """Is a variable needed for anything but the links that bind it?"""
    return name in plan.kept | _entangled(plan) or any(name in link.ends for link in plan.links)


def _bind_apart(plan: _Arrangement, core: set[str]) -> None:
    """A variable that is only reached by a chain of hops from itself: bind it, and check the chain later."""
    name = next(name for name in plan.pattern.nodes if name in core - plan.bound)
    plan.steps.append(Start(plan.pattern.nodes[name]))
    _bind(plan, name)


def _bind(plan: _Arrangement, *names: str) -> None:
    plan.bound.update(names)
    plan.present.update(names)


def _growth(plan: _Arrangement, name: str, links: list[Link]) -> tuple[int, float]:
    """About how many rows one row becomes."""
    if not any(link.is_hop for link in links):
        return (1, 0.0)
    growth = []
    for link in links:
        if not link.is_hop:
            continue
        oriented = link.from_(link.other(name))
        adjacency = plan.estimates.adjacency(oriented)
        growth.append(adjacency.pairs / max(1, len(adjacency)))
    node = plan.pattern.nodes[name]
    share = plan.estimates.of(node) / max(1, plan.estimates.whole(node))
    return (0, min(growth) * share - len(growth))


def _settle(plan: _Arrangement, core: set[str], *, last: bool) -> None:
    """Check all conditions whose variables are bound by now, and drop variables that are not needed any more."""
    known = plan.bound
    for link in [link for link in plan.links if link.ends <= known]:
        plan.links.remove(link)
        plan.steps.append(Close(link))
        if link.edge_variable is not None:
            _bind(plan, link.edge_variable)
    for pair in [pair for pair in plan.unequal if set(pair) <= known]:
        plan.unequal.remove(pair)
        plan.steps.append(Unequal(*pair))
    for link in [link for link in plan.unconnected if link.ends <= known]:
        plan.unconnected.remove(link)
        plan.steps.append(Unconnected(link))
    for condition in [c for c in plan.conditions if set(mentioned(c)) <= known]:
        plan.conditions.remove(condition)
        plan.steps.append(Condition(condition))
    needed = plan.kept | _entangled(plan) | {name for link in plan.links for name in link.ends}
    if plan.present - needed:
        plan.present &= needed
        more = not last or bool(core - known)
        plan.steps.append(Keep(frozenset(plan.present), merge=more))
