"""Resources and their digests: what the configuration asks for, and what the ledger says is there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Applied:
    """A resource as the ledger keeps it: the digest of its content, and what it is bound to."""

    digest: str
    applies_to: tuple[str, ...] | None = None
    embedding_provider: str | None = None
    embedding_profile: Mapping[str, Any] | None = None
    external_blob_policy: Mapping[str, Any] | None = None

    def as_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {"digest": self.digest}
        if self.applies_to is not None:
            found["applies_to"] = list(self.applies_to)
        optional = {
            "embedding_provider": self.embedding_provider,
            "embedding_profile": self.embedding_profile,
            "external_blob_policy": self.external_blob_policy,
        }
        return found | {name: value for name, value in optional.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource as it is to be. ``payload`` is what the catalog keeps of it, ``needs`` what has to be there.

    Policies need nothing: whatever else fails, no graph is served without the policy it is to have.
    """

    address: str
    applied: Applied
    payload: bytes | None = None
    needs: tuple[str, ...] = ()


def graph_of(address: str) -> str | None:
    """The graph that a resource belongs to; None for policies and providers."""
    kind, _, rest = address.partition(".")
    return rest.partition(".")[0] if kind in ("graph", "schema", "query") else None


def digest_of(value: object) -> str:
    """The digest of a JSON value."""
    return digest_bytes(json.dumps(value, sort_keys=True, separators=(",", ":")).encode())


def digest_bytes(content: bytes) -> str:
    """The digest of a content."""
    return "sha256:" + hashlib.sha256(content).hexdigest()
