"""Control objects as JSON with a checksum, so that a changed byte is found out.

Objects of older releases have no checksum and are taken as they are; what they hold is checked by its types.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from omnigraph.errors import ObjectDamaged

CHECKSUM: Final = "checksum"
_DAMAGE: Final = (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError)


def seal(fields: Mapping[str, Any]) -> bytes:
    """The content of an object with these fields: one line of JSON, the checksum of the others behind them."""
    canonical = _canonical(fields)
    separator = "," if fields else ""
    return f'{canonical[:-1]}{separator}"{CHECKSUM}":"{_checksum(canonical)}"}}'.encode()


def unseal(key: str, content: bytes) -> dict[str, Any]:
    """The fields of an object; ObjectDamaged says what is wrong with it."""
    try:
        found = json.loads(content.decode())
    except RecursionError as error:
        raise ObjectDamaged(key, "it is nested too deeply") from error
    except ValueError as error:
        raise ObjectDamaged(key, f"it is not JSON ({error})") from error
    if not isinstance(found, dict):
        raise ObjectDamaged(key, "it is not a JSON object")
    expected = found.pop(CHECKSUM, None)
    try:
        is_whole = expected in (None, _checksum(_canonical(found)))
    except _DAMAGE as error:
        raise ObjectDamaged(key, f"its content cannot be checked ({error})") from error
    if not is_whole:
        raise ObjectDamaged(key, "its content does not fit its checksum")
    return found


def damaged(key: str, error: Exception) -> ObjectDamaged:
    """The error to raise for fields that are missing or of the wrong type."""
    missing = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
    return ObjectDamaged(key, missing)


def digest(content: bytes) -> str:
    """What a content is known by in another object."""
    return hashlib.sha256(content).hexdigest()


def text(value: object) -> str:
    """A field that is a text."""
    if not isinstance(value, str):
        raise ValueError(f"{value!r:.60} is no text")
    return value


def optional_text(value: object) -> str | None:
    """A field that is a text or null."""
    return None if value is None else text(value)


def texts(value: object) -> tuple[str, ...]:
    """A field that is a list of texts."""
    if not isinstance(value, list):
        raise ValueError(f"{value!r:.60} is no list")
    return tuple(text(item) for item in value)


def number(value: object) -> int:
    """A field that is a count."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{value!r:.60} is no count")
    return value


def optional_number(value: object) -> int | None:
    """A field that is a count or null."""
    return None if value is None else number(value)


def _canonical(fields: Mapping[str, Any]) -> str:
    return json.dumps(fields, sort_keys=True, separators=(",", ":"))


def _checksum(canonical: str) -> str:
    return hashlib.sha256(canonical.encode()).hexdigest()[:32]
