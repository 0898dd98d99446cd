"""What cannot be read may need anything: a cleanup that finds such a thing removes nothing and says why."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.maintenance.cleanup.worlds import NOW, add, connect, create, files, names
from tests.recovery.victims import connect as connect_unhealed
from tests.stores import Store

from omnigraph import Graph
from omnigraph.errors import ObjectDamaged, OmniError, SidecarUnreadable
from omnigraph.storage import layout


@pytest.fixture
def graph(local_store: Store) -> Graph:
    graph = create(local_store)
    for name in ("Ada", "Bo", "Cy"):
        add(graph, name)
    graph.create_branch("dev")
    add(graph, "Di", branch="dev")
    graph.tag("v1")
    add(graph, "Ed")
    return graph


def refuse(store: Store, expected: type[OmniError], match: str) -> None:
    """A cleanup and its preview fail, and every file of a table is where it was."""
    before = {key for key in files(store) if not key.startswith(f"{layout.SIDECARS}/")}
    for confirm in (False, True):
        with pytest.raises(expected, match=match):
            connect_unhealed(store).cleanup(keep=1, grace=NOW, confirm=confirm)
    assert {key for key in files(store) if not key.startswith(f"{layout.SIDECARS}/")} == before


def test_a_damaged_branch(graph: Graph, local_store: Store) -> None:
    Path(local_store.uri, layout.branch_ref("dev")).write_bytes(b"{}")
    refuse(local_store, ObjectDamaged, "branches/dev")


def test_a_damaged_tag(graph: Graph, local_store: Store) -> None:
    Path(local_store.uri, layout.tag_ref("v1")).write_bytes(b"?")
    refuse(local_store, ObjectDamaged, "tags/v1")


def test_a_damaged_record_of_a_job(graph: Graph, local_store: Store) -> None:
    graph._repository.objects.put(layout.job_record("j1"), b"?")
    refuse(local_store, ObjectDamaged, "j1")


def test_an_interrupted_write_that_cannot_be_read(graph: Graph, local_store: Store) -> None:
    graph._repository.objects.put(f"{layout.SIDECARS}/01J00000000000000000000000.json", b"?")
    before = files(local_store)
    with pytest.raises(SidecarUnreadable):
        connect_unhealed(local_store).cleanup(keep=1, grace=NOW, confirm=True)
    assert files(local_store) == before


def test_a_state_that_cannot_be_read(graph: Graph, local_store: Store) -> None:
    version = connect(local_store).snapshot("dev").manifest_version
    native = graph._repository.branches.find("dev").native
    path = Path(local_store.uri, layout.version_file(layout.MANIFEST, native, version))
    path.write_bytes(path.read_bytes()[:-100] + b"?" * 96 + b"LANC")
    refuse(local_store, OmniError, "manifest")


@pytest.mark.parametrize("how", ["missing", "torn", "changed"])
def test_a_table_version_that_cannot_be_read(graph: Graph, local_store: Store, how: str) -> None:
    pin = graph.snapshot().tables["node:Person"]
    path = Path(local_store.uri, layout.version_file(pin.location, None, pin.table_version))
    content = path.read_bytes()
    path.unlink()
    if how != "missing":
        path.write_bytes(content[:-50] if how == "torn" else content[:-40] + b"\xff" * 24 + content[-16:])
    refuse(local_store, ObjectDamaged, pin.location)


def test_two_at_once(graph: Graph, local_store: Store) -> None:
    """The second one waits until the first is done, and finds nothing to do."""
    from threading import Thread

    reports = []

    def clean() -> None:
        reports.append(connect(local_store).cleanup(keep=1, grace=NOW, confirm=True))

    threads = [Thread(target=clean) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(bool(report.files_removed) for report in reports) == [False, False, True]
    assert names(connect(local_store)) == {"Ada", "Bo", "Cy", "Ed"}
