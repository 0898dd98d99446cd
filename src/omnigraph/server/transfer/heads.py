"""The head of a request: its method, its path, its query string and its headers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from starlette.types import Scope


@dataclass(frozen=True, slots=True)
class Head:
    """What is known of a request before its body. The names of headers are in lower case."""

    method: str
    path: str
    query: bytes = b""
    headers: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, scope: Scope) -> Head:
        """The head of a request as uvicorn has parsed it."""
        headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1"), []).append(value.decode("latin-1"))
        return cls(scope["method"], scope["path"], scope["query_string"], headers)

    def get(self, name: str) -> str | None:
        """The first header of a name; None if there is none."""
        found = self.headers.get(name)
        return None if found is None else found[0]

    def all(self, name: str) -> Sequence[str]:
        """All headers of a name, which is in any case."""
        return self.headers.get(name.lower(), ())

    def pairs(self) -> list[tuple[str, str]]:
        """The names and values of the query string, in their order."""
        return parse_qsl(self.query.decode("latin-1"), keep_blank_values=True) if self.query else []
