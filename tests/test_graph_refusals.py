"""Bad input: each its own error, with the remedy, and nothing written."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.manifest.support import SCHEMA, files, stored
from tests.processes import children, say
from tests.stores import Store

import omnigraph
from omnigraph import Graph
from omnigraph.errors import (
    BranchExists,
    BranchInUse,
    BranchNotFound,
    BranchProtected,
    GraphExists,
    GraphNotFound,
    InvalidAddress,
    InvalidBranchName,
    NotAGraph,
    OmniError,
    SchemaError,
    SnapshotNotFound,
    StorageUnavailable,
)
from omnigraph.storage import layout


class TestCreating:
    def test_over_a_graph(self, store: Store) -> None:
        omnigraph.init(store.uri, SCHEMA, storage_options=store.options)
        before = stored(store)
        for force in (False, True):
            with pytest.raises(GraphExists) as caught:
                omnigraph.init(store.uri, SCHEMA, storage_options=store.options, force=force)
            assert caught.value.address == store.address.root
        assert stored(store) == before

    def test_with_a_schema_that_has_mistakes(self, store: Store) -> None:
        with pytest.raises(SchemaError):
            omnigraph.init(store.uri, "node Person { name: Strin }", storage_options=store.options)
        assert stored(store) == {}
        with pytest.raises(GraphNotFound):
            omnigraph.open(store.uri, storage_options=store.options)

    @pytest.mark.parametrize("leftover", [*layout.SCHEMA_FILES, "nodes/x", "edges/x", f"{layout.COMMITS}/x"])
    def test_over_files_that_may_belong_to_a_graph(self, store: Store, leftover: str) -> None:
        objects = store.objects()
        objects.put(leftover, b"mine")
        before = stored(store)
        with pytest.raises(NotAGraph, match=leftover.partition("/")[0]):
            omnigraph.init(store.uri, SCHEMA, storage_options=store.options)
        assert stored(store) == before
        graph = omnigraph.init(store.uri, SCHEMA, storage_options=store.options, force=True)
        assert graph.schema == SCHEMA

    @pytest.mark.parametrize("uri", ["", "  ", "ftp://host/g", "s3://", "memory://", "file://host/g"])
    def test_at_an_address_that_leads_nowhere(self, uri: str) -> None:
        with pytest.raises(InvalidAddress):
            omnigraph.init(uri, SCHEMA)
        with pytest.raises(InvalidAddress):
            omnigraph.open(uri)


class TestOpening:
    @pytest.mark.parametrize("read_only", [True, False])
    def test_where_nothing_is(self, store: Store, read_only: bool) -> None:
        with pytest.raises(GraphNotFound, match="omnigraph init"):
            omnigraph.open(store.uri, read_only=read_only, storage_options=store.options)
        assert stored(store) == {}

    @pytest.mark.parametrize("read_only", [True, False])
    def test_what_is_no_graph(self, store: Store, read_only: bool) -> None:
        store.objects().put("notes.txt", b"mine")
        before = stored(store)
        with pytest.raises(NotAGraph, match=layout.MANIFEST):
            omnigraph.open(store.uri, read_only=read_only, storage_options=store.options)
        assert stored(store) == before

    def test_an_empty_folder(self, tmp_path: Path) -> None:
        with pytest.raises(GraphNotFound):
            omnigraph.open(tmp_path)
        assert files(tmp_path) == {}

    @pytest.mark.parametrize("read_only", [True, False])
    def test_a_file(self, tmp_path: Path, read_only: bool) -> None:
        file = tmp_path / "g"
        file.write_text("mine")
        with pytest.raises(NotAGraph):
            omnigraph.open(file, read_only=read_only)
        assert file.read_text() == "mine"

    def test_a_bucket_that_is_not_there(self, s3_store: Store) -> None:
        with pytest.raises(StorageUnavailable, match="s3://nowhere/g"):
            omnigraph.open("s3://nowhere/g", storage_options=s3_store.options)


class TestAFileInTheWay:
    def test_where_the_graph_should_be(self, tmp_path: Path) -> None:
        file = tmp_path / "g"
        file.write_text("mine")
        with pytest.raises(StorageUnavailable, match="g/"):
            omnigraph.init(file, SCHEMA)
        assert file.read_text() == "mine"

    def test_where_its_folder_should_be(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("mine")
        with pytest.raises(StorageUnavailable, match="file/g"):
            omnigraph.init(tmp_path / "file" / "g", SCHEMA)
        with pytest.raises(GraphNotFound):
            omnigraph.open(tmp_path / "file" / "g")
        assert (tmp_path / "file").read_text() == "mine"


@pytest.fixture
def anyones() -> Iterator[Path]:
    """A folder that everybody may read."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)


