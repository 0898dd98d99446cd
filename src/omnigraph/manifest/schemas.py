"""The accepted schemas of a graph. Each state of a branch names the one that its tables have.

The schema that a graph was created with lies in files of its own. A later one is an object that is named by the
digest of its content, written before the manifest that names it, and never changed.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, TypeVar

from omnigraph.errors import ObjectDamaged, StorageUnavailable
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.identity import SchemaIR
from omnigraph.records import dataclass
from omnigraph.storage import layout
from omnigraph.storage.control.sealed import damaged, digest, seal, text, unseal
from omnigraph.storage.objects import ObjectStore

Read = TypeVar("Read")


@dataclass(frozen=True, slots=True)
class Schemas:
    """All schemas that a graph has accepted. What was read is kept: there are few, and none ever changes."""

    objects: ObjectStore
    shown: str
    """How errors name the graph."""
    _catalogs: dict[str | None, Catalog] = field(default_factory=dict, init=False, repr=False)
    _sources: dict[str | None, str] = field(default_factory=dict, init=False, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def catalog(self, named: str | None) -> Catalog:
        """A schema arranged for look-ups, by its digest; None names the one that the graph was created with."""
        return self._once(self._catalogs, named, self._read_catalog)

    def source(self, named: str | None) -> str:
        """A schema as its author wrote it."""
        return self._once(self._sources, named, self._read_source)

    def store(self, source: str, ir: SchemaIR) -> str:
        """Write a schema and return its digest. No state names it yet, and writing it again changes nothing."""
        content = seal({"source": source, "ir": ir.as_json()})
        named = digest(content)
        self.objects.put_if_absent(layout.schema_object(named), content)
        return named

    def _once(self, known: dict[str | None, Read], named: str | None, read: Callable[[str | None], Read]) -> Read:
        with self._lock:
            found = known.get(named)
        if found is None:
            found = read(named)
            with self._lock:
                found = known.setdefault(named, found)
        return found

    def _read_catalog(self, named: str | None) -> Catalog:
        key = layout.SCHEMA_IR if named is None else layout.schema_object(named)
        try:
            stored = json.loads(self._first(key)) if named is None else self._later(named)["ir"]
            return Catalog(SchemaIR.from_json(stored))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise damaged(key, error) from error

    def _read_source(self, named: str | None) -> str:
        key = layout.SCHEMA_SOURCE if named is None else layout.schema_object(named)
        try:
            return self._first(key).decode() if named is None else text(self._later(named)["source"])
        except (ValueError, KeyError) as error:
            raise damaged(key, error) from error

    def _later(self, named: str) -> dict[str, Any]:
        """The content of a schema that was accepted after the first."""
        key = layout.schema_object(named)
        content = self._content(key)
        if digest(content) != named:
            raise ObjectDamaged(key, "its content is not the one that it is named by")
        return unseal(key, content)

    def _first(self, key: str) -> bytes:
        """One of the objects that hold the first schema, as it was written."""
        content = self._content(key)
        if self._first_digests().get(key) not in (None, digest(content)):
            raise ObjectDamaged(key, f"its content is not the one that {layout.SCHEMA_STATE} names")
        return content

    def _first_digests(self) -> Mapping[str, str]:
        """The digests of the objects that hold the first schema; graphs of older releases have none."""
        found = self.objects.get(layout.SCHEMA_STATE)
        digests = {} if found is None else unseal(layout.SCHEMA_STATE, found.content).get("digests", {})
        if not isinstance(digests, dict):
            raise ObjectDamaged(layout.SCHEMA_STATE, "its digests are none")
        return digests

    def _content(self, key: str) -> bytes:
        found = self.objects.get(key)
        if found is None:
            raise StorageUnavailable(f"{self.shown}/{key}", "the accepted schema is missing")
        return found.content
