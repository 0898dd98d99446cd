"""Clones: the same graph at another place, which needs nothing of the first one."""

from __future__ import annotations

import dataclasses
import shutil
import threading
from pathlib import Path

import pytest
from tests.maintenance.copying.scenes import found, look, names, person, write_everywhere
from tests.sampling import sampled
from tests.stores import S3Server, Store, local_store

import omnigraph
from omnigraph import CopyEvent, Graph
from omnigraph.errors import (
    BranchNotFound,
    CopyRefused,
    CopyUnfinished,
    GraphExists,
    HistoryReclaimed,
    InvalidAddress,
    InvalidArgument,
    ObjectDamaged,
    SnapshotNotFound,
)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    """A graph to which no test writes."""
    return found(local_store(tmp_path_factory.mktemp("source")))


@pytest.fixture
def own(graph: Graph, tmp_path: Path) -> Graph:
    """The same, for one test alone."""
    graph.clone(tmp_path / "own")
    return omnigraph.open(tmp_path / "own")


def place(kind: str, folder: Path, server: S3Server | None) -> Store:
    if kind == "local":
        return Store(str(folder / "copy"))
    assert server is not None
    return server.store()


def remove(store: Store) -> None:
    """Remove a graph with all its files."""
    if store.options:
        store.objects().delete_prefix("")
    else:
        shutil.rmtree(store.uri)


