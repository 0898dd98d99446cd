"""Idempotency keys: a write that is sent again with the same key is answered, and not done again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any, Final, TypeVar

from omnigraph.arguments import text_argument
from omnigraph.errors import CommitDone, KeyReused
from omnigraph.graph import reservations
from omnigraph.manifest.state import Commit
from omnigraph.messages.values import decode_value, encode_value
from omnigraph.server.answers.calls import Call

R = TypeVar("R")
REPLAYED: Final = {"Idempotency-Replayed": "true"}
"""The header of an answer to a write that was done before."""
_LONGEST_KEY: Final = 256
_KEY: Final = "idempotency_key"


def done_once(
    call: Call, branch: str, run: Callable[[str | None], R], rebuilt: Callable[[Commit], R]
) -> tuple[R, dict[str, str]]:
    """The result of a write and the headers of its answer.

    ``run`` does the write, as a commit of the id it is given, if any; ``rebuilt`` is the result of a write that
    was done before and whose own result is lost.
    """
    given = call.get(_KEY)
    if given is None:
        return run(call.get("omnigraph_graph_commit_id")), {}
    key = text_argument("Idempotency-Key", given, _LONGEST_KEY)
    kept, digest = reservations(call.graph), _digest(call)
    reserved = kept.reserve(hashlib.sha256(f"{call.actor or ''}\0{key}".encode()).hexdigest(), digest)
    if reserved.digest != digest:
        raise KeyReused(key)
    if reserved.result is not None:
        return decode_value(reserved.result), REPLAYED
    try:
        done, headers = run(reserved.graph_commit_id), {}
    except CommitDone:
        commit = kept.commit(reserved, branch)
        if commit is None:
            raise
        done, headers = rebuilt(commit), REPLAYED
    kept.finish(reserved, encode_value(done))
    return done, headers


def _digest(call: Call) -> str:
    """What tells a write from others: all its values, but for the key itself."""
    values: dict[str, Any] = {name: value for name, value in call.values.items() if name != _KEY}
    shown = json.dumps(values, sort_keys=True, separators=(",", ":")).encode()
    digest = hashlib.sha256(shown + b"\0")
    digest.update(call.content)
    return digest.hexdigest()
