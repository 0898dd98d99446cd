"""Tags: names for commits, whose states they keep. A tag exists if and only if its ref object does."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from omnigraph.errors import InvalidTagName, ObjectDamaged, TagExists, TagNotFound, TagOutcomeUnknown
from omnigraph.failpoints import hit
from omnigraph.manifest.ids import fresh_id
from omnigraph.manifest.refs.names import can_be_looked_up, check_new_tag
from omnigraph.manifest.refs.writes import RefWriter
from omnigraph.manifest.state import MAIN, Commit
from omnigraph.records import dataclass
from omnigraph.storage import layout
from omnigraph.storage.address import Scheme
from omnigraph.storage.control.sealed import damaged, number, optional_text, seal, text, unseal
from omnigraph.storage.objects import ObjectStore

if TYPE_CHECKING:
    from omnigraph.storage.locks import CommitLock


@dataclass(frozen=True, slots=True)
class Tag:
    """A name for a commit, with the branch and the manifest version that hold the commit's state."""

    name: str
    graph_commit_id: str
    branch: str
    manifest_version: int
    created_at: dt.datetime
    creator: str | None = None
    incarnation: str = ""

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "graph_commit_id": self.graph_commit_id,
            "branch": self.branch,
            "manifest_version": self.manifest_version,
            "created_at": self.created_at.isoformat().replace("+00:00", "Z"),
            "creator": self.creator,
        }


class Tags:
    """The tags of one graph."""

    def __init__(self, objects: ObjectStore, scheme: Scheme) -> None:
        self._objects = objects
        self._writer = RefWriter(objects, scheme, TagOutcomeUnknown)

    def get(self, name: str) -> Tag | None:
        """The tag of a name, if there is one."""
        trimmed = name.strip()
        found = self._objects.get(layout.tag_ref(trimmed)) if can_be_looked_up(trimmed) else None
        return None if found is None else decode_tag(trimmed, found.content)

    def has(self, name: str) -> bool:
        """Is there a tag of that name, damaged or not?"""
        return can_be_looked_up(name) and self._objects.has(layout.tag_ref(name))

    def names(self) -> list[str]:
        """The names of all tags, sorted, including damaged ones. Costs one listing."""
        keys = (key for key in self._objects.list(layout.TAG_REFS) if key.endswith(".json"))
        names = (key.removeprefix(layout.TAG_REFS + "/").removesuffix(".json") for key in keys)
        return [name for name in names if can_be_looked_up(name)]

    def listed(self) -> tuple[list[Tag], list[ObjectDamaged]]:
        """The tags that can be read, by name, and an error for each that cannot."""
        tags, unreadable = list[Tag](), list[ObjectDamaged]()
        for name in self.names():
            try:
                found = self.get(name)
            except ObjectDamaged as error:
                unreadable.append(error)
            else:
                tags += [] if found is None else [found]
        return tags, unreadable

    def pinned(self) -> list[Tag]:
        """All tags, for those who remove states: what a tag names must stay.

        ObjectDamaged if one cannot be read, because nothing is known about the state that it keeps.
        """
        tags, unreadable = self.listed()
        if unreadable:
            raise unreadable[0]
        return tags

    def check_create(self, name: str, branches: list[str]) -> str:
        """The trimmed name of a new tag; raises if it cannot be created."""
        trimmed, live = name.strip(), self.names()
        if trimmed in live:
            raise TagExists(trimmed)
        if trimmed in branches and trimmed != MAIN:
            raise InvalidTagName(trimmed, "there is a branch of that name")
        return check_new_tag(name, live)

    def create(
        self,
        name: str,
        commit: Commit,
        branches: list[str],
        lock: CommitLock,
        creator: str | None = None,
        incarnation: str | None = None,
    ) -> Tag:
        """Name a commit. The caller holds the control lock, and has made sure that the commit's state is there.

        A caller that may have to ask again chooses the tag's ``incarnation``, and finds it there.
        """
        tag = Tag(
            self.check_create(name, branches),
            commit.graph_commit_id,
            commit.branch,
            commit.manifest_version,
            dt.datetime.now(dt.UTC),
            creator,
            incarnation or fresh_id(),
        )
        hit("tag_create.before_ref")
        lock.verify()
        key = layout.tag_ref(tag.name)
        if not self._writer.write(tag.name, key, encode_tag(tag), lambda: self.get(tag.name) == tag):
            raise TagExists(tag.name)
        hit("tag_create.after_ref")
        return tag

    def check_delete(self, name: str) -> str:
        """The trimmed name of a tag, damaged or not; TagNotFound names the nearest one."""
        trimmed = name.strip()
        if not self.has(trimmed):
            from difflib import get_close_matches

            close = get_close_matches(trimmed, self.names(), n=1)
            raise TagNotFound(trimmed, close[0] if close else None)
        return trimmed

    def delete(self, name: str, lock: CommitLock) -> str:
        """Remove a tag, damaged or not; its trimmed name. The caller holds the control lock."""
        trimmed = self.check_delete(name)
        hit("tag_delete.before_ref")
        lock.verify()
        self._writer.remove(trimmed, layout.tag_ref(trimmed))
        hit("tag_delete.after_ref")
        return trimmed


def encode_tag(tag: Tag) -> bytes:
    return seal(
        {
            "graph_commit_id": tag.graph_commit_id,
            "branch": tag.branch,
            "manifest_version": tag.manifest_version,
            "created_at": tag.created_at.isoformat(),
            "creator": tag.creator,
            "incarnation": tag.incarnation,
        }
    )


def decode_tag(name: str, content: bytes) -> Tag:
    """The tag that a ref describes; ObjectDamaged if the content is not what was written."""
    key = layout.tag_ref(name)
    try:
        try:
            stored = unseal(key, content)
            return Tag(
                name,
                text(stored["graph_commit_id"]),
                text(stored["branch"]),
                number(stored["manifest_version"]),
                dt.datetime.fromisoformat(text(stored["created_at"])),
                optional_text(stored["creator"]),
                text(stored["incarnation"]),
            )
        except (ValueError, KeyError) as error:
            raise damaged(key, error) from error
    except ObjectDamaged as error:
        remedy = f"restore it from a copy, or remove the tag with `omnigraph tag delete {name}`"
        raise ObjectDamaged(key, error.reason, remedy) from error
