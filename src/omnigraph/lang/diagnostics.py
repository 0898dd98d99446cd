"""Collecting problems: every stage reports here, so that one run shows all independent mistakes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final, NoReturn

from omnigraph.errors import Diagnostic, LanguageError
from omnigraph.lang.source import Source, Span

MAX_REPORTED: Final = 100
"""Problems beyond this many are counted, not listed."""

_SUGGESTABLE: Final = 64
_CONSIDERED: Final = 1000
_COMPARED: Final = 100

Remedy = str | Callable[[], str | None] | None
"""How to put a problem right; a function where finding out takes work, called only if the problem is listed."""


class Diagnostics:
    """The problems found in one source text so far, in the order of their places."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.count = 0
        self._reported: list[tuple[Span, Diagnostic]] = []
        self._places: set[tuple[str, Span]] = set()

    def report(self, code: str, stage: str, message: str, span: Span, remedy: Remedy = None) -> None:
        """Note a problem; one code is noted once per place."""
        if (code, span) in self._places:
            return
        self.count += 1
        if len(self._reported) < MAX_REPORTED:
            self._places.add((code, span))
            text = remedy() if callable(remedy) else remedy
            problem = self.source.diagnostic(code, stage, message, span, text)
            self._reported.append((span, problem))

    @property
    def listed(self) -> list[Diagnostic]:
        """The problems in reading order."""
        return [problem for _, problem in sorted(self._reported, key=lambda entry: entry[0].start)]

    def raise_as(self, error: type[LanguageError]) -> NoReturn:
        """Raise what was collected."""
        raise error(self.listed, self.count - len(self._reported))

    def raise_if_any(self, error: type[LanguageError]) -> None:
        """Raise what was collected, if anything was."""
        if self.count:
            self.raise_as(error)


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """The known name a mistyped one most likely meant, letter case aside."""
    from difflib import get_close_matches

    if len(name) > _SUGGESTABLE:
        return None
    wanted = name.lower()
    candidates = [k for k in islice(known, _CONSIDERED) if len(k) <= _SUGGESTABLE]
    folded = {k.lower(): k for k in reversed(candidates)}
    likely = sorted(folded, key=lambda k: (k[:1] != wanted[:1], abs(len(k) - len(wanted))))
    close = get_close_matches(wanted, likely[:_COMPARED], n=1, cutoff=0.6)
    return folded[close[0]] if close else None


def suggest(name: str, known: Iterable[str], prefix: str = "", otherwise: str | None = None) -> str | None:
    """A remedy for an unknown name: the nearest known one, else a short list of what there is."""
    names = sorted(islice(known, _CONSIDERED))
    close = nearest_name(name, names)
    if close is not None:
        return f"did you mean `{prefix}{close}`?"
    if otherwise is not None or not names:
        return otherwise
    shown = ", ".join(f"`{prefix}{n}`" for n in names[:8] if len(n) <= _SUGGESTABLE)
    return f"known: {shown}{', …' if len(names) > 8 else ''}"
