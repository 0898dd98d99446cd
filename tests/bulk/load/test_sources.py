"""What a load is given: files, directories, globs, on disk or in a bucket, and how they are cut."""

from __future__ import annotations

import itertools
from pathlib import Path

import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.stores import Store

from omnigraph.bulk.load.sources.files import SourceFile
from omnigraph.bulk.load.sources.finding import find_files, find_sources
from omnigraph.bulk.load.sources.slices import slices_of
from omnigraph.errors import SourceUnusable
from omnigraph.formats.format import Format
from omnigraph.lang.schema.catalog import load_catalog
from omnigraph.settings import BulkSettings
from omnigraph.storage.control.remote import s3_store as client_of

CATALOG = load_catalog("node Person { name: String @key }\nedge Knows: Person -> Person")
TREE = (
    "a.jsonl",
    "b.ndjson.gz",
    "c/d.json.zst",
    "c/deep/e.jsonl",
    "_SUCCESS",
    ".hidden.jsonl",
    "_tmp/f.jsonl",
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in TREE:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    return tmp_path


def names(files: list[SourceFile], below: object) -> list[str]:
    return [file.name.removeprefix(f"{below}/") for file in files]


@pytest.mark.parametrize(
    ("place", "found"),
    [
        ("a.jsonl", ["a.jsonl"]),
        ("", ["a.jsonl", "b.ndjson.gz", "c/d.json.zst", "c/deep/e.jsonl"]),
        ("c/", ["c/d.json.zst", "c/deep/e.jsonl"]),
        ("*.jsonl", ["a.jsonl"]),
        ("?.*", ["a.jsonl", "b.ndjson.gz"]),
        ("[ab].*", ["a.jsonl", "b.ndjson.gz"]),
        ("**/*.jsonl", ["a.jsonl", "c/deep/e.jsonl"]),
        ("*", ["a.jsonl", "b.ndjson.gz", "c/d.json.zst", "c/deep/e.jsonl"]),
        ("c/d*", ["c/d.json.zst", "c/deep/e.jsonl"]),
    ],
)
def test_places(tree: Path, s3_store: Store, place: str, found: list[str]) -> None:
    """The same places name the same files on a disk and in a bucket."""
    files = find_files([f"{tree}/{place}"], CATALOG, {})
    assert names(files, tree) == found
    assert [file.size for file in files] == [len(name) for name in found]
    root = s3_store.address.prefix
    for name in TREE:
        obstore.put(client_of(s3_store.address), f"{root}/{name}", name.encode())
    stored = find_files([f"s3://bucket/{root}/{place}"], CATALOG, s3_store.options)
    assert names(stored, f"s3://bucket/{root}") == found
    assert [file.size for file in stored] == [len(name) for name in found]


def test_formats_by_name(tree: Path) -> None:
    files = {Path(file.name).name: file for file in find_files([tree], CATALOG, {})}
    assert {name: (file.format, file.compression) for name, file in files.items()} == {
        "a.jsonl": (Format.JSONL, None),
        "b.ndjson.gz": (Format.JSONL, "gzip"),
        "d.json.zst": (Format.JSONL, "zstd"),
        "e.jsonl": (Format.JSONL, None),
    }


def test_a_file_that_is_named_needs_no_suffix(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tree / "people").write_text("{}")
    monkeypatch.chdir(tree)
    for place in (tree / "people", "people", "./people", f"file://{tree}/people"):
        [file] = find_files([place], CATALOG, {})
        assert (file.format, Path(file.name).name) == (Format.JSONL, "people")
    for place in (tree, f"{tree}/p*"):
        with pytest.raises(SourceUnusable, match="its name does not say how its records are written"):
            find_files([place], CATALOG, {})


def test_several_places_in_their_order_and_each_file_once(tree: Path) -> None:
    files = find_files([tree / "c", f"{tree}/*.jsonl", tree / "a.jsonl"], CATALOG, {})
    assert names(files, tree) == ["c/d.json.zst", "c/deep/e.jsonl", "a.jsonl"]


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("none.jsonl", "there is no such file or directory"),
        ("*.csv", "no file matches"),
        ("empty", "the directory has no files"),
        ("x.parquet.gz", "cannot be read as Parquet packed with gzip"),
        ("x.parquet", "cannot be read as Parquet"),
    ],
)
def test_places_without_files(tmp_path: Path, place: str, said: str) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("x.parquet", "x.parquet.gz"):
        (tmp_path / name).write_text("x")
    with pytest.raises(SourceUnusable, match=said):
        find_files([tmp_path / place], CATALOG, {})


