"""What a route is: how it is asked, who may ask, and what it gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from omnigraph.policy.actions import Action
from omnigraph.server.answers.calls import JSON, Answer, Call
from omnigraph.server.routes.parameters import Parameter

PREFIX: Final = "/graphs/{graph}"
IDEMPOTENCY_KEY: Final = "Idempotency-Key"


class Access(StrEnum):
    """Who may use a route, and how: without a token, to read, to write, or to do what a stored query does."""

    OPEN = "open"
    READ = "read"
    WRITE = "write"
    INVOKE = "invoke"


@dataclass(frozen=True, slots=True)
class Route:
    """One thing that can be asked. ``takes`` is the form of the body, None if there is none; ``gives`` are the
    forms of the answer, the first of them by default; ``answer`` names its JSON schema. ``action`` is what
    a policy has to allow for it, None if there is nothing to allow."""

    method: str
    path: str
    name: str
    run: Callable[[Call], Answer]
    access: Access
    action: Action | None
    answer: str
    parameters: Sequence[Parameter] = ()
    takes: str | None = None
    gives: Sequence[str] = (JSON,)
    is_large: bool = field(default=False)
    """May the body have the size of a load?"""

    looks_at_graphs: bool = False
    """Is it about all graphs, so that it has to wait for their stores?"""

    @property
    def takes_keys(self) -> bool:
        """Is it done once for each idempotency key?"""
        return any(each.name == IDEMPOTENCY_KEY for each in self.parameters)

    @property
    def runs_in_thread(self) -> bool:
        """Does it wait for a store?"""
        return self.is_about_a_graph or self.looks_at_graphs

    @property
    def summary(self) -> str:
        """What it does, in the words of the function that does it."""
        return (self.run.__doc__ or "").split("\n\n")[0].replace("\n    ", " ")

    @property
    def is_about_a_graph(self) -> bool:
        """Does its path name a graph?"""
        return self.path.startswith(PREFIX)
