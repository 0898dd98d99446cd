"""A request that was let in: what it asks for, and how it is answered once its body is there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from omnigraph.messages.values import MEDIA_TYPE as VALUES
from omnigraph.read.limits import Cancellation
from omnigraph.server.answers.calls import JSON, Call, Followed, Rendered, ServerState, Streamed
from omnigraph.server.routes.parameters import parse_body, require_all
from omnigraph.server.routes.route import Route
from omnigraph.server.transfer.heads import Head
from omnigraph.server.transfer.replies import rendered
from omnigraph.server.transfer.spool import Content


@dataclass(frozen=True, slots=True)
class Admitted:
    """A request: its values but for those of its body, who makes it, and the form and packing of its answer.

    Its body may have ``limit`` bytes; ``size`` is how many it says to have. ``stop`` ends what is done for it.
    """

    server: ServerState
    route: Route
    head: Head
    actor: str | None
    values: Mapping[str, Any]
    form: str
    codec: str | None
    limit: int
    size: int
    is_write: bool
    stop: Cancellation

    def answer(self, content: Content) -> Rendered | Streamed | Followed:
        """Do what is asked, and make bytes of the answer unless it is streamed. This waits for the store."""
        values = self.values
        if self.route.takes == JSON:
            values = {**values, **parse_body(self.route.parameters, bytes(content))}
            content = b""
        require_all(self.route.parameters, values)
        call = Call(self.server, self.actor, values, self.form, content, self.route.name, self.stop)
        answer = self.route.run(call)
        return answer if isinstance(answer, Streamed | Followed) else rendered(answer, self.form, self.codec)


def forms(route: Route) -> tuple[str, ...]:
    """The forms of a route's answer; JSON may also be Python values, for remote graphs of this program."""
    return (*route.gives, VALUES) if route.gives[0] == JSON else tuple(route.gives)
