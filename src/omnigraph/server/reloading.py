"""Reading the files of an operator again: stored queries and policies, all or none."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from omnigraph.errors import OmniError, RequestError
from omnigraph.policy.policy import log_decision
from omnigraph.server.answers.stored import read_stored
from omnigraph.server.application import Server
from omnigraph.server.policies import FILE, ServerPolicies, read_policies


class Reloaded(Protocol):
    """What a server reads again when it is told to."""

    def reload(self, server: Server) -> bool:
        """Read it again; False, and everything as it was, if something is wrong with it."""


@dataclass(frozen=True, slots=True)
class OperatorFiles:
    """Where the stored queries and the policies of a server are, and the policies that its graphs ask."""

    queries: Path | None = None
    policy: Path | None = None
    policies: ServerPolicies | None = None

    def reload(self, server: Server) -> bool:
        """Read them again. If a file has a mistake, the log says so and everything stays as it was."""
        try:
            stored = server.stored if self.queries is None else read_stored(self.queries, server.graphs)
            policies = self._policies()
        except OmniError as error:
            server.log("reload_failed", reason=str(error))
            return False
        server.stored = stored
        if self.policies is not None and policies is not None:
            self.policies.become(policies)
        server.log("reloaded", queries=sorted({name for each in stored.values() for name in each}))
        return True

    def _policies(self) -> ServerPolicies | None:
        """The policies as their files are now; RequestError if there is none about the server any more."""
        if self.policy is None or self.policies is None:
            return None
        read = read_policies(self.policy, self.policies.graphs.keys(), log_decision)
        if (read.server is None) != (self.policies.server is None):
            raise RequestError(f"{self.policy / FILE} was added or removed; start the server again")
        return read
