"""Which files a version of a table refers to, wherever branches share them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from lance import LanceDataset

from omnigraph.storage.files.staged import deletion_name


class FileKind(StrEnum):
    """What a file holds. That of an index is a folder."""

    DATA = "data"
    DELETION = "deletion"
    INDEX = "index"


@dataclass(frozen=True, slots=True)
class TableFile:
    """A file of a version: the address of the table or native branch it belongs to, its own, and its size if the
    version says it."""

    kind: FileKind
    root: str
    path: str
    size: int | None = None


def referenced_files(handle: LanceDataset) -> Iterator[TableFile]:
    """The data files, deletion files and indexes of a version."""
    roots: dict[int | None, str] = {None: handle.uri}
    roots |= {number: base.path for number, base in handle.base_paths().items()}
    for fragment in handle.get_fragments():
        described = fragment.metadata.to_json()
        for file in described["files"]:
            root = roots[file["base_id"]]
            yield TableFile(FileKind.DATA, root, f"{root}/data/{file['path']}", file["file_size_bytes"])
        deletion = described["deletion_file"]
        if deletion is not None:
            root = roots[deletion["base_id"]]
            name = deletion_name(fragment.fragment_id, deletion)
            yield TableFile(FileKind.DELETION, root, f"{root}/_deletions/{name}")
    for index in handle.describe_indices():
        for segment in index.segments:
            root = roots[segment.base_id]
            yield TableFile(FileKind.INDEX, root, f"{root}/_indices/{segment.uuid}")
