"""Reading the files of an operator again: stored queries and the policy, both or neither."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from omnigraph.errors import OmniError
from omnigraph.policy.policy import Policy, read_policy
from omnigraph.server.answers.stored import read_stored
from omnigraph.server.application import Server


@dataclass(frozen=True, slots=True)
class OperatorFiles:
    """Where the stored queries and the policy of a server are, and the policy that its graphs ask."""

    queries: Path | None = None
    policy: Policy | None = None

    def reload(self, server: Server) -> bool:
        """Read them again. If a file has a mistake, the log says so and everything stays as it was."""
        try:
            stored = server.stored if self.queries is None else read_stored(self.queries, server.graphs)
            policy = None if self.policy is None else read_policy(self.policy.source)
        except OmniError as error:
            server.log("reload_failed", reason=str(error))
            return False
        server.stored = stored
        if self.policy is not None and policy is not None:
            self.policy.become(policy)
        server.log("reloaded", queries=sorted({name for each in stored.values() for name in each}))
        return True
