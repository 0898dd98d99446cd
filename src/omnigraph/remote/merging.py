"""The part of a remote graph that puts branches together, and undoes commits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from omnigraph.arguments import text_argument
from omnigraph.history.merging.plans import MergePlan, MergeResult
from omnigraph.history.merging.undo import UndoResult
from omnigraph.keywords import MergeKeywords, UndoKeywords
from omnigraph.remote.handle import RemoteHandle, refuse_direct
from omnigraph.remote.transport import request_headers


class RemoteUndoKeywords(UndoKeywords, total=False):
    """Keywords of `RemoteGraph.revert`, `RemoteGraph.cherry_pick` and `RemoteGraph.reset`."""

    idempotency_key: str | None


class RemoteMergeKeywords(MergeKeywords, total=False):
    """Keywords of `RemoteGraph.merge`."""

    idempotency_key: str | None


class RemoteMerging(RemoteHandle):
    """A remote graph's merges, and what undoes commits. The actor is the token's."""

    def merge(self, source: str, into: str | None = None, **options: Unpack[RemoteMergeKeywords]) -> MergeResult:
        """Merge a branch into another one, by default into this handle's, as one commit with two parents."""
        headers = _conditions(options)
        body = self._merge_body(source, into, options)
        done: MergeResult = self._open.value("POST", "/branches/merge", body, headers=headers, is_write=True)
        return done

    def preview_merge(
        self, source: str, into: str | None = None, **options: Unpack[RemoteMergeKeywords]
    ) -> MergePlan:
        """What `merge` would do now: its outcome, its changes and its conflicts. Nothing is written."""
        body = self._merge_body(source, into, options)
        plan: MergePlan = self._open.value("POST", "/branches/merge/preview", body)
        return plan

    def _merge_body(self, source: str, into: str | None, options: RemoteMergeKeywords) -> dict[str, Any]:
        return {
            "source": text_argument("source", source),
            "target": self._named(into, "into"),
            "squash": options.get("squash"),
            **_decisions(options),
        }

    def revert(
        self, commit: str | Sequence[str], branch: str | None = None, **options: Unpack[RemoteUndoKeywords]
    ) -> UndoResult:
        """Undo a commit, or several of them, by one new commit; of several the newest is undone first."""
        commits = [commit] if isinstance(commit, str) else list(commit)
        return self._undone("/revert", {"commits": commits}, branch, options)

    def cherry_pick(
        self, commit: str, branch: str | None = None, **options: Unpack[RemoteUndoKeywords]
    ) -> UndoResult:
        """Do on a branch, as a new commit, what a commit of any branch did."""
        return self._undone("/cherry-pick", {"commit": commit}, branch, options)

    def reset(self, commit: str, branch: str | None = None, **options: Unpack[RemoteUndoKeywords]) -> UndoResult:
        """Bring a branch back to its content at a commit, as a new commit: the history stays."""
        return self._undone("/reset", {"commit": commit}, branch, options)

    def _undone(
        self, path: str, what: Mapping[str, Any], branch: str | None, options: RemoteUndoKeywords
    ) -> UndoResult:
        body = {**what, "branch": self._named(branch), **_decisions(options)}
        headers = _conditions(options)
        done: UndoResult = self._open.value("POST", path, body, headers=headers, is_write=True)
        return done


def _conditions(options: RemoteUndoKeywords | RemoteMergeKeywords) -> dict[str, str]:
    """The headers of a merge or an undo."""
    return request_headers(
        options.get("if_commit"), options.get("graph_commit_id"), options.get("idempotency_key")
    )


def _decisions(options: UndoKeywords) -> dict[str, Any]:
    """How conflicts are decided, and why. The actor is the token's."""
    refuse_direct({name: value for name, value in options.items() if name in ("actor", "engine", "spark")})
    choices = options.get("choices")
    return {
        "strict": options.get("strict"),
        "resolve": options.get("resolve"),
        "message": options.get("message"),
        "choices": None
        if choices is None
        else [{"table_key": key, "id": entity, "side": side} for (key, entity), side in choices.items()],
    }
