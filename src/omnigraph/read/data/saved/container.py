"""Arrays and a description of them as bytes that can be mapped into memory.

What is saved is derived and never needed: bytes that are damaged, truncated or of another format are not there.

::

    mark      8 bytes, which say what it is
    sizes     of the description and of the whole, and a checksum of all that follows, 8 bytes each
    described in JSON, and where each array lies
    arrays    each at a multiple of 64 bytes
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import xxhash

from omnigraph.read.values.columns import Array

_HEAD: Final = struct.Struct("<8sQQQ")
_ALIGNED: Final = 64

Parts = list[bytes | memoryview]


def packed_parts(mark: bytes, described: Mapping[str, Any], arrays: Sequence[Array]) -> Parts:
    """A description and arrays as bytes, in parts that follow each other. Arrays are not copied."""
    places = [(array.dtype.str, len(array)) for array in arrays]
    text = json.dumps({**described, "arrays": places}).encode()
    parts: Parts = [text]
    size = _HEAD.size + len(text)
    for array in arrays:
        parts += [bytes(-size % _ALIGNED), np.ascontiguousarray(array).data.cast("B") if len(array) else b""]
        size += -size % _ALIGNED + array.nbytes
    digest = xxhash.xxh3_64()
    for part in parts:
        digest.update(part)
    return [_HEAD.pack(mark, len(text), size, digest.intdigest()), *parts]


def unpacked(mark: bytes, content: memoryview) -> tuple[dict[str, Any], list[Array]] | None:
    """The description and the arrays; None if that is not what the bytes are."""
    if len(content) < _HEAD.size:
        return None
    there, length, size, digest = _HEAD.unpack_from(content)
    if (there, size) != (mark, len(content)) or digest != xxhash.xxh3_64_intdigest(content[_HEAD.size :]):
        return None
    try:
        described = json.loads(bytes(content[_HEAD.size : _HEAD.size + length]))
        return described, _arrays(content, _HEAD.size + length, described["arrays"])
    except (KeyError, TypeError, ValueError):
        return None


def _arrays(content: memoryview, begin: int, places: Sequence[tuple[str, int]]) -> list[Array]:
    found: list[Array] = []
    for kind, count in places:
        begin += -begin % _ALIGNED
        array: Array = np.frombuffer(content, dtype=kind, count=count, offset=begin)
        found.append(array)
        begin += array.nbytes
    return found
