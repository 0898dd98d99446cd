"""Lines out of the middle of files: each is in one range only, wherever the cuts are."""

from __future__ import annotations

import gzip
import itertools
from codecs import BOM_UTF8
from pathlib import Path

import obstore
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.stores import Store

from omnigraph.bulk.ranges import Lines, read_range, unpacked
from omnigraph.errors import SourceUnusable
from omnigraph.storage.control.remote import s3_store as client_of

_BITS = st.sampled_from([b"\n", b"\r\n", b"a", b"bc", "é".encode(), "😀".encode(), b"\xff", b" ", b"//", b""])
_CONTENTS = st.lists(_BITS, max_size=30).map(b"".join)


def write(folder: Path, content: bytes) -> str:
    path = folder / "lines.jsonl"
    path.write_bytes(content)
    return str(path)


def read_all(name: str, cuts: list[int], options: dict[str, str] | None = None, **limits: int) -> list[Lines]:
    return [read_range(name, options or {}, low, high, **limits) for low, high in itertools.pairwise(cuts)]


@settings(deadline=None)
@given(content=_CONTENTS, places=st.lists(st.integers(0, 60), max_size=8), more=st.integers(1, 4))
def test_every_line_is_in_exactly_one_range(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, places: list[int], more: int
) -> None:
    name = write(tmp_path_factory.mktemp("ranges"), content)
    cuts = sorted({0, len(content), *(place for place in places if place < len(content))})
    found = read_all(name, cuts, chunk_bytes=more)
    assert b"".join(lines.data for lines in found) == content
    for low, high, lines in zip(cuts, cuts[1:], found, strict=False):
        begins = [at for at in range(low, high) if at == 0 or content[at - 1 : at] == b"\n"]
        assert bool(lines.data) == bool(begins)
        assert lines.overlong is None


@settings(deadline=None)
@given(content=_CONTENTS, places=st.lists(st.integers(0, 12), max_size=4), size=st.integers(1, 12))
def test_a_byte_order_mark_is_skipped_at_the_beginning_only(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, places: list[int], size: int
) -> None:
    content += b"\n" + BOM_UTF8 + b"x"
    marked = BOM_UTF8 + content
    folder = tmp_path_factory.mktemp("marked")
    found = read_all(write(folder, marked), sorted({0, len(marked), *places}))
    assert b"".join(lines.data for lines in found) == content
    (folder / "lines.gz").write_bytes(gzip.compress(marked))
    unzipped = unpacked(str(folder / "lines.gz"), {}, "gzip", size)
    assert b"".join(lines.data for lines in unzipped) == content


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
@pytest.mark.parametrize("length", [9, 10, 11, 25])
def test_a_line_that_is_too_long(tmp_path: Path, length: int, end: bytes) -> None:
    """It is told by its length and never held; the lines around it are read, wherever the cut is."""
    line = b"x" * length + end
    after = b"b\n" if end else b""
    content = b"a\n" + line + after
    name = write(tmp_path, content)
    for cut in range(3, 2 + length):
        first, second = read_all(name, [0, cut, len(content)], longest=10, chunk_bytes=4)
        assert second.data == after
        if length <= 10:
            assert first == Lines(b"a\n" + line)
        else:
            assert first == Lines(b"a\n", length)


@pytest.mark.parametrize("line", [b"//" + b"x" * 20, b"  // " + b"x" * 20, b" " * 30, b"\t" * 12 + b"\r"])
def test_a_long_line_without_a_record(tmp_path: Path, line: bytes) -> None:
    """A comment, or blanks, are no record, however long: as when the whole file is read at once."""
    name = write(tmp_path, b"a\n" + line + b"\nb\n")
    for cut in range(3, 2 + len(line)):
        first, second = read_all(name, [0, cut, len(line) + 5], longest=10, chunk_bytes=4)
        assert (first, second) == (Lines(b"a\n//\n"), Lines(b"b\n"))


@settings(deadline=None)
@given(content=_CONTENTS, size=st.integers(1, 12))
def test_a_compressed_file_comes_in_whole_lines(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, size: int
) -> None:
    path = tmp_path_factory.mktemp("packed") / "lines.jsonl.gz"
    path.write_bytes(gzip.compress(content))
    found = list(unpacked(str(path), {}, "gzip", size))
    assert b"".join(lines.data for lines in found) == content
    assert all(lines.data.endswith(b"\n") for lines in found[:-1])


@pytest.mark.parametrize("compression", ["gzip", "zstd"])
def test_a_line_that_is_too_long_in_a_compressed_file(tmp_path: Path, compression: str) -> None:
    path = tmp_path / "packed"
    content = b"a\n" + b"x" * 30 + b"\r\nb\n//" + b"y" * 30 + b"\nc\n" + b"z" * 40
    with pa.CompressedOutputStream(str(path), compression) as stream:
        stream.write(content)
    found = list(unpacked(str(path), {}, compression, 7, longest=10, chunk_bytes=4))
    assert b"".join(lines.data for lines in found) == b"a\nb\n//\nc\n"
    assert [lines.overlong for lines in found if lines.overlong is not None] == [30, 40]


def test_files_that_are_gone_or_broken(tmp_path: Path) -> None:
    with pytest.raises(SourceUnusable, match="No such file"):
        read_range(str(tmp_path / "none"), {}, 0, 10)
    broken = tmp_path / "broken.gz"
    broken.write_bytes(gzip.compress(b"a\n" * 1000)[:-20])
    with pytest.raises(SourceUnusable, match="cannot be unpacked as gzip"):
        list(unpacked(str(broken), {}, "gzip", 100))
    with pytest.raises(SourceUnusable, match="it is gone"):
        list(unpacked(str(tmp_path / "none"), {}, "gzip", 100))


def test_objects_in_a_bucket(s3_store: Store) -> None:
    content = "ä\nbb\r\n\nccc".encode()
    client, key = client_of(s3_store.address), f"{s3_store.address.prefix}/lines.jsonl"
    obstore.put(client, key, content)
    obstore.put(client, f"{key}.gz", gzip.compress(content))
    name = f"s3://bucket/{key}"
    for cut in range(1, len(content)):
        first, second = read_all(name, [0, cut, len(content)], s3_store.options)
        assert first.data + second.data == content
        assert first.data.endswith(b"\n") or not second.data
    found = list(unpacked(f"{name}.gz", s3_store.options, "gzip", 4))
    assert b"".join(lines.data for lines in found) == content
    with pytest.raises(SourceUnusable, match="it is gone"):
        read_range(f"{name}.none", s3_store.options, 0, 1)
    with pytest.raises(SourceUnusable, match="it is gone"):
        list(unpacked(f"{name}.none", s3_store.options, "gzip", 4))
