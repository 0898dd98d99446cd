"""What Lance has written for a change that is not committed yet, made trustworthy before anything refers to it.

On a local disk Lance takes no notice when the last bytes of a file cannot be written. So each new file is compared
with what was written, gets a name that carries its checksum, and is synced. On an object store an upload is whole
or not there, and nothing has to be done.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from lance.dataset import Index
from lance.fragment import DataFile, FragmentMetadata

from omnigraph.storage.files.checksums import (
    blob_files,
    deletion_number,
    name_by_content,
    require_whole,
    write_index_checksums,
)
from omnigraph.storage.files.durability import StrPath, sync_files
from omnigraph.storage.files.names import name_of


def local_folder(uri: str) -> Path | None:
    """The folder of a table, if it lies on a local disk."""
    if uri.startswith("file://"):
        return Path(unquote(urlsplit(uri).path))
    return None if "://" in uri else Path(uri)


def settle_data(uri: str, fragments: Iterable[FragmentMetadata]) -> None:
    """Check the data files of new fragments, name them by their content, and sync them."""
    folder = local_folder(uri)
    if folder is not None:
        _settle(folder, [file for fragment in fragments for file in fragment.files])


def settle_new_files(uri: str, changes: Iterable[tuple[FragmentMetadata, FragmentMetadata]]) -> None:
    """Settle the files that fragments have got beside their old ones; each is given as it was and as it is now."""
    folder = local_folder(uri)
    if folder is None:
        return
    added: list[DataFile] = []
    for before, after in changes:
        known = {file.path for file in before.files}
        added += [file for file in after.files if file.path not in known]
    _settle(folder, added)


def _settle(folder: Path, files: Iterable[DataFile]) -> None:
    settled: list[StrPath] = []
    for file in files:
        path = name_by_content(f"{folder}/data/{name_of(file)}", file.file_size_bytes)
        file._path = path.rpartition("/")[2]
        settled += [path, *blob_files(path)]
    sync_files(settled, folder)


def settle_deletions(uri: str, fragments: Iterable[FragmentMetadata]) -> list[FragmentMetadata]:
    """Check the new deletion files of fragments, number them by their content, and sync them."""
    from omnigraph.storage.files.deletions import require_deletions

    folder = local_folder(uri)
    if folder is None:
        return list(fragments)
    settled: list[Path] = []
    renumbered: list[FragmentMetadata] = []
    for fragment in fragments:
        described = fragment.to_json()
        deletion = described["deletion_file"]
        path = deletion_path(folder, fragment.id, deletion)
        require_deletions(path, deletion["num_deleted_rows"])
        deletion["id"] = deletion_number(path)
        settled.append(path.rename(deletion_path(folder, fragment.id, deletion)))
        renumbered.append(FragmentMetadata.from_json(json.dumps(described)))
    sync_files(settled, folder)
    return renumbered


def deletion_path(folder: Path, fragment: int, deletion: dict[str, object]) -> Path:
    """Where a deletion file of a fragment lies."""
    return folder / "_deletions" / deletion_name(fragment, deletion)


def deletion_name(fragment: int, deletion: dict[str, object]) -> str:
    """The name that Lance gives to a deletion file of a fragment."""
    suffix = "bin" if deletion["file_type"] == "bitmap" else "arrow"
    return f"{fragment}-{deletion['read_version']}-{deletion['id']}.{suffix}"


def settle_index(uri: str, index: Index) -> None:
    """Check the files of a new index, list their checksums beside them, and sync them."""
    folder = local_folder(uri)
    if folder is None:
        return
    own = folder / "_indices" / str(index.uuid)
    files = list(index.files or ())
    for file in files:
        require_whole(own / file.path, file.size_bytes)
    if files:
        listed = write_index_checksums(own, [file.path for file in files])
        sync_files([*(own / file.path for file in files), listed], folder)
