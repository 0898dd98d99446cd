"""Are the files of a staged change still there? Cleanup removes files that no version refers to, and a change that
was staged long ago is such files until it is committed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lance.fragment import FragmentMetadata

from omnigraph.storage import layout
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.stage.changes import Staged


def first_absent(objects: ObjectStore, staged: Staged) -> str | None:
    """The first file of a staged change that is gone; None if all are there. Costs a request for each file."""
    tree = layout.native_prefix(staged.location, staged.branch)
    return next((key for key in _keys(tree, staged.transaction.operation) if not objects.exists(key)), None)


def _keys(tree: str, operation: Any) -> Iterator[str]:
    """The files that an operation brings into a table, and the folders of its indexes."""
    groups = getattr(operation, "groups", None) or [operation]
    for group in groups:
        for name in ("fragments", "new_fragments", "updated_fragments"):
            for fragment in getattr(group, name, None) or ():
                yield from _of_fragment(tree, fragment)
    for replacement in getattr(operation, "replacements", None) or ():
        yield f"{tree}/data/{replacement.new_file.path}"
    for index in getattr(operation, "new_indices", None) or ():
        yield f"{tree}/_indices/{index.uuid}"


def _of_fragment(tree: str, fragment: FragmentMetadata) -> Iterator[str]:
    described = fragment.to_json()
    for file in described["files"]:
        if file.get("base_id") is None:
            yield f"{tree}/data/{file['path']}"
    deletion = described.get("deletion_file")
    if deletion is not None and deletion.get("base_id") is None:
        suffix = "bin" if deletion["file_type"] == "bitmap" else "arrow"
        yield f"{tree}/_deletions/{fragment.id}-{deletion['read_version']}-{deletion['id']}.{suffix}"
