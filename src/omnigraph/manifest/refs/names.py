"""The rules for the names of branches and tags, and what else a text can name a state by."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable
from typing import Final

from omnigraph.errors import InvalidBranchName, InvalidTagName
from omnigraph.manifest.state import MAIN

_SEGMENT: Final = re.compile(r"[A-Za-z0-9._-]+", re.ASCII)
_COMMIT: Final = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}", re.ASCII)
_MOMENT: Final = re.compile(r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}[0-9:.,]*([Zz]|[+-]\d{2}(:?\d{2})?)?", re.ASCII)
_LONGEST: Final = 180
"""Lance names a file after a native branch: a slash takes five characters, and a suffix is added."""


def check_new_name(name: str, live: Iterable[str]) -> str:
    """The trimmed name of a new branch; InvalidBranchName says which rule it breaks."""
    trimmed = name.strip()
    reason = _broken_rule(trimmed, live, "branch")
    if reason is not None:
        raise InvalidBranchName(_shown(trimmed), reason)
    return trimmed


def check_new_tag(name: str, live: Iterable[str]) -> str:
    """The trimmed name of a new tag; InvalidTagName says which rule it breaks.

    The rules are those of branches. A tag is given where a commit or a manifest version could be, so it must not
    look like one.
    """
    trimmed = name.strip()
    reason = _broken_rule(trimmed, live, "tag")
    if reason is None and trimmed.isdecimal():
        reason = "a number is a manifest version"
    if reason is None and is_commit_id(trimmed):
        reason = "it looks like the id of a commit"
    if reason is not None:
        raise InvalidTagName(_shown(trimmed), reason)
    return trimmed


def is_commit_id(name: str) -> bool:
    """Does a text look like the id of a commit?"""
    return _COMMIT.fullmatch(name) is not None


def moment_named(name: str) -> dt.datetime | None:
    """The moment in UTC that a text such as `2026-11-01T12:00Z` names; None if it names none. No branch, tag or
    commit is called so."""
    if _MOMENT.fullmatch(name) is None:
        return None
    try:
        return in_utc(dt.datetime.fromisoformat(name.upper()))
    except (ValueError, OverflowError):
        return None


def in_utc(moment: dt.datetime) -> dt.datetime:
    """A moment in UTC; one without a zone is in UTC already."""
    return moment.replace(tzinfo=dt.UTC) if moment.tzinfo is None else moment.astimezone(dt.UTC)


def _shown(name: str) -> str:
    return name if len(name) <= _LONGEST else name[:40] + "…"


def _broken_rule(name: str, live: Iterable[str], what: str) -> str | None:
    """The rule that a new name breaks, in words; None if it breaks none."""
    segments = name.split("/")
    if not name:
        return "it is empty"
    if len(name.replace("/", "%252F")) > _LONGEST:
        return f"it has more than {_LONGEST} characters ('/' counts as five)"
    if name == MAIN:
        return "every graph has its main branch already"
    if name.startswith("__"):
        return "names that start with two underscores are internal"
    if not all(_SEGMENT.fullmatch(segment) for segment in segments):
        return "it is made of letters, digits, '.', '_' and '-', in parts separated by '/'"
    if ".." in name or any(segment.endswith(".") for segment in segments):
        return "no part may end with a dot, and no two dots may follow each other"
    if any(segment.endswith(".json") for segment in segments):
        return "no part may end with '.json', because the refs of branches and tags do"
    for other in live:
        if other.startswith(name + "/") or name.startswith(other + "/"):
            return f"it and {what} '{other}' cannot be a folder and a name at once"
    return None


def can_be_looked_up(name: str) -> bool:
    """Can a branch or tag have that name, also in an older release? Others could lead outside the refs' folder."""
    return len(name) <= 250 and all(_SEGMENT.fullmatch(part) and part.strip(".") for part in name.split("/"))
