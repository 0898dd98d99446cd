"""Remembering what texts compiled to: many small ones, and the last few large ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Concatenate, Final, ParamSpec, TypeVar

LARGE_TEXT: Final = 8 << 10
"""A tree takes some seventy times the memory of its text, so few texts with more characters are remembered."""

_LARGE_TEXTS: Final = 2
_P = ParamSpec("_P")
_T = TypeVar("_T")


def remembering(
    small_texts: int,
) -> Callable[[Callable[Concatenate[str, _P], _T]], Callable[Concatenate[str, _P], _T]]:
    """Make a pure function of a text and more remember its last results."""

    def decorate(function: Callable[Concatenate[str, _P], _T]) -> Callable[Concatenate[str, _P], _T]:
        of_small: Callable[..., _T] = lru_cache(small_texts)(function)
        of_large: Callable[..., _T] = lru_cache(_LARGE_TEXTS)(function)

        @wraps(function)
        def remembered(text: str, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
            return (of_small if len(text) <= LARGE_TEXT else of_large)(text, *args, **kwargs)

        return remembered

    return decorate
