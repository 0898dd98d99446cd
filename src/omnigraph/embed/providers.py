"""The servers that are known: where they are, how they are asked, and how they answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from omnigraph.embed.client import Role
from omnigraph.embed.transport import Question


@dataclass(frozen=True, slots=True)
class Provider(ABC):
    """A kind of server, and what holds where nothing else is said. ``keys`` are variables that may hold a key."""

    name: str
    base_url: str
    model: str
    keys: tuple[str, ...]

    @abstractmethod
    def question(
        self, base_url: str, model: str, key: str | None, texts: Sequence[str], dimension: int | None, role: Role
    ) -> Question:
        """How the vectors of some texts are asked for; a dimension of None is left to the server."""

    @abstractmethod
    def vectors(self, answer: Any) -> list[Any]:
        """The vectors of an answer, in the order of the texts. KeyError and the like if it has another form."""


class OpenAI(Provider):
    """`POST /embeddings`, which most servers speak."""

    __slots__ = ()

    def question(
        self, base_url: str, model: str, key: str | None, texts: Sequence[str], dimension: int | None, role: Role
    ) -> Question:
        del role  # the model is not told
        body: dict[str, Any] = {"model": model, "input": list(texts)}
        if dimension is not None:
            body["dimensions"] = dimension
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        return Question(f"{base_url}/embeddings", headers, body)

    def vectors(self, answer: Any) -> list[Any]:
        found = list(answer["data"])
        if all("index" in one for one in found):
            found.sort(key=lambda one: one["index"])
        return [one["embedding"] for one in found]


class Gemini(Provider):
    """`POST :embedContent`, or `:batchEmbedContents` for several texts; the model is told what a text is for."""

    __slots__ = ()

    def question(
        self, base_url: str, model: str, key: str | None, texts: Sequence[str], dimension: int | None, role: Role
    ) -> Question:
        name = model.removeprefix("models/")
        task = "RETRIEVAL_QUERY" if role == "query" else "RETRIEVAL_DOCUMENT"
        requests: list[dict[str, Any]] = [
            {"model": f"models/{name}", "content": {"parts": [{"text": text}]}, "taskType": task} for text in texts
        ]
        if dimension is not None:
            for request in requests:
                request["outputDimensionality"] = dimension
        headers = {} if key is None else {"x-goog-api-key": key}
        place = f"{base_url}/models/{name}"
        if len(requests) == 1:
            return Question(f"{place}:embedContent", headers, requests[0])
        return Question(f"{place}:batchEmbedContents", headers, {"requests": requests})

    def vectors(self, answer: Any) -> list[Any]:
        found = [answer["embedding"]] if "embedding" in answer else answer["embeddings"]
        return [one["values"] for one in found]


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
