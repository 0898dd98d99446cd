"""What crashes, lost races and killed jobs leave is removed once nothing can need it any more."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.maintenance.cleanup.worlds import NOW, add, backdate, connect, create, files, names
from tests.processes import see_killed
from tests.recovery.victims import connect as connect_unhealed
from tests.stores import Store

import omnigraph
from omnigraph import Graph
from omnigraph.errors import HistoryReclaimed
from omnigraph.recovery.jobs import JobRecord, announce
from omnigraph.storage import layout
from omnigraph.storage.stage.changes import stage_append


@pytest.fixture
def graph(local_store: Store) -> Graph:
    graph = create(local_store)
    for name in ("Ada", "Bo"):
        add(graph, name)
    return graph


def reference(store: Store) -> set[str]:
    """The files that a clean graph has, which are all that are left once everything else is gone."""
    connect(store).cleanup(keep=1, grace=NOW, confirm=True)
    return files(store)


def insert(store: Store) -> None:
    add(connect_unhealed(store), "Cy")


def create_dev(store: Store) -> None:
    connect(store).create_branch("dev")


def delete_dev(store: Store) -> None:
    connect(store).delete_branch("dev")


def add_to_dev(store: Store) -> None:
    add(connect_unhealed(store), "Di", branch="dev")


@pytest.mark.parametrize("failpoint", ["write.after_stage", "write.after_sidecar", "write.after_tables"])
def test_a_writer_that_was_killed(graph: Graph, local_store: Store, failpoint: str) -> None:
    see_killed(failpoint, insert, local_store)
    graph.cleanup(keep=1, grace=NOW, confirm=True)
    left = connect(local_store)
    assert names(left) == {"Ada", "Bo"} | ({"Cy"} if failpoint == "write.after_tables" else set())
    location = left.snapshot().tables["node:Person"].location
    found = [key for key in files(local_store) if key.startswith(f"{location}/data/")]
    assert len(found) == len(names(left)), "each row has a file, and there is no other"


@pytest.mark.parametrize("failpoint", ["branch_create.after_native", "branch_delete.after_ref"])
def test_a_branch_that_is_half_there(graph: Graph, local_store: Store, failpoint: str) -> None:
    if failpoint.startswith("branch_delete"):
        create_dev(local_store)
        add_to_dev(local_store)
    see_killed(failpoint, create_dev if failpoint.startswith("branch_create") else delete_dev, local_store)
    assert [key for key in files(local_store) if "tree/dev" in key]
    graph.cleanup(keep=1, confirm=True)
    assert [key for key in files(local_store) if "tree/dev" in key], "it was made within the grace period"
    backdate(local_store, hours=2)
    graph.cleanup(keep=1, confirm=True)
    assert not [key for key in files(local_store) if "dev" in key]
    assert not list(Path(local_store.uri, layout.MANIFEST, "tree").glob("dev*"))
    create_dev(local_store)
    add_to_dev(local_store)
    assert names(graph, branch="dev") == {"Ada", "Bo", "Di"}


def test_a_fork_whose_write_was_killed(graph: Graph, local_store: Store) -> None:
    """The branch lives, so its tree stays for the next write, without the files of the dead one."""
    create_dev(local_store)
    see_killed("write.after_stage", add_to_dev, local_store)
    graph.cleanup(keep=1, grace=NOW, confirm=True)
    location = graph.snapshot().tables["node:Person"].location
    assert not [key for key in files(local_store) if key.startswith(f"{location}/tree/dev") and "/data/" in key]
    add_to_dev(local_store)
    assert names(connect(local_store), branch="dev") == {"Ada", "Bo", "Di"}


def test_files_that_were_staged_and_given_up(graph: Graph, local_store: Store) -> None:
    tables, pin = graph._repository.tables, graph.snapshot().tables["node:Person"]
    rows = tables.scan(pin.ref).read_all()
    clean = reference(local_store)
    stage_append(tables.open(pin.ref), pin.location, None, rows, "test")
    assert files(local_store) > clean
    assert graph.cleanup(keep=1, confirm=True).files_removed == 0, "a writer may be about to commit them"
    assert graph.cleanup(keep=1, grace=NOW, confirm=True).files_removed == 1
    assert {key for key in files(local_store) if not key.endswith(".cleanup")} == {
        key for key in clean if not key.endswith(".cleanup")
    }


def test_half_written_files(graph: Graph, local_store: Store) -> None:
    pin = graph.snapshot().tables["node:Person"]
    clean = reference(local_store)
    for folder in ("_versions", "data", "_transactions"):
        Path(local_store.uri, pin.location, folder, "something#1").write_bytes(b"")
    assert graph.cleanup(keep=1, grace=NOW, confirm=True).files_removed == 3
    assert len(files(local_store)) == len(clean)
    assert names(connect(local_store)) == {"Ada", "Bo"}


def test_a_file_of_somebody_else_is_left_alone(graph: Graph, local_store: Store) -> None:
    pin = graph.snapshot().tables["node:Person"]
    notes = Path(local_store.uri, pin.location, "notes.txt")
    notes.write_text("mine")
    graph.cleanup(keep=1, grace=NOW, confirm=True)
    assert notes.read_text() == "mine"


def test_a_job_that_runs_keeps_its_files(graph: Graph, local_store: Store) -> None:
    import datetime as dt

    repository, pin = graph._repository, graph.snapshot().tables["node:Person"]
    record = JobRecord("j1", "load", "main", None, (pin.location,), None, dt.datetime.now(dt.UTC))
    with repository.locks.job(record.job):
        announce(repository.objects, record)
        staged = Path(local_store.uri, pin.location, "data", "j1-0.lance")
        staged.write_bytes(b"rows")
        graph.cleanup(keep=1, grace=NOW, confirm=True)
        assert staged.exists()
    done = graph.cleanup(keep=1, grace=NOW, confirm=True)
    assert done.jobs_removed == 1
    assert not staged.exists()


def test_a_type_that_was_dropped(local_store: Store) -> None:
    graph = create(local_store)
    add(graph, "Ada")
    before, kept = graph.commits()[0].graph_commit_id, graph.snapshot().tables["edge:Knows"].location
    graph.apply_schema("node Person { name: String @key  age: I32? }")
    add(graph, "Bo")
    graph.cleanup(keep=3, grace=NOW, confirm=True)
    assert graph.snapshot(at=before).tables["edge:Knows"].location == kept
    assert [key for key in files(local_store) if key.startswith(kept)]
    graph.cleanup(keep=1, grace=NOW, confirm=True)
    assert not [key for key in files(local_store) if key.startswith(kept)]
    assert names(connect(local_store)) == {"Ada", "Bo"}
    with pytest.raises(HistoryReclaimed):
        graph.snapshot(at=before)


def test_schemas_of_states_that_are_gone(local_store: Store) -> None:
    graph = omnigraph.init(local_store.uri, "node Person { name: String @key }")
    schema = (
        "node Person { name: String @key  age: I32?  %s: String? }\nedge Knows: Person -> Person { since: I32? }"
    )
    for name in ("mail", "phone", "fax"):
        graph.apply_schema(schema % name)
    assert len([key for key in files(local_store) if key.startswith(layout.SCHEMAS)]) == 3
    assert graph.cleanup(keep=2, grace=NOW, confirm=True).objects_removed == 1
    assert graph.cleanup(keep=1, grace=NOW, confirm=True).objects_removed == 1
    graph.apply_schema(schema % "mail")
    assert "mail" in connect(local_store).schema
