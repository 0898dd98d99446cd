"""The schemas that a branch has had."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from omnigraph.errors import HistoryReclaimed
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.migration import steps_between
from omnigraph.lang.schema.steps import Step
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.state import Commit

_CHANGING = ("schema_apply", "merge")
"""The kinds of commits that can bring another schema."""


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """A schema, the commit that brought it, and the steps from the one before; none for the first schema."""

    commit: Commit
    source: str
    shape_hash: str
    steps: tuple[Step, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "commit": self.commit.as_json(),
            "shape_hash": self.shape_hash,
            "steps": [step.as_json() for step in self.steps],
            "schema_source": self.source,
        }


def schema_history(repository: Repository, branch: Branch) -> list[SchemaVersion]:
    """The schemas of a branch's history, newest first, as far back as its states are kept."""
    versions: list[tuple[Commit, str | None]] = []
    for commit in reversed(list(repository.commits.of(branch))):
        if commit.kind not in _CHANGING and commit.parents:
            continue
        try:
            _, state = repository.commits.state_at(commit)
        except HistoryReclaimed:
            continue
        if not versions or versions[-1][1] != state.schema:
            versions.append((commit, state.schema))
    found: list[SchemaVersion] = []
    before: Catalog | None = None
    for commit, digest in versions:
        catalog = repository.schemas.catalog(digest)
        steps = () if before is None else tuple(steps_between(before.ir, catalog.ir))
        found.append(SchemaVersion(commit, repository.schemas.source(digest), catalog.hash, steps))
        before = catalog
    return found[::-1]
