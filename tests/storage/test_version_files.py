"""What a version refers to: read from its file, compared with what Lance itself says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import lance
import pytest
from tests.stores import Store

import omnigraph
from omnigraph import Graph
from omnigraph.errors import ObjectDamaged
from omnigraph.storage import layout
from omnigraph.storage.files.versionfiles import VersionReader

SCHEMA = """
node Person { name: String @key  age: I32?  text: String? @index  photo: Blob? }
edge Knows: Person -> Person
"""


@pytest.fixture
def graph(local_store: Store) -> Graph:
    """Tables with deletions, indexes, blobs, compacted fragments, and a branch of a branch."""
    graph = omnigraph.init(local_store.uri, SCHEMA)
    for number in range(4):
        graph.load([{"type": "Person", "data": {"name": f"p{number}", "age": number}}], mode="append")
    graph.ensure_indices()
    graph.mutate('query q() { delete Person where name = "p1" }')
    graph.create_branch("one")
    graph.mutate('query q() { update Person set { age: 9 } where name = "p2" }', branch="one")
    graph.create_branch("two/x", from_="one")
    graph.mutate('query q() { insert Person { name: "new" } }', branch="two/x")
    graph.mutate('query q() { delete Person where name = "p3" }', branch="two/x")
    graph.optimize()
    graph.optimize(branch="one")
    return graph


def versions(graph: Graph) -> Iterator[tuple[str, Path]]:
    """Each version of each table: where its tree lies, and its file."""
    root = Path(graph.address)
    locations = {pin.location for pin in graph.snapshot().tables.values()} | {layout.MANIFEST}
    for location in sorted(locations):
        for path in sorted((root / location).rglob("_versions/*.manifest")):
            yield location, path


def expected(tree: Path, version: int, root: Path) -> set[str]:
    """What Lance says that a version refers to, as keys."""
    handle = lance.dataset(str(tree), version=version)
    found = set()
    for fragment in handle.get_fragments():
        for path in [*fragment.data_files(), *filter(None, [fragment.deletion_file()])]:
            name = path if isinstance(path, str) else f"data/{path.path}"
            found.add(name)
    return found | {f"_indices/{part.uuid}" for index in handle.describe_indices() for part in index.segments}


def test_every_version_refers_to_what_lance_says(graph: Graph) -> None:
    root, seen = Path(graph.address), 0
    for location, path in versions(graph):
        tree, key = path.parent.parent, str(path.relative_to(root))
        found = VersionReader(location).references(key, path.read_bytes())
        assert all((root / one).exists() for one in found), "whatever it refers to is there"
        version = layout.version_of(path.name)
        assert version is not None
        named = {"/".join(one.split("/")[-2:]) for one in found if "/_transactions/" not in one}
        assert named == {"/".join(one.split("/")[-2:]) for one in expected(tree, version, root)}
        seen += len(found)
    assert seen > 20


def test_a_transaction_that_the_version_holds_itself_needs_no_file(graph: Graph) -> None:
    found = [
        VersionReader(location).references(str(path.relative_to(graph.address)), path.read_bytes())
        for location, path in versions(graph)
    ]
    assert not [key for keys in found for key in keys if "/_transactions/" in key]
    for path in Path(graph.address).rglob("_transactions/*.txn"):
        path.unlink()
    again = omnigraph.open(graph.address)
    again.mutate('query q() { insert Person { name: "later" } }')
    again.merge("two/x")
    pin = again.snapshot().tables["node:Person"]
    assert again._repository.tables.transaction_id(pin.ref) is not None


def test_a_graph_that_was_moved_still_knows_its_files(graph: Graph, tmp_path: Path) -> None:
    """Branches note the address at which they were forked."""
    for location, path in versions(graph):
        key = str(path.relative_to(graph.address))
        elsewhere = path.read_bytes().replace(graph.address.encode(), b"/" * len(graph.address))
        if elsewhere != path.read_bytes():
            assert VersionReader(location).references(key, elsewhere) == VersionReader(location).references(
                key, path.read_bytes()
            )


@pytest.mark.parametrize("keep", [0, 3, 16, 100, -1])
def test_a_file_that_is_cut_off_is_refused(graph: Graph, keep: int) -> None:
    location, path = next(versions(graph))
    with pytest.raises(ObjectDamaged, match="cannot be read"):
        VersionReader(location).references(quote(path.name), path.read_bytes()[:keep])


def test_a_feature_that_is_not_known_is_refused(graph: Graph) -> None:
    location, path = next(versions(graph))
    content = path.read_bytes()
    assert b"\x48\x02\x50\x02" in content, "the features of a table with stable row ids"
    for other in (b"\x48\x42\x50\x02", b"\x48\x02\x50\x42"):
        with pytest.raises(ObjectDamaged, match="features 1000010"):
            VersionReader(location).references("x", content.replace(b"\x48\x02\x50\x02", other))
