"""The catalogue of schema lint codes: what kind of danger each names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from omnigraph.lang.codes import MIGRATION

FAMILIES: Final = ("DS", "MF", "CD", "BC", "NM", "OW", "NL", "VE", "ED", "LK")


@dataclass(frozen=True, slots=True)
class LintCode:
    """A schema lint code. ``emitted`` is false for codes kept for later use."""

    code: str
    tier: Literal["safe", "validated", "destructive"]
    emitted: bool
    severity: Literal["error", "warn", "info"] = "error"

    @property
    def family(self) -> str:
        return self.code.split("-")[1]

    @property
    def meaning(self) -> str:
        return MIGRATION[self.code]


LINT_CODES: Final = (
    LintCode("OG-DS-101", "destructive", emitted=False),
    LintCode("OG-DS-102", "destructive", emitted=False),
    LintCode("OG-DS-103", "destructive", emitted=False),
    LintCode("OG-DS-104", "destructive", emitted=False),
    LintCode("OG-DS-105", "destructive", emitted=False),
    LintCode("OG-MF-103", "validated", emitted=True),
    LintCode("OG-MF-104", "validated", emitted=False),
    LintCode("OG-MF-106", "destructive", emitted=True),
)
