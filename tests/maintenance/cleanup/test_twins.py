"""Two graphs get the same random history, and one of them is cleaned now and then: nobody can tell them apart by
their newest states, their tags, or what merges make of them."""

from __future__ import annotations

import random

import pytest
from tests.maintenance.cleanup.worlds import NOW, SCHEMA, add, connect, names, people, remove, rename
from tests.sampling import sampled
from tests.stores import Store

import omnigraph
from omnigraph import Graph
from omnigraph.errors import MergeConflicts

STEPS = 40


class Twins:
    """The two graphs, and the random numbers that decide what happens to them."""

    def __init__(self, seed: int, cleaned: Store, other: Store) -> None:
        self.random = random.Random(seed)
        self.places = [cleaned, other]
        self.graphs = [omnigraph.init(place.uri, SCHEMA) for place in self.places]
        self.branches = ["main"]
        self.tags: list[str] = []

    def step(self, number: int) -> None:
        """Do the same to both, or clean one."""
        branch, other = self.random.choice(self.branches), self.random.choice(self.branches)
        known = sorted(names(self.graphs[1], branch=branch)) or ["none"]
        who, age = self.random.choice(known), self.random.randrange(5)
        match self.random.randrange(12):
            case 0 | 1 | 2:
                self.both(lambda graph: add(graph, f"p{number}", branch=branch))
            case 3:
                self.both(lambda graph: rename(graph, who, age, branch=branch))
            case 4:
                self.both(lambda graph: remove(graph, who, branch=branch))
            case 5 if len(self.branches) < 5:
                self.branches.append(f"b{number}")
                self.both(lambda graph: graph.create_branch(f"b{number}", from_=branch))
            case 6 if branch != "main" and all(b.parent != branch for b in self.graphs[1].branches()):
                if not any(tag.branch == branch for tag in self.graphs[1].tags()):
                    self.branches.remove(branch)
                    self.both(lambda graph: graph.delete_branch(branch))
            case 7:
                self.tags.append(f"t{number}")
                self.both(lambda graph: graph.tag(f"t{number}", at=branch))
            case 8 if self.random.random() < 0.3:
                self.both(lambda graph: graph.optimize(branch=branch))
            case 9 | 10 if branch != other:
                self.both(lambda graph: merged(graph, branch, other))
            case _:
                self.graphs[0].cleanup(keep=self.random.randrange(3), grace=NOW, confirm=True)

    def both(self, change: object) -> None:
        assert callable(change)
        outcomes = [change(graph) for graph in self.graphs]
        if any(isinstance(outcome, tuple) for outcome in outcomes):
            assert outcomes[0] == outcomes[1]

    def compare(self) -> None:
        """Everything that must be readable is the same in both."""
        left, right = (connect(place) for place in self.places)
        for branch in self.branches:
            assert people(left, branch=branch) == people(right, branch=branch)
            assert len(left.commits(branch, limit=1000)) == len(right.commits(branch, limit=1000))
        for tag in self.tags:
            if tag in {found.name for found in right.tags()}:
                assert people(left, at=tag) == people(right, at=tag)


def merged(graph: Graph, source: str, target: str) -> tuple[str, int]:
    """What became of a merge."""
    try:
        return str(graph.merge(source, into=target).outcome), 0
    except MergeConflicts as error:
        return "conflicts", len(error.conflicts)


@pytest.mark.parametrize("seed", sampled(range(5), 1))
def test_a_cleaned_graph_behaves_like_its_twin(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    twins = Twins(seed, *(Store(str(tmp_path_factory.mktemp(name) / "g")) for name in ("cleaned", "other")))
    for number in range(STEPS):
        twins.step(number)
    twins.compare()
    twins.graphs[0].cleanup(keep=0, grace=NOW, confirm=True)
    twins.compare()
