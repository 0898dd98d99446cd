"""Graphs that were moved, or copied by hand: they work at their new place, and never read files of the old one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.maintenance.copying.scenes import (
    found,
    glance,
    look,
    names,
    person,
    small,
    write_and_merge,
    write_everywhere,
)
from tests.processes import see_killed
from tests.sampling import sampled
from tests.stores import Store, local_store

import omnigraph
from omnigraph import Graph, failpoints
from omnigraph.errors import GraphMoved, ObjectDamaged
from omnigraph.storage import layout
from omnigraph.storage.control.place import Place, read_place, write_place


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    """A graph that can be moved."""
    return small(Store(str(tmp_path / "before")))


def moved(graph: Graph, to: Path) -> Path:
    return Path(shutil.move(graph.address, to))


@pytest.mark.long
def test_a_moved_graph_has_everything(tmp_path: Path) -> None:
    graph = found(local_store(tmp_path))
    seen = look(graph)
    place = moved(graph, tmp_path / "a place with a much longer name than before")
    again = omnigraph.open(place)
    assert look(again) == seen
    write_everywhere(again)


def test_a_graph_can_be_moved_again_and_back(graph: Graph, tmp_path: Path) -> None:
    home = Path(graph.address)
    for place in (tmp_path / "one", tmp_path / "two", home, tmp_path / "three"):
        seen = look(graph)
        graph = omnigraph.open(moved(graph, place))
        assert look(graph) == seen
        assert glance(omnigraph.open(place, read_only=True)) == glance(graph)
        graph.load([person(f"At {place.name}")], mode="append", branch="dev")
    write_and_merge(graph)


def test_main_of_a_moved_graph_can_be_read_at_once_and_its_branches_say_what_to_do(
    graph: Graph, tmp_path: Path
) -> None:
    wanted = names(graph)
    old = graph.address
    place = moved(graph, tmp_path / "after")
    reader = omnigraph.open(place, read_only=True)
    assert names(reader) == wanted
    with pytest.raises(GraphMoved, match="open the graph for writing once") as raised:
        names(reader, "dev")
    assert raised.value.root == old


def test_a_copy_by_hand_never_reads_the_files_of_the_original(graph: Graph, tmp_path: Path) -> None:
    shutil.copytree(graph.address, tmp_path / "copy")
    reader = omnigraph.open(tmp_path / "copy", read_only=True)
    with pytest.raises(GraphMoved):
        names(reader, "dev")
    copy = omnigraph.open(tmp_path / "copy")
    copy.load([person("Copied")], mode="append", branch="dev")
    graph.load([person("Original")], mode="append", branch="dev")
    assert "Copied" not in names(graph, "dev")
    shutil.rmtree(graph.address)
    assert "Copied" in names(copy, "dev")
    assert "Original" not in names(omnigraph.open(tmp_path / "copy"), "dev")
    write_and_merge(omnigraph.open(tmp_path / "copy"))


@pytest.mark.parametrize("failpoint", sampled(["move.after_version", "move.after_note", "move.before_end"], 1))
def test_giving_a_graph_its_new_place_goes_on_where_it_was_killed(
    graph: Graph, tmp_path: Path, failpoint: str
) -> None:
    seen = glance(graph)
    place = moved(graph, tmp_path / "after")
    see_killed(failpoint, open_for_writing, str(place))
    further = Path(shutil.move(place, tmp_path / "further"))
    see_killed(failpoint, open_for_writing, str(further))
    again = omnigraph.open(further)
    assert glance(again) == seen
    write_and_merge(again)


def open_for_writing(uri: str) -> None:
    omnigraph.open(uri)


def test_every_failpoint_of_copies_has_a_case() -> None:
    moves = {"move.after_note", "move.after_version", "move.before_end"}
    copies = {"copy.after_claim", "copy.after_content", "copy.after_versions", "copy.before_end"}
    assert moves | copies | {"backup.before_removal"} == failpoints.COPY_NAMES


def test_a_folder_with_two_names_is_not_given_another_place(graph: Graph, tmp_path: Path) -> None:
    """A link is followed, so it is the same place. A folder that is mounted twice would be rewritten at each turn;
    here the note is made to name another path of the same folder."""
    (tmp_path / "link").symlink_to(graph.address)
    assert omnigraph.open(tmp_path / "link").address == graph.address
    objects = graph._repository.objects
    place = read_place(objects)
    assert place is not None
    write_place(objects, Place(place.graph_id, str(tmp_path / "link"), origins=place.origins))
    with pytest.raises(GraphMoved, match="the same folder"):
        omnigraph.open(graph.address)


def test_a_graph_of_an_older_release_is_recognised_by_its_branches(graph: Graph, tmp_path: Path) -> None:
    seen = look(graph)
    (Path(graph.address) / layout.PLACE).unlink()
    place = moved(graph, tmp_path / "after")
    with pytest.raises(GraphMoved):
        names(omnigraph.open(place, read_only=True), "dev")
    again = omnigraph.open(place)
    assert look(again) == seen
    found_place = read_place(again._repository.objects)
    assert found_place is not None
    assert found_place.root == again.address


def test_a_graph_of_an_older_release_gets_a_note_of_its_place(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", "node A { name: String @key }")
    (tmp_path / "g" / layout.PLACE).unlink()
    omnigraph.open(tmp_path / "g", read_only=True)
    assert not (tmp_path / "g" / layout.PLACE).exists(), "reading never writes"
    omnigraph.open(tmp_path / "g")
    place = read_place(graph._repository.objects)
    assert place is not None
    assert place.root == str(tmp_path / "g")


def test_a_changed_byte_in_a_moved_version_is_still_found_out(graph: Graph, tmp_path: Path) -> None:
    place = moved(graph, tmp_path / "after")
    again = omnigraph.open(place)
    path = again._repository.tables.version_path(again.snapshot("dev").tables["node:Person"].ref)
    content = path.read_bytes()
    at = content.rindex(b".lance") - 3
    path.write_bytes(content[:at] + b"#" + content[at + 1 :])
    with pytest.raises(ObjectDamaged, match=path.name):
        names(omnigraph.open(place), "dev")


def test_a_place_that_cannot_be_read_is_named(graph: Graph) -> None:
    (Path(graph.address) / layout.PLACE).write_text("{")
    with pytest.raises(ObjectDamaged, match=layout.PLACE):
        omnigraph.open(graph.address)


@pytest.mark.long
def test_a_graph_moved_within_a_bucket(s3_store: Store) -> None:
    """As with `aws s3 mv`: every object has another key."""
    small(s3_store)
    after = Store(s3_store.uri + "-after", s3_store.options)
    source, target = s3_store.objects(), after.objects()
    for key in source.list(""):
        content = source.get(key)
        assert content is not None
        target.put(key, content.content)
    source.delete_prefix("")
    with pytest.raises(GraphMoved):
        names(omnigraph.open(after.uri, read_only=True, storage_options=after.options), "dev")
    again = omnigraph.open(after.uri, storage_options=after.options)
    assert names(again, "dev") == {"Ada", "Bo"}
    again.load([person("Cy")], mode="append", branch="dev")
    assert names(again, "dev") == {"Ada", "Bo", "Cy"}


def test_opening_a_graph_that_stays_where_it_is_rewrites_nothing(graph: Graph) -> None:
    before = {path: path.stat().st_mtime_ns for path in Path(graph.address).rglob("*.manifest")}
    omnigraph.open(graph.address)
    assert before == {path: path.stat().st_mtime_ns for path in Path(graph.address).rglob("*.manifest")}
