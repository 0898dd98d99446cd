"""The rules for branch names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from omnigraph.errors import InvalidBranchName
from omnigraph.manifest.state import MAIN

_SEGMENT: Final = re.compile(r"[A-Za-z0-9._-]+", re.ASCII)
_LONGEST: Final = 180
"""Lance names a file after a native branch: a slash takes five characters, and a suffix is added."""


def check_new_name(name: str, live: Iterable[str]) -> str:
    """The trimmed name of a new branch; InvalidBranchName says which rule it breaks."""
    trimmed = name.strip()
    if not trimmed:
        raise InvalidBranchName(name, "it is empty")
    if len(trimmed.replace("/", "%252F")) > _LONGEST:
        raise InvalidBranchName(trimmed[:40] + "…", f"it has more than {_LONGEST} characters ('/' counts as five)")
    if trimmed == MAIN:
        raise InvalidBranchName(trimmed, "every graph has its main branch already")
    if trimmed.startswith("__"):
        raise InvalidBranchName(trimmed, "names that start with two underscores are internal")
    segments = trimmed.split("/")
    if not all(_SEGMENT.fullmatch(segment) for segment in segments):
        raise InvalidBranchName(
            trimmed, "it is made of letters, digits, '.', '_' and '-', in parts separated by '/'"
        )
    if ".." in trimmed or any(segment.endswith(".") for segment in segments):
        raise InvalidBranchName(trimmed, "no part may end with a dot, and no two dots may follow each other")
    if any(segment.endswith(".json") for segment in segments):
        raise InvalidBranchName(trimmed, "no part may end with '.json', because the refs of branches do")
    for other in live:
        if other.startswith(trimmed + "/") or trimmed.startswith(other + "/"):
            raise InvalidBranchName(trimmed, f"it and branch '{other}' cannot be a folder and a name at once")
    return trimmed


def can_be_looked_up(name: str) -> bool:
    """Can a branch have that name, also in an older release? Other names could lead outside the refs' folder."""
    return len(name) <= 250 and all(_SEGMENT.fullmatch(part) and part.strip(".") for part in name.split("/"))
