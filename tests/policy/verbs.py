"""Every verb of a graph, and what a policy has to allow for it. Tests make cells of allow and deny of each row."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from omnigraph import Graph
from omnigraph.policy.actions import ON_TYPES, TO_BRANCH, Action

SCHEMA = """
node Person { name: String @key  age: I32?  photo: Blob? }
node Company { name: String @key }
edge Knows: Person -> Person { since: I32? }
"""
NAMES = "query names() { match { $p: Person } return { $p.name as name } }"
ADD = "query add($n: String) { insert Person { name: $n } }"
DELETE = "query gone($n: String) { delete Person where name = $n }"
ALL = ("node:Company", "node:Person", "edge:Knows")
PERSON = ("node:Person",)
FREE = {"address", "as_actor", "branch", "close", "is_closed"}
"""Members of a graph that neither read nor write anything."""


@dataclass(frozen=True)
class Need:
    """One action that a verb takes, on a branch or towards one, and on types."""

    action: Action
    branch: str | None = None
    types: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verb:
    """A verb: what it needs the n-th time, what it does, and what has to be there before."""

    needs: Callable[[int], Sequence[Need]]
    run: Callable[[Graph, int, Any], object]
    prepare: Callable[[Graph, int], Any] = lambda graph, n: None


@dataclass(frozen=True)
class Cell:
    """One actor with rules of its own, and whether the verb is allowed to it."""

    actor: str
    verb: str
    what: str
    n: int
    rules: tuple[dict[str, Any], ...]
    is_allowed: bool
    missing: Action | None = None


def reads(branch: str = "main", types: tuple[str, ...] = ()) -> Callable[[int], Sequence[Need]]:
    return lambda _: [Need(Action.READ, branch, types)]


def changes(types: tuple[str, ...] = ()) -> Callable[[int], Sequence[Need]]:
    return lambda _: [Need(Action.CHANGE, "main", types)]


def admin(run: Callable[[Graph], object]) -> Verb:
    return Verb(lambda _: [Need(Action.ADMIN)], lambda graph, _, __: run(graph))


def added(graph: Graph, n: int, branch: str = "main") -> str:
    """A commit that adds a person."""
    commit = graph.mutate(ADD, {"n": f"p{n}"}, branch=branch).commit
    assert commit is not None
    return commit.graph_commit_id


def branched(graph: Graph, n: int) -> str:
    """A commit that adds a person on a branch of its own."""
    graph.create_branch(f"src/{n}")
    return added(graph, n, f"src/{n}")


def before_last(graph: Graph, n: int) -> str:
    head = graph.snapshot().graph_commit_id
    added(graph, n)
    assert head is not None
    return head


def merging(n: int) -> Sequence[Need]:
    return [Need(Action.BRANCH_MERGE, "main", PERSON), Need(Action.READ, f"src/{n}")]


RECORD = '{"type": "Person", "data": {"name": "loaded"}}\n'

VERBS: dict[str, Verb] = {
    "query": Verb(reads(types=PERSON), lambda g, _, __: g.query(NAMES)),
    "entity": Verb(reads(types=PERSON), lambda g, _, __: g.entity("Person", "ada")),
    "blob": Verb(reads(types=PERSON), lambda g, _, __: g.blob("Person", "ada", "photo")),
    "put_blob": Verb(changes(PERSON), lambda g, _, __: g.put_blob("Person", "ada", "photo", b"bytes")),
    "check": Verb(reads(), lambda g, _, __: g.check(NAMES)),
    "explain": Verb(reads(types=PERSON), lambda g, _, __: g.explain(NAMES)),
    "snapshot": Verb(reads(), lambda g, _, __: g.snapshot()),
    "schema": Verb(reads(), lambda g, _, __: g.schema),
    "catalog": Verb(reads(), lambda g, _, __: g.catalog),
    "mutate": Verb(
        lambda _: [Need(Action.CHANGE, "main", ("edge:Knows", "node:Person"))],
        lambda g, n, _: g.mutate(DELETE, {"n": f"nobody{n}"}),
    ),
    "load": Verb(changes(PERSON), lambda g, _, __: g.load(RECORD.encode(), mode="merge")),
    "ingest": Verb(
        lambda n: [
            Need(Action.CHANGE, f"ing/{n}", PERSON),
            Need(Action.BRANCH_CREATE, f"ing/{n}"),
            Need(Action.READ, "main"),
        ],
        lambda g, n, _: g.ingest(RECORD.encode(), f"ing/{n}"),
    ),
    "plan_schema": Verb(reads(), lambda g, _, __: g.plan_schema(SCHEMA)),
    "apply_schema": Verb(lambda _: [Need(Action.SCHEMA_APPLY, "main")], lambda g, _, __: g.apply_schema(SCHEMA)),
    "apply_schema_to_all": Verb(
        lambda _: [Need(Action.SCHEMA_APPLY)], lambda g, _, __: g.apply_schema_to_all(SCHEMA)
    ),
    "export": Verb(lambda _: [Need(Action.EXPORT, "main", ALL)], lambda g, _, __: g.export(io.BytesIO())),
    "spark": Verb(
        lambda _: [Need(Action.EXPORT, "main", ALL)],
        lambda g, _, __: g.spark(3),  # type: ignore[arg-type]
    ),
    "stream": Verb(
        changes(PERSON),
        lambda g, _, __: g.stream(None, name="s", checkpoint="c", type="Person"),  # type: ignore[arg-type]
    ),
    "embed": Verb(changes(), lambda g, _, __: g.embed()),
    "branches": Verb(reads(), lambda g, _, __: g.branches()),
    "damaged_branches": Verb(reads(), lambda g, _, __: g.damaged_branches()),
    "create_branch": Verb(
        lambda n: [Need(Action.BRANCH_CREATE, f"new/{n}"), Need(Action.READ, "main")],
        lambda g, n, _: g.create_branch(f"new/{n}"),
    ),
    "delete_branch": Verb(
        lambda n: [Need(Action.BRANCH_DELETE, f"old/{n}")],
        lambda g, n, _: g.delete_branch(f"old/{n}"),
        lambda g, n: g.create_branch(f"old/{n}"),
    ),
    "tags": Verb(reads(), lambda g, _, __: g.tags()),
    "damaged_tags": Verb(reads(), lambda g, _, __: g.damaged_tags()),
    "tag": Verb(changes(), lambda g, n, _: g.tag(f"t{n}")),
    "delete_tag": Verb(changes(), lambda g, n, _: g.delete_tag(f"d{n}"), lambda g, n: g.tag(f"d{n}")),
    "diff": Verb(reads(types=ALL), lambda g, _, __: g.diff(1)),
    "commit_changes": Verb(
        reads(types=ALL),
        lambda g, _, head: g.commit_changes(head),
        lambda g, _: g.snapshot().graph_commit_id,
    ),
    "changes": Verb(reads(types=ALL), lambda g, _, __: g.changes()),
    "change_pages": Verb(reads(types=ALL), lambda g, _, __: list(g.change_pages())),
    "baseline": Verb(lambda _: [Need(Action.EXPORT, "main", ALL)], lambda g, _, __: g.baseline(io.BytesIO())),
    "merge": Verb(merging, lambda g, n, _: g.merge(f"src/{n}"), branched),
    "preview_merge": Verb(
        lambda n: [Need(Action.READ, f"src/{n}", ALL), Need(Action.READ, "main", ALL)],
        lambda g, n, _: g.preview_merge(f"src/{n}"),
        branched,
    ),
    "apply_merge": Verb(
        merging,
        lambda g, _, plan: g.apply_merge(plan),
        lambda g, n: (branched(g, n), g.preview_merge(f"src/{n}"))[1],
    ),
    "revert": Verb(changes(PERSON), lambda g, _, commit: g.revert(commit), added),
    "cherry_pick": Verb(
        lambda n: [Need(Action.CHANGE, "main", PERSON), Need(Action.READ, f"src/{n}")],
        lambda g, _, commit: g.cherry_pick(commit),
        branched,
    ),
    "reset": Verb(
        lambda _: [Need(Action.CHANGE, "main", PERSON), Need(Action.READ, "main")],
        lambda g, _, commit: g.reset(commit),
        before_last,
    ),
    "commits": Verb(reads(), lambda g, _, __: g.commits()),
    "log": Verb(reads(types=PERSON), lambda g, _, __: g.log(type="Person", id="ada")),
    "commit": Verb(reads(), lambda g, _, head: g.commit(head), lambda g, _: g.snapshot().graph_commit_id),
    "blame": Verb(reads(types=PERSON), lambda g, _, __: g.blame("Person", "ada")),
    "schema_source": Verb(reads(), lambda g, _, __: g.schema_source()),
    "schema_history": Verb(reads(), lambda g, _, __: g.schema_history()),
    "recoveries": Verb(reads(), lambda g, _, __: g.recoveries()),
    "ensure_indices": admin(lambda g: g.ensure_indices()),
    "optimize": admin(lambda g: g.optimize()),
    "optimize_all": admin(lambda g: g.optimize_all(types=["Company"])),
    "maintain": admin(lambda g: g.maintain()),
    "doctor": admin(lambda g: g.doctor(quick=True, branch="main")),
    "repair": admin(lambda g: g.repair()),
    "repair_all": admin(lambda g: g.repair_all()),
    "clone": admin(lambda g: g.clone("memory://copied")),
    "backup": admin(lambda g: g.backup("memory://backups")),
    "cleanup": admin(lambda g: g.cleanup(keep=1)),
    "refresh": admin(lambda g: g.refresh()),
    "jobs": admin(lambda g: g.jobs()),
    "clean_jobs": admin(lambda g: g.clean_jobs()),
}
REFUSED = {"spark", "stream", "clone", "backup"}
"""Verbs that are refused here for another reason, once the policy allows them."""
HEAVY = {"merge", "preview_merge", "apply_merge", "cherry_pick", "revert", "reset"}
"""Verbs that need a history of their own for each cell."""


def rule(need: Need, **scope: Any) -> dict[str, Any]:
    return {"actions": [need.action.value], **scope}


def cells(verb: str, needs: Callable[[int], Sequence[Need]], first: int) -> Iterator[Cell]:
    """The cells of a verb: all is allowed; each need is missing; each need is scoped so that it fits, and not."""

    def cell(what: str, is_allowed: bool, index: int | None = None, **scope: Any) -> Cell:
        nonlocal first
        first += 1
        wanted = needs(first)
        is_twofold = len({each.action for each in wanted}) < len(wanted)
        given = [rule(each, branches=[each.branch]) if is_twofold else rule(each) for each in wanted]
        missing = None
        if index is not None:
            missing = wanted[index].action
            filled = {key: value(wanted[index]) if callable(value) else value for key, value in scope.items()}
            given[index : index + 1] = [rule(wanted[index], **filled)] if scope else []
        return Cell(f"{verb}-{what}-{index}", verb, what, first, tuple(given), is_allowed, missing)

    yield cell("allowed", True)
    for index, need in enumerate(needs(0)):
        if sum(each.action is need.action for each in needs(0)) == 1:
            yield cell("missing", False, index)
        if need.branch is not None:
            key = "target_branch_scope" if need.action in TO_BRANCH else "branch_scope"
            is_protected = need.branch == "main"
            yield cell("protected", is_protected, index, **{key: "protected"})
            yield cell("unprotected", not is_protected, index, **{key: "unprotected"})
            yield cell("named", True, index, branches=lambda each: [each.branch])
            yield cell("matched", True, index, branches=lambda each: [f"{each.branch[:2]}*"])
            yield cell("elsewhere", False, index, branches=["elsewhere", "mai", "*/main"])
        if need.types and need.action in ON_TYPES:
            yield cell("typed", True, index, types=[key.partition(":")[2] for key in need.types])
            yield cell("keyed", True, index, types=[f"{key[:8]}*" for key in need.types])
            yield cell("mistyped", False, index, types=["Other", *need.types[:-1]])


def all_cells(rows: dict[str, Callable[[int], Sequence[Need]]]) -> list[Cell]:
    """The cells of all rows, each with a number of its own."""
    found: list[Cell] = []
    for verb, needs in rows.items():
        found += cells(verb, needs, len(found) * 2)
    return found


def policy_of(found: Sequence[Cell]) -> dict[str, Any]:
    """One policy, in which each cell has its own actor."""
    rules = [
        {"id": f"r{number}-{index}", "allow": {"actors": {"actor": [cell.actor]}, **each}}
        for number, cell in enumerate(found)
        for index, each in enumerate(cell.rules)
    ]
    return {"version": 1, "groups": {}, "protected_branches": ["main"], "rules": rules}
