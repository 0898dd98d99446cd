"""What a program hands over: texts and numbers that are what they should be, before anything is done with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from omnigraph.errors import InvalidArgument

LONGEST_ACTOR: Final = 256
LONGEST_MESSAGE: Final = 65_536
_SHOWN: Final = 40


def text_argument(name: str, value: object, longest: int | None = None) -> str:
    """A text that can be stored: of up to so many characters, none of them half a surrogate pair."""
    if not isinstance(value, str):
        raise InvalidArgument(name, f"it is a text, not {described(value)}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        shown = shortened(value[max(error.start - 10, 0) :])
        reason = f"'{shown}' is not valid Unicode, at character {error.start + 1}; write it in UTF-8"
        raise InvalidArgument(name, reason) from None
    if longest is not None and len(value) > longest:
        raise InvalidArgument(name, f"it has {len(value):,} characters, and {longest:,} are allowed")
    return value


def optional_text(name: str, value: object, longest: int | None = None) -> str | None:
    """A text, or None."""
    return None if value is None else text_argument(name, value, longest)


def number_argument(name: str, value: object) -> int:
    """A whole number."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidArgument(name, f"it is a whole number, not {described(value)}")
    return value


def seconds_argument(name: str, value: object) -> float:
    """How long something may take."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise InvalidArgument(name, f"it is a number above 0, not {described(value)}")
    return value


def unique_members(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    """The members of a JSON object; ValueError if one is given twice, as one of its two values would be lost."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"'{shortened(twice)}' is given twice")
    return found


def described(value: object) -> str:
    """What a value is, in a few words that can be printed."""
    return (
        f"{type(value).__name__} {shortened(repr(value))}"
        if isinstance(value, int | float)
        else type(value).__name__
    )


def shortened(text: str) -> str:
    """The beginning of a text, so that it can be printed whatever is in it."""
    shown = text.encode(errors="backslashreplace").decode().replace("\0", "\\0")
    return shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "…"
