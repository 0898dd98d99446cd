"""What kinds of processes take part in a torture run: what each of them does, and how often."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from tests.torture.steps import Kind

Role = Literal["writer", "keeper", "loader"]
"""Writers change the graph in all ways there are, keepers look after it, and loaders load on Spark."""

WEIGHTS: Final[dict[Role, dict[Kind, int]]] = {
    "writer": {
        "mutation": 8,
        "load": 8,
        "update": 4,
        "delete": 2,
        "create branch": 1,
        "delete branch": 1,
        "indices": 1,
        "optimize": 1,
        "merge": 4,
        "revert": 1,
        "cherry-pick": 1,
        "reset": 1,
        "schema": 2,
        "schema of all": 1,
    },
    "keeper": {"optimize": 4, "indices": 2},
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
    "writers": Profile(("writer",) * 4, 20.0, faults=True),
    "maintenance": Profile(("writer", "writer", "keeper", "keeper", "loader"), 150.0, faults=False),
}
