"""What a merge comes to: the plan of a preview, which can be stored and applied later, and the result."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from omnigraph.errors import Conflict, ConflictKind, InvalidArgument
from omnigraph.history.merging.sides import Decisions
from omnigraph.manifest.state import Commit
from omnigraph.read.result.cells import json_value

_SIDES: Final = ("base", "ours", "theirs")


class MergeOutcome(StrEnum):
    """What a merge came to."""

    ALREADY_UP_TO_DATE = "already_up_to_date"
    FAST_FORWARD = "fast_forward"
    MERGED = "merged"


@dataclass(frozen=True, slots=True)
class MergePlan:
    """What a merge would do: its outcome, what it changes in the target, and the conflicts in its way.

    It names the commits of both branches and how conflicts are decided, so that `Graph.apply_merge` does exactly
    this, or nothing.
    """

    outcome: MergeOutcome
    source: str
    target: str
    source_commit: str | None
    target_commit: str | None
    base_commit: str | None
    changes: Mapping[str, Mapping[str, int]]
    conflicts: tuple[Conflict, ...] = ()
    decisions: Decisions = field(default_factory=Decisions)
    squash: bool = False
    schema: tuple[str, ...] = ()
    """The steps by which the target adopts the source's schema, by a commit of its own before that of the rows."""

    @property
    def digest(self) -> str:
        """What the whole content of the plan is known by."""
        text = json.dumps(self._content(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def as_json(self) -> dict[str, Any]:
        """The plan as JSON, with its digest; `from_json` takes it back."""
        return {**self._content(), "digest": self.digest}

    def _content(self) -> dict[str, Any]:
        choices = sorted(self.decisions.choices.items())
        return {
            "outcome": self.outcome.value,
            "source": self.source,
            "target": self.target,
            "source_commit": self.source_commit,
            "target_commit": self.target_commit,
            "base_commit": self.base_commit,
            "changes": {key: dict(counts) for key, counts in self.changes.items()},
            "conflicts": [_conflict_json(conflict) for conflict in self.conflicts],
            "strict": self.decisions.strict,
            "resolve": self.decisions.resolve,
            "choices": [{"table_key": key, "id": entity, "side": side} for (key, entity), side in choices],
            "squash": self.squash,
            "schema": list(self.schema),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> MergePlan:
        """A plan that was stored; InvalidArgument if it is none, or was changed since.

        The rows of conflicts are as JSON has them: times as text, bytes as `base64:…`.
        """
        try:
            choices = {(each["table_key"], each["id"]): each["side"] for each in stored["choices"]}
            plan = cls(
                MergeOutcome(stored["outcome"]),
                stored["source"],
                stored["target"],
                stored["source_commit"],
                stored["target_commit"],
                stored["base_commit"],
                stored["changes"],
                tuple(_conflict_from(each) for each in stored["conflicts"]),
                Decisions(stored["strict"], stored["resolve"], choices),
                stored["squash"],
                tuple(stored["schema"]),
            )
            is_whole = plan.as_json() == stored
        except (KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
            raise InvalidArgument(
                "plan", f"it is not the plan of a merge ({error!r:.100}); preview again"
            ) from error
        if not is_whole:
            raise InvalidArgument("plan", "its content does not fit its digest: it was changed; preview again")
        return plan


def _conflict_json(conflict: Conflict) -> dict[str, Any]:
    images = ((side, getattr(conflict, side)) for side in _SIDES)
    return conflict.as_json() | {
        side: None if image is None else {name: json_value(value) for name, value in image.items()}
        for side, image in images
    }


def _conflict_from(stored: Mapping[str, Any]) -> Conflict:
    return Conflict(
        ConflictKind(stored["kind"]),
        stored["table_key"],
        stored["id"],
        stored["message"],
        stored["base"],
        stored["ours"],
        stored["theirs"],
        tuple(stored["properties"]),
    )


@dataclass(frozen=True, slots=True)
class MergeResult:
    """What a merge did. ``commit`` is None if there was nothing to merge."""

    plan: MergePlan
    commit: Commit | None

    @property
    def outcome(self) -> MergeOutcome:
        return self.plan.outcome

    def as_json(self) -> dict[str, Any]:
        commit = None if self.commit is None else self.commit.as_json()
        return {**self.plan.as_json(), "commit": commit}
