"""Version files of Lance: which files they refer to, and the place that those of branches name."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

from omnigraph.storage.files.versionfiles import (
    Reference,
    VersionReader,
    relocated,
    relocated_transaction,
    roots,
)


@pytest.fixture
def table(tmp_path: Path) -> lance.LanceDataset:
    """A table with an index and deleted rows, a branch of it, and a branch of that."""
    rows = pa.table({"id": [f"r{number}" for number in range(40)], "n": list(range(40))})
    trunk = lance.write_dataset(rows, str(tmp_path / "g/nodes/t"), enable_stable_row_ids=True)
    trunk.create_scalar_index("id", "BTREE")
    branch = trunk.create_branch("dev/x")
    branch.delete("n = 3")
    lance.write_dataset(rows.slice(0, 5), branch, mode="append")
    return lance.dataset(str(tmp_path / "g/nodes/t/tree/dev/x")).create_branch("sub", ("dev/x", None))


def versions(folder: Path) -> list[Path]:
    """The version files of a native branch, oldest first."""
    return sorted((folder / "_versions").glob("*.manifest"), reverse=True)


def references(root: Path, prefix: str) -> set[Reference]:
    reader = VersionReader("nodes/t", prefix)
    return {found for path in versions(root / prefix) for found in reader.references(path.read_bytes())}


@pytest.mark.parametrize("prefix", ["nodes/t", "nodes/t/tree/dev/x", "nodes/t/tree/sub"])
def test_references_are_the_files_that_are_there(table: lance.LanceDataset, tmp_path: Path, prefix: str) -> None:
    root = tmp_path / "g"
    found = references(root, prefix)
    for reference in found:
        path = root / reference.key
        assert path.exists()
        assert reference.size in (None, path.stat().st_size)
    own = {f"{prefix}/{path.relative_to(root / prefix)}" for path in (root / prefix).rglob("data/*.lance")}
    if prefix != "nodes/t":
        assert {reference.key for reference in found} >= own
    assert any(reference.key.endswith("/") and "_indices" in reference.key for reference in found)
    if "tree" in prefix:
        assert any("/_deletions/" in reference.key for reference in found)
        assert any(reference.key.startswith("nodes/t/data/") for reference in found), "the files of the trunk"


@pytest.mark.parametrize("root", ["/x", "/a/much/longer/path/than/there/was/before" * 4, "s3://bucket/g"])
def test_a_version_of_a_branch_is_relocated_and_back_byte_for_byte(
    table: lance.LanceDataset, tmp_path: Path, root: str
) -> None:
    home = str(tmp_path / "g")
    for prefix in ("nodes/t/tree/dev/x", "nodes/t/tree/sub"):
        for path in versions(tmp_path / "g" / prefix):
            content = path.read_bytes()
            assert roots(content, "nodes/t") == {home}
            moved = relocated(content, "nodes/t", root)
            assert roots(moved, "nodes/t") == {root}
            assert home.encode() not in moved
            assert relocated(moved, "nodes/t", home) == content
        for path in (tmp_path / "g" / prefix / "_transactions").iterdir():
            moved = relocated_transaction(path.read_bytes(), "nodes/t", root)
            assert home.encode() not in moved
            assert relocated_transaction(moved, "nodes/t", home) == path.read_bytes()


def test_versions_of_the_trunk_name_no_place(table: lance.LanceDataset, tmp_path: Path) -> None:
    for path in versions(tmp_path / "g/nodes/t"):
        assert roots(path.read_bytes(), "nodes/t") == set()
        assert relocated(path.read_bytes(), "nodes/t", "/x") == path.read_bytes()


def test_lance_reads_relocated_versions(table: lance.LanceDataset, tmp_path: Path) -> None:
    before = {
        name: lance.dataset(str(tmp_path / f"g/nodes/t/tree/{name}")).to_table() for name in ("dev/x", "sub")
    }
    after = tmp_path / "another place"
    (tmp_path / "g").rename(after)
    for name, rows in before.items():
        for path in versions(after / f"nodes/t/tree/{name}"):
            path.write_bytes(relocated(path.read_bytes(), "nodes/t", str(after)))
        found = lance.dataset(str(after / f"nodes/t/tree/{name}"))
        assert found.to_table() == rows
        assert found.count_rows("id = 'r7'") == 1
        assert "ScalarIndexQuery" in found.scanner(filter="id = 'r7'").explain_plan()
        lance.write_dataset(rows.slice(0, 1), found, mode="append")


@pytest.mark.parametrize("cut", [0, 5, 15, 40, 200])
def test_a_file_that_is_not_whole_is_refused(table: lance.LanceDataset, tmp_path: Path, cut: int) -> None:
    content = versions(tmp_path / "g/nodes/t/tree/dev/x")[-1].read_bytes()
    for damaged in (content[:cut], content[cut + 1 :] if cut else b"", content[:-30] + content[-16:]):
        with pytest.raises(ValueError, match=r"its|field|number|wire"):
            relocated(damaged, "nodes/t", "/x")


def test_a_version_that_refers_to_another_table_is_refused(table: lance.LanceDataset, tmp_path: Path) -> None:
    content = versions(tmp_path / "g/nodes/t/tree/sub")[-1].read_bytes()
    with pytest.raises(ValueError, match="no folder of its table"):
        relocated(content, "nodes/other", "/x")


def test_a_transaction_that_the_version_holds_itself_needs_no_file(
    table: lance.LanceDataset, tmp_path: Path
) -> None:
    folder = tmp_path / "g/nodes/t"
    assert not [found for found in references(tmp_path / "g", "nodes/t") if "/_transactions/" in found.key]
    for path in folder.rglob("_transactions/*.txn"):
        path.unlink()
    trunk = lance.dataset(str(folder))
    read = trunk.read_transaction(trunk.version)
    assert read is not None
    assert lance.write_dataset(pa.table({"id": ["new"], "n": [1]}), str(folder), mode="append").count_rows() == 41


def test_a_transaction_of_another_version_is_no_substitute(table: lance.LanceDataset, tmp_path: Path) -> None:
    path = versions(tmp_path / "g/nodes/t")[0]
    name = next((tmp_path / "g/nodes/t/_transactions").glob("0-*.txn")).name
    other = path.read_bytes().replace(name.encode(), b"9" + name.encode()[1:])
    found = {reference.key for reference in VersionReader("nodes/t", "nodes/t").references(other)}
    assert f"nodes/t/_transactions/9{name[1:]}" in found
