"""The embedding APIs: where each one is, the request it takes and the response it gives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from omnigraph.embed.client import Role
from omnigraph.embed.transport import Request


@dataclass(frozen=True, slots=True)
class Provider(ABC):
    """An API with its default server and model. ``keys`` names environment variables that may hold its API key."""

    name: str
    base_url: str
    model: str
    keys: tuple[str, ...]

    @abstractmethod
    def request(
        self, base_url: str, model: str, key: str | None, texts: Sequence[str], dimension: int | None, role: Role
    ) -> Request:
        """The request for the vectors of some texts. With a dimension of None the server chooses it."""

    @abstractmethod
    def vectors(self, response: Any) -> list[Any]:
        """The vectors of a response, in the order of the texts; LookupError or TypeError if it has none."""


class OpenAI(Provider):
    """`POST /embeddings`, the API that most servers offer."""

    __slots__ = ()

    def request(
        self, base_url: str, model: str, key: str | None, texts: Sequence[str], dimension: int | None, role: Role
    ) -> Request:
        del role  # the API has no place for it
        body: dict[str, Any] = {"model": model, "input": list(texts)}
        if dimension is not None:
            body["dimensions"] = dimension
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        return Request(f"{base_url}/embeddings", headers, body)

    def vectors(self, response: Any) -> list[Any]:
        items = list(response["data"])
        if all("index" in item for item in items):
            items.sort(key=lambda item: item["index"])
        return [item["embedding"] for item in items]


class Gemini(Provider):
    """`POST :embedContent`, or `:batchEmbedContents` for several texts. The request names the role of a text."""

    __slots__ = ()

    def request(
        self, base_url: str, model: str, key: str | None, texts: Sequence[str], dimension: int | None, role: Role
    ) -> Request:
        name = model.removeprefix("models/")
        task = "RETRIEVAL_QUERY" if role == "query" else "RETRIEVAL_DOCUMENT"
        requests: list[dict[str, Any]] = [
            {"model": f"models/{name}", "content": {"parts": [{"text": text}]}, "taskType": task} for text in texts
        ]
        if dimension is not None:
            for request in requests:
                request["outputDimensionality"] = dimension
        headers = {} if key is None else {"X-Goog-Api-Key": key}
        url = f"{base_url}/models/{name}"
        if len(requests) == 1:
            return Request(f"{url}:embedContent", headers, requests[0])
        return Request(f"{url}:batchEmbedContents", headers, {"requests": requests})

    def vectors(self, response: Any) -> list[Any]:
        items = [response["embedding"]] if "embedding" in response else response["embeddings"]
        return [item["values"] for item in items]


_ALL: Final[tuple[Provider, ...]] = (
    OpenAI(
        "openai-compatible",
        "https://openrouter.ai/api/v1",
        "openai/text-embedding-3-large",
        ("OPENROUTER_API_KEY", "OPENAI_API_KEY"),
    ),
    OpenAI("openai", "https://api.openai.com/v1", "text-embedding-3-large", ("OPENAI_API_KEY",)),
    Gemini(
        "gemini",
        "https://generativelanguage.googleapis.com/v1beta",
        "gemini-embedding-2",
        ("GEMINI_API_KEY",),
    ),
)
PROVIDERS: Final = {provider.name: provider for provider in _ALL}
