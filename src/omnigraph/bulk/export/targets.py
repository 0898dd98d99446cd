"""Where an export goes: a file or a directory, on a disk or in a bucket.

A file appears whole or not at all. A directory is complete when it has its `_SUCCESS`, which is written last.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

import obstore
from obstore.store import S3Store
from ulid import ULID

from omnigraph.errors import ExportRefused, StorageUnavailable
from omnigraph.formats.format import Format
from omnigraph.storage.address import Scheme, parse_address
from omnigraph.storage.control.remote import s3_store
from omnigraph.storage.unavailable import translated

MARKER: Final = "_SUCCESS"
RUNS: Final = "_runs"
_OWN: Final = re.compile(rf"{MARKER}|{RUNS}/.*|(?:nodes|edges)/[^/]+/\.?part-\d+\.(?:jsonl|parquet)[^/]*")
_PARTIAL: Final = ".partial"
_UPLOAD: Final = 16 << 20
"""The size of the parts of a multipart upload. An object may have ten thousand."""


@dataclass(frozen=True, slots=True)
class Target:
    """A file or directory for an export. Workers get it by pickle. ``root`` has no slash at its end."""

    root: str
    is_directory: bool
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        return f"{self.root}/" if self.is_directory else self.root

    @property
    def is_remote(self) -> bool:
        return self.root.startswith(f"{Scheme.S3}://")

    def name(self, path: str) -> str:
        """The full name of a file of the export; the empty path is the target itself."""
        return f"{self.root}/{path}" if path else self.root

    def write_chunks(self, path: str, chunks: Iterable[bytes | memoryview]) -> int:
        """Write a file from chunks of bytes; its size."""
        size = 0

        def counted() -> Iterator[bytes | memoryview]:
            nonlocal size
            for chunk in chunks:
                size += len(chunk)
                yield chunk

        if not self.is_remote:
            with self._local_file(path) as file:
                file.writelines(counted())
            return size
        store, key = self._object(path)
        with self._translated(path):
            obstore.put(store, key, counted(), chunk_size=_UPLOAD, max_concurrency=4)
        return size

    def write_file(self, path: str, fill: Callable[[IO[bytes]], object]) -> int:
        """Write a file by a function that needs a file object; its size."""
        if not self.is_remote:
            with self._local_file(path) as file:
                fill(file)
                return file.tell()
        store, key = self._object(path)
        with tempfile.NamedTemporaryFile(prefix="omnigraph-export-") as file:
            fill(file.file)
            file.flush()
            size = file.tell()
            with self._translated(path):
                obstore.put(store, key, Path(file.name), chunk_size=_UPLOAD, max_concurrency=4)
        return size

    def prepare(self, *, force: bool) -> bool:
        """Refuse a target with content; with ``force``, remove an export. True for an existing directory."""
        if not self.is_directory:
            if self.exists("") and not force:
                raise ExportRefused(f"to {self}", "it exists; force replaces it")
            if not self.is_remote and not Path(self.root).parent.is_dir():
                raise ExportRefused(f"to {self}", f"there is no directory {Path(self.root).parent}")
            return False
        if not self.is_remote and Path(self.root).exists() and not Path(self.root).is_dir():
            raise ExportRefused(f"to {self}", "it is a file")
        existed = not self.is_remote and Path(self.root).is_dir()
        present = self.files()
        if not present:
            return existed
        foreign = next((path for path in present if not _OWN.fullmatch(path)), None)
        if foreign is not None:
            raise ExportRefused(f"to {self}", f"it holds {foreign}, which no export wrote; choose another place")
        if not force:
            what = "an export" if MARKER in present else "an export that was not finished"
            raise ExportRefused(f"to {self}", f"it holds {what}; force replaces it")
        self.remove(with_root=False)
        return existed

    def remove(self, *, with_root: bool) -> None:
        """Remove the files of an export, and directories that are empty then."""
        if not self.is_directory:
            return
        own = [path for path in self.files() if _OWN.fullmatch(path)]
        with self._translated(""):
            # The marker goes first: if this is interrupted, the rest must not look like a complete export.
            self._delete([path for path in own if path == MARKER])
            self._delete([path for path in own if path != MARKER])
            if not self.is_remote:
                for folder, _, _ in os.walk(self.root, topdown=False):
                    if (with_root or folder != self.root) and not any(Path(folder).iterdir()):
                        Path(folder).rmdir()

    def discard(self, folder: str) -> None:
        """Remove a folder of the export with its files."""
        with self._translated(folder):
            if not self.is_remote:
                shutil.rmtree(self.name(folder), ignore_errors=True)
                return
            self._delete([path for path in self.files() if path.startswith(f"{folder}/")])

    def discard_partial(self) -> None:
        """Remove the incomplete files of tasks that were killed and retried."""
        if not self.is_remote:
            self._delete([path for path in self.files() if path.endswith(_PARTIAL)])

    def exists(self, path: str) -> bool:
        return self.size(path) is not None

    def size(self, path: str) -> int | None:
        """The size of a file; None if it does not exist."""
        with self._translated(path):
            try:
                if not self.is_remote:
                    return Path(self.name(path)).stat().st_size
                store, key = self._object(path)
                return int(obstore.head(store, key)["size"])
            except FileNotFoundError:
                return None

    def files(self) -> list[str]:
        """The paths of all files below a directory, sorted."""
        if not self.is_remote:
            root = Path(self.root)
            return sorted(str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir())
        store, key = self._object("")
        prefix = f"{key}/" if key else ""
        with self._translated(""):
            pages = list(obstore.list(store, prefix or None))
        return sorted(str(entry["path"]).removeprefix(prefix) for page in pages for entry in page)

    def _delete(self, paths: list[str]) -> None:
        if self.is_remote:
            if paths:
                obstore.delete(self._object("")[0], [self._object(path)[1] for path in paths])
            return
        for path in paths:
            Path(self.name(path)).unlink(missing_ok=True)

    @contextmanager
    def _local_file(self, path: str) -> Iterator[IO[bytes]]:
        """A file that gets its name when it is complete."""
        final = Path(self.name(path))
        partial = final.with_name(f".{final.name}.{ULID()}{_PARTIAL}")
        with self._translated(path):
            if self.is_directory:
                final.parent.mkdir(parents=True, exist_ok=True)
            try:
                with partial.open("xb") as file:
                    yield file
                partial.replace(final)
            except BaseException:
                partial.unlink(missing_ok=True)
                raise

    def _object(self, path: str) -> tuple[S3Store, str]:
        """The bucket and the key of a file."""
        bucket, _, key = self.name(path).removeprefix(f"{Scheme.S3}://").partition("/")
        return s3_store(parse_address(f"{Scheme.S3}://{bucket}", self.options)), key

    def _translated(self, path: str) -> AbstractContextManager[None]:
        return translated(self.name(path))


def parse_target(
    location: str | os.PathLike[str], form: Format, options: Mapping[str, str] | None = None
) -> Target:
    """The target at a location. It is a directory if it ends in `/`, if it is one already, and for Parquet."""
    text = os.fspath(location)
    if not text.strip():
        raise ExportRefused("to ''", "it names no place")
    is_directory = text.endswith("/") or form is Format.PARQUET
    if text.startswith(f"{Scheme.S3}://"):
        address = parse_address(text, options)
        if not address.prefix and not is_directory:
            raise ExportRefused(f"to {text}", "it names a bucket, but no object; end it with / to fill the bucket")
        return Target(address.root, is_directory, dict(address.options))
    scheme, separator, rest = text.partition("://")
    if separator and scheme != Scheme.LOCAL:
        raise ExportRefused(f"to {text}", "exports go to local paths, file:// and s3://")
    path = Path(rest if separator else text).expanduser().absolute()
    return Target(str(path), is_directory or path.is_dir())


def check_arrived(target: Target, sizes: Mapping[str, int]) -> None:
    """Raise if this process does not find the files of an export: workers may have written to their own disks."""
    for path, size in sizes.items():
        found = target.size(path)
        if found != size:
            state = "is not there" if found is None else f"has {found} bytes, not {size}"
            reason = f"{path} {state}; give a place that all workers share, or s3://"
            raise StorageUnavailable(str(target), reason)
