"""What each verb can work on, which decides which words about the graph it takes."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class Capability(StrEnum):
    """What a verb works on."""

    ANY = "any"
    """A graph, in its storage or on a server."""
    SERVED = "served"
    """A server."""
    DIRECT = "direct"
    """A graph's storage, which no server gives access to."""
    CONTROL = "control"
    """The configuration of a cluster, in a folder that --config names."""
    LOCAL = "local"
    """Files of this machine, and no graph."""


_BY_CAPABILITY: Final[Mapping[Capability, tuple[str, ...]]] = {
    Capability.ANY: (
        "query",
        "entity",
        "blob",
        "mutate",
        "load",
        "ingest",
        "export",
        "log",
        "blame",
        "revert",
        "cherry-pick",
        "reset",
        "snapshot",
        "explain",
        "lint",
        "schema",
        "branch",
        "tag",
        "commit",
        "changes",
        "recovery",
        "queries",
    ),
    Capability.SERVED: ("graphs",),
    Capability.DIRECT: (
        "init",
        "diff",
        "jobs",
        "doctor",
        "repair",
        "clone",
        "backup",
        "backups",
        "restore",
        "embed",
        "index",
        "optimize",
        "maintain",
        "cleanup",
        "serve",
    ),
    Capability.CONTROL: ("cluster",),
    Capability.LOCAL: ("fmt", "version", "policy", "alias", "profile", "login", "logout"),
}

_LEGEND: Final[Mapping[Capability, str]] = {
    Capability.ANY: "A graph in its storage (--store, --cluster) or on a server (--server)",
    Capability.SERVED: "A server (--server)",
    Capability.DIRECT: "A graph's storage (--store, --cluster)",
    Capability.LOCAL: "Files of this machine",
}
LEGEND: Final = "\n\n".join(
    f"{text}: {', '.join(_BY_CAPABILITY[capability])}." for capability, text in _LEGEND.items()
)
"""What each verb works on, for people."""
CAPABILITIES: Final[Mapping[str, Capability]] = {
    verb: capability for capability, verbs in _BY_CAPABILITY.items() for verb in verbs
}
"""The capability of each verb; the verbs of a group share that of the group."""
