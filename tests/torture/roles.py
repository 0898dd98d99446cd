"""What kinds of processes take part in a torture run: what each of them does, and how often."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from tests.torture.steps import Kind

Role = Literal["writer", "crowd", "editor", "keeper", "loader"]
"""Writers change the graph in all ways there are. A crowd are threads of one process that change rows of one
branch, so that one of them commits for the others. Editors change rows and branches, keepers look after the graph,
and loaders load on Spark: a load takes long, and would have to be repeated whenever the schema is changed."""

_EDITS: Final[dict[Kind, int]] = {
    "mutation": 8,
    "load": 8,
    "update": 4,
    "delete": 2,
    "create branch": 1,
    "delete branch": 1,
    "merge": 4,
    "revert": 1,
    "cherry-pick": 1,
    "reset": 1,
}

WEIGHTS: Final[dict[Role, dict[Kind, int]]] = {
    "writer": {**_EDITS, "indices": 1, "optimize": 1, "schema": 2, "schema of all": 1},
    "crowd": {"mutation": 16, "update": 2, "delete": 1},
    "editor": _EDITS,
    "keeper": {"optimize": 4, "indices": 2, "cleanup": 2, "maintain": 2, "doctor": 1},
    "loader": {"spark load": 1},
}
"""How often a process of each role does what, in proportion."""


@dataclass(frozen=True, slots=True)
class Profile:
    """Who takes part in a run, and for how many seconds before everything is compared with the logs."""

    crew: tuple[Role, ...]
    round: float
    faults: bool
    """Do disks and requests fail as well?"""


PROFILES: Final = {
    "writers": Profile(("writer", "writer", "writer", "crowd"), 20.0, faults=True),
    "maintenance": Profile(("editor", "editor", "keeper", "keeper", "loader"), 150.0, faults=False),
}
