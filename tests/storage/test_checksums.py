"""Checksums of files that are read in one piece and in several."""

from __future__ import annotations

from pathlib import Path

import pytest
import xxhash

from omnigraph.errors import IncompleteFile, ObjectDamaged
from omnigraph.storage.files.checksums import checksum, checksum_of_whole, verify_data

PIECE = 1 << 18
SIZES = (4, 1 << 16, (1 << 16) + 1, PIECE - 1, PIECE, PIECE + 1, PIECE + 3, PIECE + 4, 3 * PIECE + 2)


def written(folder: Path, size: int, end: bytes = b"LANC") -> Path:
    """A file of that many bytes which ends like this."""
    path = folder / "a.lance"
    path.write_bytes((bytes(range(251)) * (size // 251 + 1))[: size - len(end)] + end)
    return path


@pytest.mark.parametrize("size", SIZES)
def test_a_checksum_is_that_of_all_bytes(tmp_path: Path, size: int) -> None:
    path = written(tmp_path, size)
    expected = xxhash.xxh3_64_intdigest(path.read_bytes())
    assert checksum([path]) == checksum_of_whole(path, size) == expected
    assert checksum([path, path]) == xxhash.xxh3_64_intdigest(path.read_bytes() * 2)


@pytest.mark.parametrize("size", SIZES)
def test_a_file_with_another_end_or_size_is_not_whole(tmp_path: Path, size: int) -> None:
    with pytest.raises(IncompleteFile):
        checksum_of_whole(written(tmp_path, size, b"LANX"), size)
    for told in (size - 1, size + 1):
        with pytest.raises(IncompleteFile):
            checksum_of_whole(written(tmp_path, size), told)


@pytest.mark.parametrize("at", [0, PIECE - 1, PIECE, 2 * PIECE + 1])
def test_a_changed_byte_is_noticed_wherever_it_is(tmp_path: Path, at: int) -> None:
    path = written(tmp_path, 2 * PIECE + 6)
    path = path.rename(tmp_path / f"a-{checksum([path]):016x}.lance")
    verify_data(path)
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)
    with pytest.raises(ObjectDamaged):
        verify_data(path)
