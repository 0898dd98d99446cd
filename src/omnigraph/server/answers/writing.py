"""The routes that write. Each is a plain function of a call, which runs in a thread to its end.

The actor of a write is the token's, never one that the body names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from omnigraph.bulk.load.options import LoadResult
from omnigraph.errors import BranchNotFound, ClusterManaged, InvalidArgument, OmniError
from omnigraph.graph import create_branch_for, reservations, tag_for, with_instead
from omnigraph.history.diff import Op
from omnigraph.history.merging.plans import MergeOutcome, MergePlan, MergeResult
from omnigraph.history.merging.undo import UndoResult
from omnigraph.lang.query.compile import parse_query_file
from omnigraph.lang.schema.migration import steps_between
from omnigraph.lang.schema.steps import MigrationPlan
from omnigraph.manifest.state import MAIN, Commit
from omnigraph.policy.actions import Action
from omnigraph.server.answers.calls import Answer, Call, Found
from omnigraph.server.answers.once import done_once, made_once
from omnigraph.server.transfer.spool import Content
from omnigraph.write.evolution.apply import SchemaResult
from omnigraph.write.evolution.plan import SchemaPlan
from omnigraph.write.mutations.requests import MutationResult


def mutate(call: Call) -> Answer:
    """Insert, update or delete: all statements of a query as one commit, or none."""
    branch = call.get("branch", MAIN)

    def run(graph_commit_id: str | None) -> MutationResult:
        return call.graph.mutate(
            call.values["query"],
            call.get("params"),
            name=call.get("name"),
            branch=branch,
            actor=call.actor,
            if_commit=call.get("omnigraph_if_graph_commit"),
            graph_commit_id=graph_commit_id,
        )

    def rebuilt(commit: Commit) -> MutationResult:
        changed = _changed(call, commit)
        name = call.get("name") or parse_query_file(call.values["query"]).queries[0].name.text
        nodes, edges = (sum(_by_type(changed, kind).values()) for kind in ("node", "edge"))
        return MutationResult(commit.branch, name, nodes, edges, commit, call.actor)

    done = done_once(call, branch, run, rebuilt)
    return Found(done.result, done.result.as_json, headers=done.headers)


def _changed(call: Call, commit: Commit) -> dict[str, dict[str, int]]:
    """How many entities of each table a commit changed, by operation."""
    counts: dict[str, dict[str, int]] = {}
    graph = with_instead(call.graph, {Action.READ: None})
    token: str | None = None
    while True:
        page = graph.commit_changes(commit.graph_commit_id, page_token=token)
        for change in page.block.changes:
            of_table = counts.setdefault(change.table_key, {op.value: 0 for op in Op})
            of_table[change.op.value] += 1
        token = page.next_page_token
        if token is None:
            return counts


def _by_type(changed: Mapping[str, Mapping[str, int]], kind: str) -> dict[str, int]:
    """How many entities of each node or edge type were changed."""
    tables = {key.partition(":"): sum(counts.values()) for key, counts in changed.items()}
    return {name: count for (found, _, name), count in tables.items() if found == kind}


def load(call: Call) -> Answer:
    """Load records that are a text of the body, as one commit."""
    return _load(call, call.values["data"].encode())


def load_records(call: Call) -> Answer:
    """Load the records of the body, as one commit."""
    return _load(call, call.content)


def _load(call: Call, data: Content) -> Answer:
    branch, mode = call.get("branch", MAIN), call.get("mode", "merge")

    def run(graph_commit_id: str | None) -> LoadResult:
        # A load takes a text for the name of a file if it looks like one, so it gets bytes.
        return call.graph.load(
            data,
            mode=mode,
            branch=branch,
            from_=call.get("from"),
            actor=call.actor,
            message=call.get("message"),
            max_errors=call.get("max_errors"),
            skip_bad=call.get("skip_bad", False),
            graph_commit_id=graph_commit_id,
            engine="local",
        )

    def rebuilt(commit: Commit) -> LoadResult:
        changed = _changed(call, commit)
        nodes, edges = _by_type(changed, "node"), _by_type(changed, "edge")
        return LoadResult(commit.branch, mode, nodes, edges, commit, call.get("from"))

    done = done_once(call, branch, run, rebuilt)
    return Found(done.result, done.result.as_json, headers=done.headers)


def create_branch(call: Call) -> Answer:
    """Create a branch at the newest state of another one."""
    origin = call.get("from", MAIN)
    name = call.values["name"]
    done = made_once(
        call,
        lambda request: create_branch_for(call.graph, request, name, origin, call.actor),
        lambda reserved: reservations(call.graph).branch(reserved, name),
    )
    about = {"uri": call.graph.address, "actor_id": call.actor, "from": origin}
    return Found(done.result, lambda: {**about, **done.result.as_json()}, headers=done.headers)


def delete_branch(call: Call) -> Answer:
    """Delete a branch that no other descends from."""
    gone = call.graph.delete_branch(call.values["branch"])
    return Found(gone, lambda: {"uri": call.graph.address, "actor_id": call.actor, **gone.as_json()})


def merge(call: Call) -> Answer:
    """Merge a branch into another one, as one commit with two parents."""
    source, target = call.values["source"], call.get("target", MAIN)

    def run(graph_commit_id: str | None) -> MergeResult:
        options = _decisions(call)
        if "squash" in call.values:
            options["squash"] = call.values["squash"]
        return call.graph.merge(source, target, graph_commit_id=graph_commit_id, **options)

    def rebuilt(commit: Commit) -> MergeResult:
        theirs = commit.parents[1] if len(commit.parents) > 1 else None
        plan = MergePlan(MergeOutcome.MERGED, source, target, theirs, commit.parents[0], None, {})
        return MergeResult(plan, commit)

    def then(merged: MergeResult, is_again: bool) -> dict[str, Any]:
        return _delete_merged(call, merged, is_again) if call.get("delete_branch") else {}

    done = done_once(call, target, run, rebuilt, then)
    shown = {"actor_id": call.actor, **done.more}
    return Found(done.result, lambda: {**done.result.as_json(), **shown}, headers=done.headers)


def preview_merge(call: Call) -> Answer:
    """What a merge would do now: its outcome, its changes and its conflicts. Nothing is written."""
    options = _decisions(call)
    if "squash" in call.values:
        options["squash"] = call.values["squash"]
    plan = call.graph.preview_merge(call.values["source"], call.get("target", MAIN), **options)
    return Found(plan, plan.as_json)


def revert(call: Call) -> Answer:
    """Undo commits by one new commit."""
    return _undone(call, call.values["commits"], call.graph.revert)


def cherry_pick(call: Call) -> Answer:
    """Do on a branch, as a new commit, what a commit of any branch did."""
    return _undone(call, call.values["commit"], call.graph.cherry_pick)


def reset(call: Call) -> Answer:
    """Bring a branch back to its content at a commit, as a new commit."""
    return _undone(call, call.values["commit"], call.graph.reset)


def _undone(call: Call, commits: str | list[str], undo: Callable[..., UndoResult]) -> Answer:
    branch = call.get("branch", MAIN)

    def run(graph_commit_id: str | None) -> UndoResult:
        return undo(commits, branch, graph_commit_id=graph_commit_id, **_decisions(call))

    def rebuilt(commit: Commit) -> UndoResult:
        graph = with_instead(call.graph, {Action.READ: None})
        of = [graph.commit(name) for name in ([commits] if isinstance(commits, str) else commits)]
        of.sort(key=lambda each: each.manifest_version, reverse=True)
        names = tuple(each.graph_commit_id for each in of)
        return UndoResult(commit.branch, call.route, names, _changed(call, commit), commit)

    done = done_once(call, branch, run, rebuilt)
    return Found(done.result, done.result.as_json, headers=done.headers)


def _decisions(call: Call) -> dict[str, Any]:
    """What merges and undoing have in common: who, why, on which condition, and how conflicts are decided."""
    names = ("strict", "resolve", "message")
    options = {name: call.values[name] for name in names if name in call.values}
    if "choices" in call.values:
        try:
            choices = {(each["table_key"], each["id"]): each["side"] for each in call.values["choices"]}
        except (KeyError, TypeError):
            raise InvalidArgument("choices", "each has a table_key, an id and a side") from None
        options["choices"] = choices
    condition = call.get("omnigraph_if_graph_commit")
    return {**options, "actor": call.actor, "if_commit": condition, "engine": "local"}


def _delete_merged(call: Call, merged: MergeResult, is_again: bool) -> dict[str, Any]:
    """Delete the source of a merge that is done; why that failed is part of the answer.

    If the merge was made before, so may its source have been deleted: a branch that has got other commits, or
    that was made anew, stays.
    """
    source = call.values["source"]
    try:
        if is_again and not _is_still(call, source, merged.plan.source_commit):
            return {"branch_deleted": False, "branch_delete_error": f"'{source}' is not what was merged any more"}
        call.graph.delete_branch(source)
    except BranchNotFound as error:
        return (
            {"branch_deleted": True} if is_again else {"branch_deleted": False, "branch_delete_error": str(error)}
        )
    except OmniError as error:
        return {"branch_deleted": False, "branch_delete_error": str(error)}
    return {"branch_deleted": True}


def _is_still(call: Call, branch: str, commit: str | None) -> bool:
    """Is a branch at a commit of its own?"""
    head = with_instead(call.graph, {Action.READ: None}).snapshot(branch).commit
    return head is not None and (head.graph_commit_id, head.branch) == (commit, branch)


def create_tag(call: Call) -> Answer:
    """Give a name to a commit, by default to the newest one of main."""
    name = call.values["name"]
    done = made_once(
        call,
        lambda request: tag_for(call.graph, request, name, call.get("at"), call.actor),
        lambda reserved: reservations(call.graph).tag(reserved, name),
    )
    return Found(done.result, done.result.as_json, headers=done.headers)


def delete_tag(call: Call) -> Answer:
    """Delete a tag. Its commit stays."""
    gone = call.graph.delete_tag(call.values["tag"])
    return Found(gone, lambda: {"name": gone})


def plan_schema(call: Call) -> Answer:
    """What it takes to give a branch another schema. Nothing is written."""
    plan = call.graph.plan_schema(
        call.values["schema_source"],
        branch=call.get("branch"),
        fill=call.get("fill"),
        allow_data_loss=call.get("allow_data_loss", False),
    )
    return Found(plan, plan.as_json)


def apply_schema(call: Call) -> Answer:
    """Give a branch another schema, as one commit; the graphs of a cluster get theirs from the cluster."""
    if call.server.is_managed:
        raise ClusterManaged("its schema", f"graph '{call.values['graph']}'")
    branch = call.get("branch", MAIN)

    def run(graph_commit_id: str | None) -> SchemaResult:
        return call.graph.apply_schema(
            call.values["schema_source"],
            branch=branch,
            fill=call.get("fill"),
            allow_data_loss=call.get("allow_data_loss", False),
            actor=call.actor,
            message=call.get("message"),
            if_commit=call.get("omnigraph_if_graph_commit"),
            graph_commit_id=graph_commit_id,
            engine="local",
        )

    def rebuilt(commit: Commit) -> SchemaResult:
        graph = with_instead(call.graph, {Action.READ: None})
        before, after = (graph.snapshot(at=at).catalog.ir for at in (commit.parents[0], commit.graph_commit_id))
        steps = MigrationPlan(steps_between(before, after), after)
        return SchemaResult(SchemaPlan(commit.branch, commit.parents[0], steps, ()), commit)

    done = done_once(call, branch, run, rebuilt)
    return Found(done.result, done.result.as_json, headers=done.headers)
