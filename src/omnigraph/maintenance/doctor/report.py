"""What the doctor says: findings, each with a stable code, its place, and the remedy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Severity(StrEnum):
    """How bad a finding is: an error has to be dealt with, a warning soon, a note is only worth knowing."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that the doctor found. ``code`` never changes its meaning; ``count`` says how many such things the
    finding stands for, where there are many of a kind in one place."""

    code: str
    severity: Severity
    message: str
    remedy: str
    branch: str | None = None
    table_key: str | None = None
    file: str | None = None
    count: int = 1

    def as_json(self) -> dict[str, Any]:
        return {
            "code": self.code,
            "severity": self.severity.value,
            "branch": self.branch,
            "table_key": self.table_key,
            "file": self.file,
            "count": self.count,
            "message": self.message,
            "remedy": self.remedy,
        }


@dataclass(frozen=True, slots=True)
class DoctorReport:
    """What an examination found, and what it looked at."""

    address: str
    quick: bool
    checks: tuple[str, ...]
    branches: tuple[str, ...]
    tables: int
    findings: tuple[Finding, ...]

    @property
    def is_healthy(self) -> bool:
        """Is there no finding of severity error?"""
        return not any(finding.severity is Severity.ERROR for finding in self.findings)

    def count(self, severity: Severity) -> int:
        """How many findings of one severity there are."""
        return sum(finding.severity is severity for finding in self.findings)

    def as_json(self) -> dict[str, Any]:
        return {
            "healthy": self.is_healthy,
            "quick": self.quick,
            "checks": list(self.checks),
            "branches": list(self.branches),
            "tables": self.tables,
            "counts": {severity.value: self.count(severity) for severity in Severity},
            "findings": [finding.as_json() for finding in self.findings],
        }


@dataclass(frozen=True, slots=True)
class DoctorProgress:
    """How far an examination is: the check that runs, and how many of its tables are done."""

    check: str
    done: int
    tables: int


ProgressListener = Callable[[DoctorProgress], None]
