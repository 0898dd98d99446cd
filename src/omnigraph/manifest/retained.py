"""What cleanup has left of the states of a graph.

Of each branch it leaves the newest versions of the manifest without a gap, because a gap would look like the end
of the branch. An older state that has to stay, for a tag or as the base of a merge, becomes an object of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

import pyarrow as pa

from omnigraph.errors import ObjectDamaged
from omnigraph.manifest.state import MANIFEST_SCHEMA
from omnigraph.records import dataclass
from omnigraph.storage import layout
from omnigraph.storage.control.sealed import damaged, number, optional_text, seal, text, unseal
from omnigraph.storage.objects import ObjectStore

_METADATA = "metadata"


@dataclass(frozen=True, slots=True)
class RetainedStates:
    """The states that are left of one branch: all from a version on, and some older ones."""

    oldest_version: int
    oldest_commit: str | None = None
    older: frozenset[int] = frozenset()

    def has(self, version: int) -> bool:
        """Is the state of that version left?"""
        return version >= self.oldest_version or version in self.older

    def as_json(self) -> dict[str, Any]:
        return {
            "oldest_version": self.oldest_version,
            "oldest_commit": self.oldest_commit,
            "older": sorted(self.older),
        }


EVERYTHING = RetainedStates(0)
"""What is left of a branch that was never cleaned."""


@dataclass(frozen=True, slots=True)
class Retained:
    """What is left of each branch, by the name of its native branch."""

    branches: Mapping[str, RetainedStates] = field(default_factory=dict)

    def of(self, native: str | None) -> RetainedStates:
        """What is left of one branch."""
        return self.branches.get(native or "main", EVERYTHING)


def read_retained(objects: ObjectStore) -> Retained:
    """What cleanups have left so far; ObjectDamaged if that cannot be read. Costs one request."""
    found = objects.get(layout.RETAINED)
    if found is None:
        return Retained()
    try:
        return decode_retained(unseal(layout.RETAINED, found.content)["branches"])
    except (ValueError, KeyError, TypeError) as error:
        raise damaged(layout.RETAINED, error) from error


def write_retained(objects: ObjectStore, retained: Retained) -> None:
    """Note what will be left, before anything is removed."""
    objects.put(layout.RETAINED, seal({"branches": encode_retained(retained)}))


def encode_retained(retained: Retained) -> dict[str, Any]:
    """What is left of each branch, as JSON."""
    return {name: left.as_json() for name, left in retained.branches.items()}


def decode_retained(stored: Mapping[str, Any]) -> Retained:
    """What is left of each branch, from JSON; ValueError, KeyError or TypeError if it is none."""
    return Retained(
        {
            text(name): RetainedStates(
                number(left["oldest_version"]),
                optional_text(left["oldest_commit"]),
                frozenset(map(number, left["older"])),
            )
            for name, left in dict(stored).items()
        }
    )


class KeptStates:
    """The objects that hold states whose own versions of the manifest were removed."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects

    def put(self, native: str | None, version: int, rows: pa.Table) -> None:
        """Keep the rows of a version of the manifest, with the checksum that they carry."""
        metadata = {key.decode(): value.decode() for key, value in (rows.schema.metadata or {}).items()}
        content = seal({_METADATA: metadata, "rows": rows.to_pylist()})
        self._objects.put(layout.kept_state(native, version), content)

    def get(self, native: str | None, version: int) -> pa.Table | None:
        """The rows of a version, if they were kept."""
        key = layout.kept_state(native, version)
        found = self._objects.get(key)
        if found is None:
            return None
        stored = unseal(key, found.content)
        try:
            schema = MANIFEST_SCHEMA.with_metadata(stored[_METADATA])
            return pa.Table.from_pylist(stored["rows"], schema=schema)
        except (ValueError, KeyError, TypeError, AttributeError, pa.ArrowException) as error:
            raise ObjectDamaged(key, f"it holds no state ({error})") from error

    def has(self, native: str | None, version: int) -> bool:
        """Were the rows of a version kept?"""
        return self._objects.has(layout.kept_state(native, version))

    def keys(self) -> Iterable[str]:
        """The keys of all of them."""
        return self._objects.list(layout.KEPT_STATES)
