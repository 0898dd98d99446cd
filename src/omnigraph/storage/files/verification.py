"""Comparing the files of a table with their checksums, once for each file and process, before rows are read."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any, Final

from lance import LanceDataset

from omnigraph.errors import RequestError
from omnigraph.storage.files.checksums import verify_data, verify_deletion, verify_index
from omnigraph.storage.files.fragments import fragments_of
from omnigraph.storage.files.names import name_of
from omnigraph.storage.files.staged import deletion_path, local_folder

_VARIABLE: Final = "OMNIGRAPH_VERIFY"
LOOKUP_BYTES: Final = 256 << 20
"""A look-up of single rows checks files up to so many bytes first; a pass over columns checks all it reads."""


def is_on() -> bool:
    """Are files compared? RequestError if the setting says neither yes nor no."""
    setting = os.environ.get(_VARIABLE, "on").strip().lower()
    if setting not in ("on", "off"):
        raise RequestError(f"{_VARIABLE} is {setting!r}; it is 'on' or 'off'")
    return setting == "on"


class Verification:
    """The files this process has found whole. Files never change, so each is looked at once."""

    def __init__(self) -> None:
        self._whole: set[Path] = set()
        self._lock = threading.Lock()

    def check_rows(
        self, handle: LanceDataset, limit: int | None = None, fragments: Collection[int] | None = None
    ) -> None:
        """Compare the data and deletion files of a version, or of some of its fragments; ObjectDamaged names the
        first that is not whole. With a ``limit`` unknown files are read up to so many bytes.
        """
        folder = local_folder(handle.uri)
        if folder is None or not is_on():
            return
        budget = limit
        for path, verify in _files(handle, folder, fragments):
            if path in self._whole:
                continue
            if budget is not None:
                budget -= path.stat().st_size if path.is_file() else 0
                if budget < 0:
                    return
            verify(path)
            self._note(path)

    def check_indexes(self, handle: LanceDataset, limit: int) -> None:
        """Compare the files of a version's indexes, up to so many bytes."""
        folder = local_folder(handle.uri)
        if folder is None or not is_on():
            return
        for path in _index_folders(handle, folder):
            if path in self._whole or not path.is_dir():
                continue
            limit -= sum(file.stat().st_size for file in path.rglob("*"))
            if limit < 0:
                return
            verify_index(path)
            self._note(path)

    def _note(self, path: Path) -> None:
        with self._lock:
            self._whole.add(path)


def _files(
    handle: LanceDataset, folder: Path, fragments: Collection[int] | None
) -> Iterator[tuple[Path, Callable[[Path], None]]]:
    """The data and deletion files of a version, wherever branches share them, each with its comparison."""
    bases = _bases(handle)
    for fragment in fragments_of(handle):
        if fragments is not None and fragment.id not in fragments:
            continue
        for file in fragment.files:
            root = folder if file.base_id is None else bases[file.base_id]
            yield root / "data" / name_of(file), verify_data
        if fragment.deletion_file is not None:
            deletion: Any = fragment.deletion_file
            yield _deletion(fragment.id, deletion.asdict(), folder, bases), verify_deletion


def _deletion(number: int, deletion: dict[str, Any], folder: Path, bases: dict[int, Path]) -> Path:
    root = folder if deletion["base_id"] is None else bases[deletion["base_id"]]
    return deletion_path(root, number, deletion)


def _index_folders(handle: LanceDataset, folder: Path) -> Iterator[Path]:
    bases = _bases(handle)
    for found in handle.describe_indices():
        for segment in found.segments:
            root = folder if segment.base_id is None else bases[segment.base_id]
            yield root / "_indices" / str(segment.uuid)


def _bases(handle: LanceDataset) -> dict[int, Path]:
    """The folders of the tables whose files a branch shares, by the numbers under which it refers to them."""
    return {number: local_folder(base.path) or Path(base.path) for number, base in handle.base_paths().items()}
