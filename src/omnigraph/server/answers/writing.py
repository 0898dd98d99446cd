"""The routes that write. Each is a plain function of a call, which runs in a thread to its end.

The actor of a write is the token's, never one that the body names.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from omnigraph.bulk.load.options import LoadResult
from omnigraph.errors import InvalidArgument, OmniError
from omnigraph.graph import with_instead
from omnigraph.history.merging.plans import MergeOutcome, MergePlan, MergeResult
from omnigraph.lang.query.compile import parse_query_file
from omnigraph.manifest.state import MAIN, Commit
from omnigraph.policy.actions import Action
from omnigraph.server.answers.calls import Answer, Call, Found
from omnigraph.server.answers.once import done_once
from omnigraph.server.transfer.spool import Content
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
        nodes, edges = sum(changed["node"].values()), sum(changed["edge"].values())
        return MutationResult(commit.branch, name, nodes, edges, commit, call.actor)

    done, headers = done_once(call, branch, run, rebuilt)
    return Found(done, done.as_json, headers=headers)


def _changed(call: Call, commit: Commit) -> dict[str, Counter[str]]:
    """How many entities of each type a commit changed, by their kind."""
    counts: dict[str, Counter[str]] = {"node": Counter(), "edge": Counter()}
    graph = with_instead(call.graph, {Action.READ: None})
    token: str | None = None
    while True:
        page = graph.commit_changes(commit.graph_commit_id, page_token=token)
        for change in page.block.changes:
            kind, _, name = change.table_key.partition(":")
            counts[kind][name] += 1
        token = page.next_page_token
        if token is None:
            return counts


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
        return LoadResult(commit.branch, mode, changed["node"], changed["edge"], commit, call.get("from"))

    done, headers = done_once(call, branch, run, rebuilt)
    return Found(done, done.as_json, headers=headers)


def create_branch(call: Call) -> Answer:
    """Create a branch at the newest state of another one."""
    made = call.graph.create_branch(call.values["name"], call.get("from"), actor=call.actor)
    return Found(made, lambda: {"actor_id": call.actor, "from": call.get("from", MAIN), **made.as_json()})


def delete_branch(call: Call) -> Answer:
    """Delete a branch that no other descends from."""
    gone = call.graph.delete_branch(call.values["branch"])
    return Found(gone, lambda: {"actor_id": call.actor, **gone.as_json()})


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

    done, headers = done_once(call, target, run, rebuilt)
    shown: dict[str, Any] = {"actor_id": call.actor}
    if call.get("delete_branch"):
        shown |= _delete_merged(call)
    return Found(done, lambda: {**done.as_json(), **shown}, headers=headers)


def preview_merge(call: Call) -> Answer:
    """What a merge would do now: its outcome, its changes and its conflicts. Nothing is written."""
    options = _decisions(call)
    if "squash" in call.values:
        options["squash"] = call.values["squash"]
    plan = call.graph.preview_merge(call.values["source"], call.get("target", MAIN), **options)
    return Found(plan, plan.as_json)


def revert(call: Call) -> Answer:
    """Undo commits by one new commit."""
    done = call.graph.revert(call.values["commits"], call.get("branch"), **_decisions(call))
    return Found(done, done.as_json)


def cherry_pick(call: Call) -> Answer:
    """Do on a branch, as a new commit, what a commit of any branch did."""
    done = call.graph.cherry_pick(call.values["commit"], call.get("branch"), **_decisions(call))
    return Found(done, done.as_json)


def reset(call: Call) -> Answer:
    """Bring a branch back to its content at a commit, as a new commit."""
    done = call.graph.reset(call.values["commit"], call.get("branch"), **_decisions(call))
    return Found(done, done.as_json)


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


def _delete_merged(call: Call) -> dict[str, Any]:
    """Delete the source of a merge that is done; why that failed is part of the answer."""
    try:
        call.graph.delete_branch(call.values["source"])
    except OmniError as error:
        return {"branch_deleted": False, "branch_delete_error": str(error)}
    return {"branch_deleted": True}


def create_tag(call: Call) -> Answer:
    """Give a name to a commit, by default to the newest one of main."""
    made = call.graph.tag(call.values["name"], call.get("at"), actor=call.actor)
    return Found(made, made.as_json)


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
    """Give a branch another schema, as one commit."""
    done = call.graph.apply_schema(
        call.values["schema_source"],
        branch=call.get("branch"),
        fill=call.get("fill"),
        allow_data_loss=call.get("allow_data_loss", False),
        actor=call.actor,
        message=call.get("message"),
        if_commit=call.get("omnigraph_if_graph_commit"),
        engine="local",
    )
    return Found(done, done.as_json)
