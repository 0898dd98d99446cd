"""What must hold for any history of branches, merges, undone commits and maintenance."""

from __future__ import annotations

import io
import random

from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from tests.history.histories import KNOWS, PERSON, SCHEMA, History, Step, record, steps
from tests.history.model import State, same_states
from tests.history.test_diff import applied
from tests.sampling import examples
from tests.stores import memory_store

import omnigraph
from omnigraph import Graph

quickly = settings(
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),  # to make a history smaller takes many minutes
)
many = settings(quickly, max_examples=examples(3, of=80))
few = settings(quickly, max_examples=examples(2, of=30))
histories = st.lists(steps, min_size=12, max_size=24)


def happened(given_steps: list[Step]) -> History:
    history = History()
    for step in given_steps:
        history.do(step)
    return history


@many
@given(histories, st.randoms(use_true_random=False))
def test_merges_are_as_the_model_says_and_diffs_lead_from_any_state_to_any_other(
    given_steps: list[Step], chance: random.Random
) -> None:
    """`History.do` compares each merge, revert, cherry-pick and reset with the model; here are the diffs."""
    history = happened(given_steps)
    commits = list(history.states)
    for _ in range(8):
        before, after = chance.choice(commits), chance.choice(commits)
        diff = history.graph.diff(before, after)
        assert same_states(applied(history.states[before], diff), history.states[after])


@few
@given(histories)
def test_after_merging_both_ways_there_is_no_difference(given_steps: list[Step]) -> None:
    history = happened(given_steps)
    for branch in history.branches[1:]:
        history.merge(branch, "main", "ours")
        if "orphan_edge" in {c.kind.value for c in history.graph.preview_merge(branch, resolve="ours").conflicts}:
            continue
        assert history.graph.merge("main", branch, resolve="theirs").outcome != "merged"
        assert len(history.graph.diff("main", branch)) == 0


@few
@given(histories)
def test_the_export_is_that_of_a_graph_made_from_the_model(given_steps: list[Step]) -> None:
    history = happened(given_steps)
    assume(history.merges)
    for branch in history.branches:
        assert exported(history.graph, branch) == exported(rebuilt(history.state(branch)), "main")


@few
@given(st.lists(steps, min_size=4, max_size=12), st.lists(steps, min_size=4, max_size=12))
def test_merging_disjoint_changes_equals_doing_them_one_after_the_other(
    ours: list[Step], theirs: list[Step]
) -> None:
    """Main changes Ada and Bo, the branch Cy and Dee; edges stay among these."""
    apart, replayed = History(), History()
    apart.graph.create_branch("dev")
    for branch, given_steps, names in (("main", ours, ("Ada", "Bo")), ("dev", theirs, ("Cy", "Dee"))):
        for step in given_steps:
            written = disjoint(step, names)
            apart.graph.load(written, mode="merge", branch=branch)
            replayed.graph.load(written, mode="merge")
    apart.graph.merge("dev")
    assert same_states(apart.state("main"), replayed.state("main"))


def disjoint(step: Step, names: tuple[str, str]) -> list[dict[str, object]]:
    """A person and an edge of one side."""
    name = names[step.choice % 2]
    return [
        {"type": "Person", "data": {"name": name, "age": step.value, "tags": [step.property]}},
        {"edge": "Knows", "from": name, "to": name, "data": {"id": f"{name}-{step.other}", "since": step.value}},
    ]


@few
@given(histories)
def test_a_reverted_merge_is_not_merged_again_but_comes_back(given_steps: list[Step]) -> None:
    """The merged commits stay ancestors, so that merging again does nothing; reverting the revert does."""
    history = happened(given_steps)
    graph = history.graph
    branch = next((b for b in history.branches[1:] if not graph.preview_merge(b, resolve="ours").conflicts), None)
    assume(branch is not None)
    assert branch is not None
    before = history.state("main")
    merge = graph.merge(branch, resolve="ours")
    assume(merge.commit is not None)
    assert merge.commit is not None
    after = history.state("main")
    revert = graph.revert(merge.commit.graph_commit_id)
    assert same_states(history.state("main"), before)
    assert graph.merge(branch, resolve="ours").outcome == "already_up_to_date"
    if revert.commit is not None:
        graph.revert(revert.commit.graph_commit_id)
    assert same_states(history.state("main"), after)


def rebuilt(state: State) -> Graph:
    """A new graph with the rows of a state."""
    graph = omnigraph.init(memory_store().uri, SCHEMA)
    graph.load([record(row) for key in (PERSON, KNOWS) for row in state[key].values()], mode="append")
    return graph


def exported(graph: Graph, branch: str) -> bytes:
    target = io.BytesIO()
    graph.export(target, branch=branch, ordered=True)
    return target.getvalue()
