"""Idempotency keys: a write that is sent again with the same key is answered, and not done again."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Protocol, TypeVar

from omnigraph.arguments import text_argument
from omnigraph.errors import BranchExists, KeyReused, OmniError, TagExists
from omnigraph.graph import reservations
from omnigraph.manifest.state import Commit
from omnigraph.messages.values import decode_value, encode_value
from omnigraph.server.answers.calls import Call
from omnigraph.write.reservations import Reservation, Reservations


class Committed(Protocol):
    """The result of a write: ``commit`` is None if there was nothing to write."""

    @property
    def commit(self) -> Commit | None: ...


R = TypeVar("R")
C = TypeVar("C", bound=Committed)
REPLAYED: Final = {"Idempotency-Replayed": "true"}
"""The header of an answer to a write that was done before."""
_ANSWERED_WITHIN: Final = dt.timedelta(seconds=2)
_LOOKED_AGAIN_SECONDS: Final = 0.02
_LONGEST_KEY: Final = 256
_KEY: Final = "idempotency_key"


@dataclass(frozen=True, slots=True)
class Done(Generic[R]):
    """The result of a write, the headers of its answer, and what else was done with it."""

    result: R
    headers: Mapping[str, str] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)


def done_once(
    call: Call,
    branch: str,
    run: Callable[[str | None], C],
    rebuilt: Callable[[Commit], C],
    then: Callable[[C, bool], dict[str, Any]] = lambda _, __: {},
) -> Done[C]:
    """The result of a write.

    ``run`` does the write, as a commit of the id it is given, if any; ``rebuilt`` is the result of a write that
    was done before and whose own result is lost. ``then`` does what comes after the commit, and is told whether it
    may have been done before.
    """
    reserved = _reserved(call)
    if reserved is None:
        done = run(call.get("omnigraph_graph_commit_id"))
        return Done(done, {}, then(done, False))
    if reserved.result is not None:
        return _replayed(reserved)
    kept = reservations(call.graph)
    try:
        found = run(reserved.graph_commit_id)
        made = kept.commit(reserved, branch) if found.commit is None else None
    except OmniError:  # perhaps because the commit is there: its branch has moved on, or its source is gone
        made = kept.commit(reserved, branch)
        if made is None:
            raise
    if made is not None:
        kept_meanwhile = _answered(kept, reserved, made)
        if kept_meanwhile is not None:
            return _replayed(kept_meanwhile)
        found = rebuilt(made)
    more = then(found, made is not None)
    kept.finish(reserved, encode_value((found, more)))
    return Done(found, REPLAYED if made is not None else {}, more)


def _answered(kept: Reservations, reserved: Reservation, made: Commit) -> Reservation | None:
    """The reservation with the answer of whoever made its commit, which may be about to keep it.

    Only a commit of this moment is waited for: the others' maker is gone, or would have kept its answer.
    """
    until = made.created_at + _ANSWERED_WITHIN
    while True:
        again = kept.reserve(reserved.name, reserved.digest)
        if again.result is not None:
            return again
        if dt.datetime.now(dt.UTC) >= until:
            return None
        time.sleep(_LOOKED_AGAIN_SECONDS)


def made_once(call: Call, run: Callable[[str | None], R], found: Callable[[Reservation], R | None]) -> Done[R]:
    """The result of what makes no commit, but something with a name.

    ``run`` makes it for the id that it is given, if any; ``found`` is what there is of a reservation, made before
    by the same write, or at this moment by another server.
    """
    reserved = _reserved(call)
    if reserved is None:
        return Done(run(None))
    if reserved.result is not None:
        return _replayed(reserved)
    headers: Mapping[str, str] = {}
    try:
        made = run(reserved.graph_commit_id)
    except (BranchExists, TagExists):
        again = found(reserved)
        if again is None:
            raise
        made, headers = again, REPLAYED
    reservations(call.graph).finish(reserved, encode_value((made, {})))
    return Done(made, headers)


def _reserved(call: Call) -> Reservation | None:
    """What is reserved for the key of a call; None if it has none, KeyReused if that is for another write."""
    given = call.get(_KEY)
    if given is None:
        return None
    key, digest = text_argument("Idempotency-Key", given, _LONGEST_KEY), _digest(call)
    name = hashlib.sha256(f"{call.actor or ''}\0{key}".encode()).hexdigest()
    reserved = reservations(call.graph).reserve(name, digest)
    if reserved.digest != digest:
        raise KeyReused(key)
    return reserved


def _replayed(reserved: Reservation) -> Done[Any]:
    result, more = decode_value(reserved.result)
    return Done(result, REPLAYED, more)


def _digest(call: Call) -> str:
    """What tells a write from others: its route and all its values, but for the key itself."""
    values: dict[str, Any] = {name: value for name, value in call.values.items() if name != _KEY}
    shown = json.dumps([call.route, values], sort_keys=True, separators=(",", ":")).encode()
    digest = hashlib.sha256(shown + b"\0")
    digest.update(call.content)
    return digest.hexdigest()