def mentions(folder: Path, text: str) -> list[str]:
    """The files in which a text stands."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return sorted(str(path.relative_to(folder)) for path in files if text.encode() in path.read_bytes())


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("local", "local"),
        pytest.param("local", "s3", marks=pytest.mark.long),
        pytest.param("s3", "local", marks=pytest.mark.long),
        pytest.param("s3", "s3", marks=pytest.mark.long),
    ],
)
def test_a_clone_has_everything_and_needs_nothing_of_its_source(
    tmp_path: Path, request: pytest.FixtureRequest, source: str, target: str
) -> None:
    server = request.getfixturevalue("s3_server") if "s3" in (source, target) else None
    origin = Store(str(tmp_path / "g")) if source == "local" else place("s3", tmp_path, server)
    aim = place(target, tmp_path, server)
    graph = found(origin)
    seen = look(graph)
    report = graph.clone(aim.uri, storage_options=aim.options or None)
    assert report.commits == len(seen.states)
    assert set(report.branches) == {"main", "dev/one", "sub", "idle"}
    assert report.tags == ("v1", "v2")
    remove(origin)
    copy = omnigraph.open(aim.uri, storage_options=aim.options or None)
    assert look(copy) == seen
    assert copy.doctor().findings == ()
    if target == "local":
        write_everywhere(copy)
    else:
        copy.load([person("New")], mode="append", branch="sub")
        copy.merge("sub", into="dev/one")
        assert names(copy, "dev/one") == {"Ada", "Cy", "Di", "New"}


@pytest.mark.long
def test_a_small_graph_goes_to_a_bucket_and_back(tmp_path: Path, s3_store: Store) -> None:
    graph = omnigraph.init(tmp_path / "g", "node Person { name: String @key }")
    graph.create_branch("dev")
    graph.load([person("Ada")], mode="append", branch="dev")
    graph.clone(s3_store.uri, storage_options=s3_store.options)
    remote = omnigraph.open(s3_store.uri, storage_options=s3_store.options)
    remote.load([person("Bo")], mode="append", branch="dev")
    remote.clone(tmp_path / "back")
    remove(s3_store)
    back = omnigraph.open(tmp_path / "back")
    assert names(back, "dev") == {"Ada", "Bo"}
    back.load([person("Cy")], mode="append", branch="dev")
    assert names(back, "dev") == {"Ada", "Bo", "Cy"}


def test_no_file_of_a_clone_names_the_place_of_its_source_but_the_note_of_where_it_comes_from(
    graph: Graph, tmp_path: Path
) -> None:
    graph.clone(tmp_path / "copy")
    assert mentions(tmp_path / "copy", graph.address) == ["__place.json"]


def test_a_clone_has_only_what_its_source_refers_to(own: Graph, tmp_path: Path) -> None:
    table = next(Path(own.address, "nodes").iterdir())
    (table / "data" / "left-behind.lance").write_bytes(b"nobody refers to this")
    own.clone(tmp_path / "copy")
    assert not list((tmp_path / "copy").rglob("left-behind.lance"))
    assert not list((tmp_path / "copy").rglob("*.txn#*"))


def test_a_clone_is_brought_up_to_date_by_what_is_new(own: Graph, tmp_path: Path) -> None:
    first = own.clone(tmp_path / "copy")
    again = own.clone(tmp_path / "copy")
    assert (again.files, again.bytes) == (0, 0)
    own.load([person("Flo")], mode="append", branch="sub")
    own.delete_branch("idle")
    own.delete_tag("v1")
    own.create_branch("late", from_="sub")
    own.load([person("Gil")], mode="append", branch="late")
    update = own.clone(tmp_path / "copy")
    assert 0 < update.files < first.files / 3
    copy = omnigraph.open(tmp_path / "copy")
    assert look(copy) == look(own)
    assert names(copy, "late") >= {"Flo", "Gil"}


def test_a_branch_that_was_made_again_under_its_name_replaces_the_old_one(own: Graph, tmp_path: Path) -> None:
    own.load([person("Old")], mode="append", branch="idle")
    own.clone(tmp_path / "copy")
    own.delete_branch("idle")
    own.create_branch("idle", from_="dev/one")
    own.clone(tmp_path / "copy")
    copy = omnigraph.open(tmp_path / "copy")
    assert names(copy, "idle") == names(own, "idle") == names(own, "dev/one")
    copy.load([person("New")], mode="append", branch="idle")


def test_a_part_of_a_graph_is_not_mixed_with_another(own: Graph, tmp_path: Path) -> None:
    own.clone(tmp_path / "copy")
    with pytest.raises(CopyRefused, match="a copy of all of the graph"):
        own.clone(tmp_path / "copy", branch="sub")
    own.clone(tmp_path / "part", branch="sub", history=False)
    own.clone(tmp_path / "part", branch="sub")
    own.load([person("Later")], mode="append", branch="sub")
    own.clone(tmp_path / "part", branch="sub")
    with pytest.raises(CopyRefused, match="more of branch"):
        own.clone(tmp_path / "part", at="v1")
    with pytest.raises(CopyRefused, match="a copy of a part"):
        own.clone(tmp_path / "part")
    part = omnigraph.open(tmp_path / "part")
    assert "Later" in names(part, "sub")
    assert part.doctor().findings == ()


def test_a_clone_that_was_written_to_is_left_alone(graph: Graph, tmp_path: Path) -> None:
    graph.clone(tmp_path / "copy")
    copy = omnigraph.open(tmp_path / "copy")
    copy.load([person("Own")], mode="append")
    with pytest.raises(CopyRefused, match="written to"):
        graph.clone(tmp_path / "copy")
    assert "Own" in names(omnigraph.open(tmp_path / "copy"))


def test_copies_that_went_different_ways_are_not_mixed(own: Graph, tmp_path: Path) -> None:
    own.clone(tmp_path / "one")
    own.load([person("Later")], mode="append")
    own.clone(tmp_path / "two")
    one = omnigraph.open(tmp_path / "one")
    one.load([person("Elsewhere")], mode="append")
    with pytest.raises(CopyRefused, match="does not have"):
        one.clone(tmp_path / "two")
    assert "Later" in names(omnigraph.open(tmp_path / "two"))


def test_other_things_at_the_target_are_refused(graph: Graph, tmp_path: Path) -> None:
    omnigraph.init(tmp_path / "other", "node A { name: String @key }")
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "letter.txt").write_text("dear")
    (tmp_path / "file").write_text("dear")
    with pytest.raises(CopyRefused, match="no copy of this one"):
        graph.clone(tmp_path / "other")
    with pytest.raises(CopyRefused, match="something else"):
        graph.clone(tmp_path / "files")
    with pytest.raises(CopyRefused, match="something else"):
        graph.clone(tmp_path / "file")
    with pytest.raises(CopyRefused, match="itself"):
        graph.clone(graph.address)
    with pytest.raises(CopyRefused, match="lie in each other"):
        graph.clone(f"{graph.address}/inside")
    with pytest.raises(CopyRefused, match="lie in each other"):
        graph.clone(Path(graph.address).parent)
    assert sorted(path.name for path in (tmp_path / "files").iterdir()) == ["letter.txt"]


def test_a_graph_of_an_older_release_is_not_overwritten(graph: Graph, tmp_path: Path) -> None:
    other = tmp_path / "other"
    omnigraph.init(other, "node A { name: String @key }")
    (other / "__place.json").unlink()
    with pytest.raises(GraphExists):
        graph.clone(other)


def test_a_graph_in_memory_is_not_copied(memory_store: Store, tmp_path: Path) -> None:
    graph = omnigraph.init(memory_store.uri, "node A { name: String @key }")
    with pytest.raises(InvalidAddress, match="in memory"):
        graph.clone(tmp_path / "copy")


def test_one_branch_is_copied_with_those_it_stands_on(own: Graph, tmp_path: Path) -> None:
    seen = look(own)
    report = own.clone(tmp_path / "copy", branch="sub")
    shutil.rmtree(own.address)
    copy = omnigraph.open(tmp_path / "copy")
    assert list(report.branches) == ["main", "dev/one", "sub"]
    assert look(copy).logs["sub"] == seen.logs["sub"]
    assert names(copy, "sub") == {"Ada", "Cy", "Di"}
    assert names(copy, "main") == {"Ada", "Bo"}, "main ends where the branch left it"
    assert {tag.name for tag in copy.tags()} == {"v1", "v2"}
    assert copy.doctor().findings == ()
    copy.merge("sub", into="main", resolve="ours")


@pytest.mark.long
def test_what_led_to_a_state_is_copied(graph: Graph, tmp_path: Path) -> None:
    seen = look(graph)
    wanted_states: list[str | int] = ["v1", seen.logs["main"][2], 4]
    for number, at in enumerate(wanted_states):
        target = tmp_path / f"copy{number}"
        graph.clone(target, at=at)
        copy = omnigraph.open(target)
        wanted = graph.snapshot(at=at).graph_commit_id
        assert [branch.name for branch in copy.branches()] == ["main"]
        assert copy.snapshot().graph_commit_id == wanted
        readable = {commit: state for commit, state in look(copy).states.items() if isinstance(state, dict)}
        assert wanted in readable
        assert readable.items() <= seen.states.items()
        assert copy.doctor().findings == ()
        copy.load([person("New")], mode="append")
    with pytest.raises(SnapshotNotFound):
        graph.clone(tmp_path / "none", at="v7")
    with pytest.raises(BranchNotFound):
        graph.clone(tmp_path / "none", branch="v7")
    with pytest.raises(InvalidArgument, match="leave out branch"):
        graph.clone(tmp_path / "none", branch="dev/one", at=seen.logs["main"][0])
    assert not (tmp_path / "none").exists()


def test_a_copy_without_history_has_the_newest_states(own: Graph, tmp_path: Path) -> None:
    seen = look(own)
    whole = own.clone(tmp_path / "whole")
    report = own.clone(tmp_path / "copy", history=False)
    assert report.bytes < whole.bytes
    assert report.branches == whole.branches
    shutil.rmtree(own.address)
    copy = omnigraph.open(tmp_path / "copy")
    for name in report.branches:
        assert copy.snapshot(name).graph_commit_id == seen.logs[name][0]
        assert names(copy, name) == set(seen.states[seen.logs[name][0]]["node:Person"])
    with pytest.raises(HistoryReclaimed):
        copy.snapshot(at=seen.logs["main"][1])
    assert copy.tags() == []


def test_branches_of_a_copy_without_history_can_be_merged(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", "node Person { name: String @key  age: I32? }")
    graph.load([person("Ada"), person("Bo")], mode="append")
    graph.create_branch("dev")
    graph.mutate('query q() { delete Person where name = "Bo" }', branch="dev")
    graph.load([person("Cy")], mode="append")
    graph.load([person("Di")], mode="append")
    graph.clone(tmp_path / "copy", history=False)
    shutil.rmtree(tmp_path / "g")
    copy = omnigraph.open(tmp_path / "copy")
    assert copy.doctor().findings == ()
    assert copy.merge("dev", into="main").outcome == "merged"
    assert names(copy) == {"Ada", "Cy", "Di"}


def test_branches_that_were_merged_before_can_be_merged_again_without_history(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", "node Person { name: String @key  age: I32? }")
    graph.load([person("Ada", age=1), person("Bo")], mode="append")
    graph.create_branch("dev")
    graph.load([person("Ada", age=2)], mode="merge", branch="dev")
    graph.merge("dev", into="main")
    graph.load([person("Ada", age=3)], mode="merge")
    graph.load([person("Cy")], mode="append", branch="dev")
    graph.clone(tmp_path / "copy", history=False)
    shutil.rmtree(tmp_path / "g")
    copy = omnigraph.open(tmp_path / "copy")
    assert copy.merge("dev", into="main").outcome == "merged"
    ada = copy.entity("Person", "Ada")
    assert ada is not None
    assert ada["age"] == 3
    assert names(copy) == {"Ada", "Bo", "Cy"}


@pytest.mark.long
@pytest.mark.parametrize("copies", [1, 2])
def test_writers_go_on_while_a_graph_is_copied(own: Graph, tmp_path: Path, copies: int) -> None:
    done = threading.Event()
    written: list[str] = []

    def write() -> None:
        other = omnigraph.open(own.address)
        while not done.is_set():
            name = f"W{len(written)}"
            other.load([person(name)], mode="append", branch="sub" if len(written) % 2 else "main")
            written.append(name)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(copies):
            own.clone(tmp_path / f"copy{number}")
    finally:
        done.set()
        writer.join()
    assert written
    for number in range(copies):
        copy = omnigraph.open(tmp_path / f"copy{number}")
        assert look(copy).states.items() <= look(own).states.items()
        write_everywhere(copy)


def test_a_clone_tells_how_far_it_is(graph: Graph, tmp_path: Path) -> None:
    events: list[CopyEvent] = []
    report = graph.clone(tmp_path / "copy", listener=events.append)
    last = {event.step: event for event in events}
    assert sum(event.done for event in last.values()) == report.files
    assert all(event.done == event.files for event in last.values())


@pytest.mark.parametrize("kind", sampled(["_indices", "data", "_deletions"], 1))
def test_a_damaged_file_is_named_and_the_copy_is_none(own: Graph, tmp_path: Path, kind: str) -> None:
    files = [path for path in Path(own.address, "nodes").rglob("*") if path.is_file() and kind in path.parts]
    victim = max(files, key=lambda path: path.stat().st_size)
    content = victim.read_bytes()
    victim.write_bytes(content[:20] + b"####" + content[24:])
    with pytest.raises(ObjectDamaged, match=victim.name):
        own.clone(tmp_path / "copy")
    with pytest.raises(CopyUnfinished):
        omnigraph.open(tmp_path / "copy")
    victim.write_bytes(content)
    own.clone(tmp_path / "copy")
    assert names(omnigraph.open(tmp_path / "copy"), "sub") == names(own, "sub")


def test_a_damaged_version_is_named(own: Graph, tmp_path: Path) -> None:
    victim = own._repository.tables.version_path(own.snapshot("sub").tables["node:Person"].ref)
    content = victim.read_bytes()
    victim.write_bytes(content[:20] + b"####" + content[24:])
    with pytest.raises(ObjectDamaged, match=victim.name):
        omnigraph.open(own.address, read_only=True).clone(tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_a_missing_file_is_named(own: Graph, tmp_path: Path) -> None:
    victim = next(Path(own.address, "nodes").rglob("data/*.lance"))
    victim.unlink()
    with pytest.raises(ObjectDamaged, match=victim.name):
        own.clone(tmp_path / "copy")
    with pytest.raises(CopyUnfinished):
        omnigraph.open(tmp_path / "copy", read_only=True)


def test_a_report_is_plain_data(graph: Graph, tmp_path: Path) -> None:
    report = graph.clone(tmp_path / "copy")
    fields = {field.name for field in dataclasses.fields(report)}
    assert fields == set(report.as_json())
