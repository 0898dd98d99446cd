"""The ref objects of branches: one small object each. A branch exists as long as its ref does."""

from __future__ import annotations

import datetime as dt
from typing import Any

from omnigraph.errors import ObjectDamaged
from omnigraph.manifest.drafts import BranchName
from omnigraph.manifest.refs.names import can_be_looked_up
from omnigraph.manifest.state import MAIN
from omnigraph.records import dataclass
from omnigraph.storage import layout
from omnigraph.storage.control.sealed import damaged, optional_number, optional_text, seal, text, unseal


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch of a graph and where it comes from."""

    name: str
    native: str | None
    incarnation: str | None = None
    parent: str | None = None
    fork_version: int | None = None
    fork_commit: str | None = None
    created_at: dt.datetime | None = None
    creator: str | None = None
    request: str | None = None
    """What its caller has reserved for making it, if anything: who finds it there has made this very branch."""

    @property
    def ref(self) -> BranchName:
        """The branch as the manifest names it."""
        return BranchName(self.name, self.native)

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "parent": self.parent,
            "fork_manifest_version": self.fork_version,
            "fork_commit_id": self.fork_commit,
            "created_at": None if self.created_at is None else self.created_at.isoformat().replace("+00:00", "Z"),
            "creator": self.creator,
            "incarnation": self.incarnation,
        }


TRUNK = Branch(MAIN, None)


def named_by(keys: list[str]) -> list[str]:
    """The names of the branches whose refs have these keys; keys of other files are left out."""
    names = (
        key.removeprefix(layout.BRANCH_REFS + "/").removesuffix(".json") for key in keys if key.endswith(".json")
    )
    return [name for name in names if can_be_looked_up(name) and name != MAIN]


def encode_ref(branch: Branch) -> bytes:
    """The content of a branch's ref object."""
    return seal(
        {
            "native": branch.native,
            "incarnation": branch.incarnation,
            "parent": branch.parent,
            "fork_version": branch.fork_version,
            "fork_commit": branch.fork_commit,
            "created_at": None if branch.created_at is None else branch.created_at.isoformat(),
            "creator": branch.creator,
            **({} if branch.request is None else {"request": branch.request}),
        }
    )


def decode_ref(name: str, content: bytes) -> Branch:
    """The branch that a ref describes; ObjectDamaged if the content is not what was written."""
    key = layout.branch_ref(name)
    try:
        try:
            stored = unseal(key, content)
            created_at = optional_text(stored["created_at"])
            return Branch(
                name,
                text(stored["native"]),
                optional_text(stored["incarnation"]),
                optional_text(stored["parent"]),
                optional_number(stored["fork_version"]),
                optional_text(stored["fork_commit"]),
                None if created_at is None else dt.datetime.fromisoformat(created_at),
                optional_text(stored["creator"]),
                optional_text(stored.get("request")),
            )
        except (ValueError, KeyError) as error:
            raise damaged(key, error) from error
    except ObjectDamaged as error:
        remedy = f"restore it from a copy, or remove the branch with `omnigraph branch delete {name}`"
        raise ObjectDamaged(key, error.reason, remedy) from error