def test_a_bucket_without_objects(s3_store: Store) -> None:
    for place, said in (("none.jsonl", "no such object or prefix"), ("none/*.jsonl", "no object matches")):
        with pytest.raises(SourceUnusable, match=said):
            find_files([f"{s3_store.uri}/{place}"], CATALOG, s3_store.options)


def test_a_worker_gets_the_settings_of_this_process(s3_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    obstore.put(client_of(s3_store.address), f"{s3_store.address.prefix}/a.jsonl", b"{}")
    for variable, value in s3_store.environment().items():
        monkeypatch.setenv(variable, value)
    [file] = find_files([f"{s3_store.uri}/a.jsonl"], CATALOG, {})
    assert dict(file.options) == s3_store.options
    assert "secret" not in repr(file)


def parquet(path: Path, metadata: dict[str, str] | None = None, rows: int = 1, group: int = 1) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    names = [f"n{index}" for index in range(rows)]
    is_edge = "edges/Knows" in str(path) and not metadata and "nodes/Person" not in str(path)
    columns = {"src": names, "dst": names} if is_edge else {"name": names}
    table = pa.table(columns).replace_schema_metadata(metadata)
    pq.write_table(table, path, row_group_size=group)
    return path


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("nodes/Person/part-0.parquet", "node:Person"),
        ("nodes/Person.parquet", "node:Person"),
        ("nodes/Person/year=2024/x.parquet", "node:Person"),
        ("edges/Knows/x.pq", "edge:Knows"),
        ("nodes/export/edges/Knows/x.parquet", "edge:Knows"),
        ("edges/export/nodes/Person/x.parquet", "node:Person"),
    ],
)
def test_the_type_of_parquet_rows_by_folder(tmp_path: Path, path: str, key: str) -> None:
    parquet(tmp_path / path)
    [file] = find_files([tmp_path], CATALOG, {})
    assert file.table_key == key
    noted = parquet(tmp_path / "x" / path, {"omnigraph.table": "node:Person"})
    assert find_files([noted], CATALOG, {})[0].table_key == "node:Person"


def test_parquet_of_no_known_type(tmp_path: Path) -> None:
    for path, said in (
        ("x.parquet", "it does not say the type of its rows"),
        ("nodes/Nobody/x.parquet", "node:Nobody, which the schema has not"),
        ("nodes.parquet", "it does not say"),
    ):
        with pytest.raises(SourceUnusable, match=f"{said}.*--nodes TYPE=PATH"):
            find_files([parquet(tmp_path / path)], CATALOG, {})
    [file] = find_sources(CATALOG, {}, None, {"Person": tmp_path / "x.parquet"}).files
    assert (file.table_key, file.format) == ("node:Person", Format.PARQUET)


def source(size: int, name: str = "x", compression: str | None = None) -> SourceFile:
    return SourceFile(name, size, Format.JSONL, compression)


SMALL = BulkSettings(slice_bytes=100, smallest_slice=10)


def test_slices_cover_their_files_and_are_even() -> None:
    for size in (0, 1, 9, 10, 99, 100, 101, 1234):
        slices = slices_of([source(size)], 2, SMALL)
        assert (slices[0].start, slices[-1].stop) == (0, size)
        assert all(a.stop == b.start for a, b in itertools.pairwise(slices))
        lengths = [part.stop - part.start for part in slices]
        assert max(lengths) - min(lengths) <= 1
        assert max(lengths) <= 150


def test_slices_keep_all_cores_busy() -> None:
    assert len(slices_of([source(80)], 4, SMALL)) == 8
    assert len(slices_of([source(450)], 4, SMALL)) == 8
    assert len(slices_of([source(12)], 4, SMALL)) == 1
    slices = slices_of([source(150, "a"), source(0, "b"), source(150, "c")], 2, SMALL)
    assert [(part.number, part.file.name[-1]) for part in slices] == [*enumerate("aaaabcccc")]
    assert len(slices_of([source(1000, compression="gzip")], 4, SMALL)) == 1
    assert slices_of([], 4, BulkSettings()) == []


def test_slices_of_parquet_are_row_groups(tmp_path: Path) -> None:
    parquet(tmp_path / "nodes/Person.parquet", rows=10, group=3)
    files = find_files([tmp_path], CATALOG, {})
    single = slices_of(files, 1, BulkSettings(slice_bytes=1, smallest_slice=1))
    assert [(part.start, part.stop) for part in single] == [(0, 1), (1, 2), (2, 3), (3, 4)]
    whole = slices_of(files, 1, BulkSettings(slice_bytes=10**6, smallest_slice=1))
    assert [(part.start, part.stop) for part in whole] == [(0, 4)]
