"""The catalog: the texts of stored queries and policies, each below the digest of its content."""

from __future__ import annotations

from typing import Final

from omnigraph.cluster.codes import problem
from omnigraph.cluster.resource import digest_bytes
from omnigraph.cluster.state.places import FOLDER, RESOURCES, ClusterPlace
from omnigraph.errors import ClusterProblem

_SUFFIXES: Final = {"query": "gq", "policy": "yaml"}


def has_payload(address: str) -> bool:
    """Does the catalog keep the content of such a resource?"""
    return address.partition(".")[0] in _SUFFIXES


def payload_key(address: str, digest: str) -> str:
    """The object of a resource's content."""
    kind, _, name = address.partition(".")
    return f"{RESOURCES}/{kind}/{name.replace('.', '/')}/{digest.removeprefix('sha256:')}.{_SUFFIXES[kind]}"


def write_payload(place: ClusterPlace, address: str, content: bytes) -> bool:
    """Keep a content, unless it is there; whether it was written."""
    key = payload_key(address, digest_bytes(content))
    present = place.objects.get(key)
    if present is not None and present.content == content:
        return False
    place.objects.put(key, content)
    return True


def read_payload(place: ClusterPlace, address: str, digest: str) -> bytes | ClusterProblem:
    """The content of a resource, or why it cannot be had."""
    key = payload_key(address, digest)
    remedy = "run `omnigraph cluster refresh` and `apply`"
    found = place.objects.get(key)
    if found is None:
        return problem("catalog_payload_missing", address, f"there is no {FOLDER}/{key}; {remedy}")
    if digest_bytes(found.content) != digest:
        said = f"the content of {FOLDER}/{key} is not the one that it is named by; {remedy}"
        return problem("catalog_payload_mismatch", address, said)
    return found.content
