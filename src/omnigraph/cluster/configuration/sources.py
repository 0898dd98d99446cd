"""Where the blobs of a graph may be copied from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from omnigraph.cluster.configuration.document import Value
from omnigraph.cluster.configuration.fields import Fields
from omnigraph.errors import InvalidArgument
from omnigraph.storage.external.sources import allowed_place

SERVER_SAFE: Final = "server_safe"
EMBEDDED_ONLY: Final = "embedded_only"
_SCOPES: Final = (SERVER_SAFE, EMBEDDED_ONLY)


@dataclass(frozen=True, slots=True)
class BlobBase:
    """An address below which blobs may be copied: by servers too, or only by programs on this machine."""

    base: str
    scope: str

    def as_json(self) -> dict[str, Any]:
        return {"base": self.base, "scope": self.scope}


def read_bases(fields: Fields, where: str, given: Value | None) -> tuple[BlobBase, ...]:
    """The allow list of a graph as cluster.yaml has it, in the order of its addresses."""
    if given is None:
        return ()
    if not isinstance(given.found, list):
        fields.refuse("external_blobs_invalid", where, given, "it is a list of {base, scope}")
        return ()
    made = [_base(fields, f"{where}[{index}]", each) for index, each in enumerate(given.found)]
    bases = sorted({each.base: each for each in made if each is not None}.values(), key=lambda each: each.base)
    for before, after in pairwise(bases):
        if after.base.startswith(before.base):
            said = f"{after.base} lies below {before.base}; keep one of them"
            fields.refuse("external_blobs_invalid", where, given, said)
    return tuple(bases)


def _base(fields: Fields, where: str, given: Value) -> BlobBase | None:
    found: Mapping[str, Value] = fields.mapping(where, given, ("base", "scope"))
    base = fields.text(f"{where}.base", found.get("base"))
    scope = fields.text(f"{where}.scope", found.get("scope")) or SERVER_SAFE
    if base is None:
        fields.refuse("external_blobs_invalid", where, given, "it names no base")
        return None
    try:
        place = allowed_place(base)
    except InvalidArgument as error:
        fields.refuse("external_blobs_invalid", where, given, str(error))
        return None
    if scope not in _SCOPES:
        fields.refuse("external_blobs_invalid", where, given, f"scope is {' or '.join(_SCOPES)}")
        return None
    if (place.scheme == "file") != (scope == EMBEDDED_ONLY):
        said = f"a file:// base is {EMBEDDED_ONLY}, and any other one {SERVER_SAFE}"
        fields.refuse("external_blobs_invalid", where, given, said)
        return None
    return BlobBase(str(place), scope)
