"""What is going to happen to one writer, decided by a seed before it starts."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final, Literal

from tests.torture.roles import Role

from omnigraph import failpoints

WINDOWS: Final = sorted(
    failpoints.WRITE_NAMES
    | {name for name in failpoints.NAMES if name.split(".")[0] in ("publish", "branch_create", "branch_delete")}
)
"""The failpoints at which writers are killed and stopped."""

CLEANUP_WINDOWS: Final = sorted(failpoints.CLEANUP_NAMES)
"""The failpoints at which keepers are killed and stopped as well."""

Trouble = Literal["none", "faulty disk", "size limit", "impatient"]
"""What a writer's own surroundings do to it: its disk fails now and then, its files may not grow above some size
for a while, or its clients do not try again when a request fails."""


@dataclass(frozen=True, slots=True)
class Fate:
    """The life of one writer. A ``window`` is a failpoint, and ``hits`` how often it is passed before."""

    seed: int
    lifetime: float
    role: Role = "writer"
    trouble: Trouble = "none"
    killed_at: str | None = None
    killed_after: int = 0
    stopped_at: str | None = None
    stopped_after: int = 0
    stopped_for: float = 0.0
    stopped_when: float | None = None
    forks_at: int | None = None


def fate(chance: random.Random, troubles: tuple[Trouble, ...], role: Role = "writer") -> Fate:
    """Draw one. A loader has to live longer, because Spark needs a while to start."""
    killed = chance.random() < 0.5
    stopped = chance.choices(["never", "at a window", "any moment"], [2, 1, 1])[0]
    windows = [*WINDOWS, *CLEANUP_WINDOWS * 3] if role == "keeper" else WINDOWS
    lifetime = chance.uniform(60.0, 115.0) if role == "loader" else chance.uniform(0.5, 15.0)
    return Fate(
        seed=chance.randrange(2**32),
        lifetime=lifetime,
        role=role,
        trouble=chance.choice(troubles),
        killed_at=chance.choice(windows) if killed else None,
        killed_after=chance.randint(1, 5),
        stopped_at=chance.choice(windows) if stopped == "at a window" else None,
        stopped_after=chance.randint(1, 4),
        stopped_for=chance.uniform(0.1, 5.0),
        stopped_when=chance.uniform(0.0, lifetime) if stopped == "any moment" else None,
        forks_at=chance.randint(1, 5) if role in ("writer", "editor") and chance.random() < 0.25 else None,
    )
