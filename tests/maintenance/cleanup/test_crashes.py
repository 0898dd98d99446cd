"""A cleanup that is killed anywhere leaves a graph with everything it should keep, and the next one goes on."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.maintenance.cleanup.worlds import NOW, add, connect, create, names, remove
from tests.processes import see_killed
from tests.sampling import sampled
from tests.stores import Store

from omnigraph import Graph, failpoints
from omnigraph.errors import HistoryReclaimed
from omnigraph.manifest.repository import open_existing
from omnigraph.storage.address import Scheme

LEASE = 1.0
"""How long a dead cleanup's locks last on object stores here, in seconds."""

KILLED_AT = [
    "cleanup.after_mark",
    "cleanup.after_states",
    "cleanup.after_versions",
    "cleanup.after_manifest",
    "cleanup.after_files",
    "cleanup.before_end",
    "cleanup.after_end",
]
ON_OBJECT_STORES = ["cleanup.after_versions", "cleanup.after_states", "cleanup.after_files"]


def cleaner(store: Store) -> Graph:
    """A graph whose locks are soon free if the process dies."""
    repository = open_existing(store.address, read_only=False)
    return Graph(replace(repository, locks=store.locks(time_to_live=LEASE)))


def clean(store: Store) -> None:
    cleaner(store).cleanup(keep=2, grace=NOW, confirm=True)


def scene(store: Store) -> list[str]:
    """A history with a tag, a merged branch, and the files of a branch that was deleted; its commits on main."""
    graph = create(store)
    commits = [add(graph, "Ada")]
    graph.tag("v1")
    graph.create_branch("dev")
    add(graph, "Bo", branch="dev")
    graph.merge("dev")
    add(graph, "Cy", branch="dev")
    graph.create_branch("gone")
    add(graph, "Di", branch="gone")
    graph.delete_branch("gone")
    commits += [add(graph, "Ed"), remove(graph, "Ada"), add(graph, "Flo"), add(graph, "Gil")]
    return commits


def check_kept(graph: Graph, commits: list[str]) -> None:
    """Everything that the policy keeps is there."""
    assert names(graph) == {"Bo", "Ed", "Flo", "Gil"}
    assert names(graph, branch="dev") == {"Ada", "Bo", "Cy"}
    assert names(graph, at="v1") == {"Ada"}
    assert names(graph, at=commits[-2]) == {"Bo", "Ed", "Flo"}


def check(store: Store, failpoint: str) -> None:
    commits = scene(store)
    see_killed(failpoint, clean, store)
    check_kept(connect(store, read_only=True), commits)
    graph = cleaner(store)
    add(graph, "Hal", branch="dev")
    remove(graph, "Hal", branch="dev")
    check_kept(graph, commits)
    graph.cleanup(keep=2, grace=NOW, confirm=True)
    left = connect(store)
    if store.address.scheme is Scheme.LOCAL:  # other clocks are too coarse for files of this very second
        assert left.cleanup(keep=2, grace=NOW).files_removed == 0
    check_kept(left, commits)
    with pytest.raises(HistoryReclaimed):
        names(left, at=commits[1])
    left.merge("dev")
    assert names(left) == {"Bo", "Cy", "Ed", "Flo", "Gil"}


def test_every_failpoint_has_a_case() -> None:
    assert set(KILLED_AT) == failpoints.CLEANUP_NAMES


@pytest.mark.parametrize("failpoint", sampled(KILLED_AT, 2))
def test_on_a_disk(local_store: Store, failpoint: str) -> None:
    check(local_store, failpoint)


@pytest.mark.long
@pytest.mark.parametrize("failpoint", ON_OBJECT_STORES)
def test_on_an_object_store(s3_store: Store, failpoint: str) -> None:
    check(s3_store, failpoint)
