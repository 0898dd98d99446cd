"""What stands against a cluster: its configuration, its ledger, or a change of a graph that it manages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from omnigraph.errors.requests import RequestError
from omnigraph.problems import ClusterProblem

_SHOWN: Final = 20


class ClusterRefused(RequestError):
    """A cluster that cannot be worked on, with everything that is wrong. Each problem has a code and a place."""

    def __init__(self, place: str, problems: Sequence[ClusterProblem]) -> None:
        super().__init__(place, tuple(problems))
        self.place = place
        self.problems = tuple(problems)

    @property
    def code(self) -> str:
        """The code of the first problem."""
        return self.problems[0].code

    def __str__(self) -> str:
        shown = [str(each) for each in self.problems[:_SHOWN]]
        more = len(self.problems) - len(shown)
        return "\n".join([f"cluster {self.place}:", *shown, *([f"… and {more} more"] if more else [])])

    def as_json(self) -> dict[str, Any]:
        return {
            "error": str(self),
            "code": self.code,
            "place": self.place,
            "diagnostics": [each.as_json() for each in self.problems],
        }


class ClusterManaged(RequestError):
    """Something that a cluster does for its graphs, asked of one of them by itself."""

    def __init__(self, what: str, address: str) -> None:
        super().__init__(what, address)
        self.what = what
        self.address = address

    def __str__(self) -> str:
        return (
            f"{self.address} belongs to a cluster, which decides about {self.what}; nothing was written."
            " Change cluster.yaml and the files it names, then run `omnigraph cluster apply`"
        )

    def as_json(self) -> dict[str, Any]:
        return {"error": str(self), "what": self.what}
