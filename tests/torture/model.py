"""What the logs of all writers say must be, may be and must not be in a graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.torture.steps import BRANCHES, read_log

Stamps = set[int | None]
"""The stamps that a tag may have; None is a tag that is not there."""


@dataclass
class Model:
    """What may be there, by branch and tag, and which short-lived branches."""

    stamps: dict[tuple[str, str], Stamps] = field(default_factory=dict)
    commits: dict[str, set[str]] = field(default_factory=dict)
    created: dict[str, bool] = field(default_factory=dict)
    """Branches that were created for certain, or perhaps."""
    deleted: dict[str, bool] = field(default_factory=dict)
    """Branches that were deleted for certain, or perhaps."""
    counts: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    texts: dict[str, str] = field(default_factory=dict)
    """What each error said when it was met first."""
    faults: Counter[str] = field(default_factory=Counter)

    def read(self, logs: Iterable[Path]) -> Model:
        """Take in logs. Each tag belongs to one writer, whose steps are in order."""
        for log in logs:
            entries = read_log(log)
            for entry, following in zip(entries, [*entries[1:], None], strict=False):
                self._count(entry)
                self._take(entry, following)
        return self

    def must_exist(self, branch: str) -> bool:
        return branch in BRANCHES or (self.created.get(branch, False) and branch not in self.deleted)

    def may_exist(self, branch: str) -> bool:
        return branch in BRANCHES or (branch in self.created and not self.deleted.get(branch, False))

    def _count(self, entry: Mapping[str, Any]) -> None:
        what = entry["what"]
        if what == "done":
            self.counts[f"acknowledged {entry['kind']}"] += 1
        elif what != "begin":
            self.counts[what] += 1
        if entry.get("error"):
            told = f"{what}: {entry['error']}"
            self.errors[told] += 1
            self.texts.setdefault(told, f"{entry.get('kind')}: {entry.get('text')}")
        self.faults.update(entry.get("struck", ()))

    def _take(self, entry: Mapping[str, Any], following: Mapping[str, Any] | None) -> None:
        match entry["what"]:
            case "begin" if following is None:
                self.counts["unanswered"] += 1
                self._may_be_done(entry)
            case "unknown":
                if following is None or following["what"] != "answered: not there":
                    self._may_be_done(entry)
            case "done" | "answered: there":
                self._is_done(entry)

    def _may_be_done(self, entry: Mapping[str, Any]) -> None:
        match entry["kind"]:
            case "create branch":
                self.created.setdefault(entry["branch"], False)
            case "delete branch":
                self.deleted.setdefault(entry["branch"], False)
            case "mutation" | "load" | "spark load" | "update" | "delete":
                self.stamps.setdefault((entry["branch"], entry["tag"]), {None}).add(_after(entry))

    def _is_done(self, entry: Mapping[str, Any]) -> None:
        match entry["kind"]:
            case "create branch":
                self.created[entry["branch"]] = True
            case "delete branch":
                self.deleted[entry["branch"]] = True
            case "mutation" | "load" | "spark load" | "update" | "delete":
                self.stamps[entry["branch"], entry["tag"]] = {_after(entry)}
        if entry.get("commit"):
            self.commits.setdefault(entry["branch"], set()).add(entry["commit"])


def _after(entry: Mapping[str, Any]) -> int | None:
    """The stamp of a tag after a write."""
    stamp = {"update": int(entry["stamp"]), "delete": None}
    return stamp.get(entry["kind"], 0)