class TestADiskThatCannotBeWritten:
    """Root may write anywhere, so another process asks that is nobody."""

    def test_a_graph_on_it_can_be_read(self, anyones: Path) -> None:
        omnigraph.init(anyones / "g", SCHEMA).create_branch("dev")
        before = files(anyones)
        for path in (anyones, *anyones.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        with children((read_and_try_to_write, str(anyones / "g"))) as (child,):
            assert child.hear() == "read 3 tables, 2 branches"
            for _ in range(2):
                assert child.hear() == "StorageUnavailable"
            child.join()
        assert files(anyones) == before

    def test_no_graph_is_created_on_it(self, anyones: Path) -> None:
        anyones.chmod(0o555)
        with children((try_to_create, str(anyones / "g"))) as (child,):
            assert child.hear() == "StorageUnavailable"
            child.join()
        assert files(anyones) == {}


def become_nobody() -> None:
    if os.geteuid() == 0:
        os.seteuid(65534)


def read_and_try_to_write(uri: str) -> None:
    """In a child: look at a graph, then change its branches."""
    become_nobody()
    reader = omnigraph.open(uri, read_only=True)
    say(f"read {len(reader.snapshot().tables)} tables, {len(reader.branches())} branches")
    writer = omnigraph.open(uri)
    for change, name in ((writer.create_branch, "dev2"), (writer.delete_branch, "dev")):
        try:
            change(name)
        except OmniError as error:
            say(type(error).__name__)


def try_to_create(uri: str) -> None:
    """In a child: create a graph."""
    become_nobody()
    try:
        omnigraph.init(uri, SCHEMA)
    except OmniError as error:
        say(type(error).__name__)


class TestBranchesAndCommits:
    def test_nothing_is_written_for_a_wrong_name(self, store: Store) -> None:
        graph = omnigraph.init(store.uri, SCHEMA, storage_options=store.options)
        graph.create_branch("dev")
        graph.create_branch("dev2", from_="dev")
        before = stored(store)
        for wrong, error in WRONG:
            with pytest.raises(error):
                wrong(graph)
        assert stored(store) == before


WRONG: list[tuple[Callable[[Graph], object], type[OmniError]]] = [
    (lambda g: g.create_branch("a b"), InvalidBranchName),
    (lambda g: g.create_branch("main"), InvalidBranchName),
    (lambda g: g.create_branch("dev/1"), InvalidBranchName),
    (lambda g: g.create_branch("dev"), BranchExists),
    (lambda g: g.create_branch("new", from_="ghost"), BranchNotFound),
    (lambda g: g.delete_branch("main"), BranchProtected),
    (lambda g: g.delete_branch("dev"), BranchInUse),
    (lambda g: g.delete_branch("ghost"), BranchNotFound),
    (lambda g: g.branch("ghost"), BranchNotFound),
    (lambda g: g.snapshot("ghost"), BranchNotFound),
    (lambda g: g.commits("ghost"), BranchNotFound),
    (lambda g: g.commit("ghost"), SnapshotNotFound),
    (lambda g: g.snapshot(at="ghost"), SnapshotNotFound),
    (lambda g: g.snapshot(at=99), SnapshotNotFound),
    (lambda g: g.commits(after="ghost"), SnapshotNotFound),
]
"""What can be asked for that is not there, and what it is called."""


def test_every_refusal_says_what_to_do(tmp_path: Path) -> None:
    graph: Graph = omnigraph.init(tmp_path, SCHEMA)
    graph.create_branch("dev")
    graph.create_branch("dev2", from_="dev")
    for wrong, error in WRONG:
        with pytest.raises(error) as caught:
            wrong(graph)
        assert ";" in str(caught.value) or ":" in str(caught.value), str(caught.value)
