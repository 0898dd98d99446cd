"""The client of embedding servers: it sends batches, a few at a time, and checks the vectors that come back."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import urlsplit

import numpy as np

from omnigraph.embed import variables
from omnigraph.embed.batches import BatchLimits, cut, distinct
from omnigraph.embed.client import Role, Vectors
from omnigraph.embed.providers import PROVIDERS
from omnigraph.embed.semaphore import machine_semaphore, process_semaphore
from omnigraph.embed.transport import RequestFailed, RetryPolicy, post_json
from omnigraph.errors import EmbeddingUnavailable

_SHORTEST: Final = 1e-12
"""A vector that is shorter than this has no direction."""
_KEY_REFUSED: Final = (401, 403)
_TEXTS_REFUSED: Final = (400, 413, 422)


@dataclass(frozen=True, slots=True)
class HttpClient:
    """Computes vectors with one model of one server. It can be pickled, and its ``repr`` leaves out the API key.

    ``concurrency`` limits the requests in flight: those of this process or, if ``machine_wide``, those of all
    processes of the machine. Without ``sends_dimension``, requests leave the dimension to the model.
    """

    provider: str
    model: str
    base_url: str
    api_key: str | None = field(default=None, repr=False)
    limits: BatchLimits = field(default_factory=BatchLimits)
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    concurrency: int = 4
    sends_dimension: bool = True
    machine_wide: bool = False

    def for_job(self) -> HttpClient:
        """The client of a bulk job: it retries for longer, and its request limit holds for the whole machine."""
        return replace(self, retry=self.retry.for_job(), machine_wide=True)

    def embed(self, texts: Sequence[str], dimension: int, role: Role) -> Vectors:
        """Unit vectors of the texts. When a request fails for good, the batches not yet sent are cancelled."""
        unique, inverse = distinct(texts)
        batches = cut(unique, self.limits)
        if not batches:
            return np.empty((0, dimension), np.float32)
        if len(batches) == 1:
            return self._embed_batch(batches[0], dimension, role)[inverse]
        pool = ThreadPoolExecutor(min(self.concurrency, len(batches)), "omnigraph-embed")
        try:
            parts = list(pool.map(lambda batch: self._embed_batch(batch, dimension, role), batches))
        finally:
            pool.shutdown(cancel_futures=True)
        return np.concatenate(parts)[inverse]

    def _embed_batch(self, texts: Sequence[str], dimension: int, role: Role) -> Vectors:
        """The vectors of one request. An empty text is sent as a space, because servers refuse empty ones."""
        provider = PROVIDERS[self.provider]
        inputs = [text or " " for text in texts]
        sent_dimension = dimension if self.sends_dimension else None
        request = provider.request(self.base_url, self.model, self.api_key, inputs, sent_dimension, role)
        try:
            with self._semaphore():
                response = post_json(request, self.retry)
        except RequestFailed as failure:
            raise self._unavailable(failure, texts) from None
        try:
            vectors = provider.vectors(response)
        except (LookupError, TypeError, AttributeError):
            raise EmbeddingUnavailable(
                f"{self._label}: the answer has no vectors; check {variables.BASE_URL} and {variables.PROVIDER}"
            ) from None
        return self._unit_vectors(vectors, len(texts), dimension)

    def _semaphore(self) -> AbstractContextManager[Any]:
        if self.machine_wide:
            return machine_semaphore(self.base_url, self.concurrency)
        return process_semaphore(self.base_url, self.concurrency)

    def _unit_vectors(self, found: list[Any], count: int, dimension: int) -> Vectors:
        """The vectors of a response scaled to length one, refused unless they have the right number and width."""
        if len(found) != count:
            raise self._unusable(f"{len(found)} vectors for {count} texts")
        widths = sorted({len(vector) if isinstance(vector, list) else 0 for vector in found})
        if widths != [dimension]:
            raise EmbeddingUnavailable(
                f"{self._label}: vectors of {', '.join(map(str, widths))} components, and the schema has "
                f"Vector({dimension}); choose a model that gives {dimension}, or change the schema"
            )
        try:
            vectors = np.asarray(found, np.float64)
        except (TypeError, ValueError):
            raise self._unusable("a vector has components that are no numbers") from None
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(vectors).all() or not (lengths > _SHORTEST).all():
            raise self._unusable("a vector is not finite, or has no length")
        unit: Vectors = (vectors / lengths).astype(np.float32)
        return unit

    def _unusable(self, reason: str) -> EmbeddingUnavailable:
        """The error for a response whose vectors cannot be stored."""
        return EmbeddingUnavailable(f"{self._label}: {reason}; check {variables.MODEL} and {variables.BASE_URL}")

    @property
    def _label(self) -> str:
        """How error messages name this client."""
        return f"{self.provider} model {self.model} at {urlsplit(self.base_url).netloc}"

    def _unavailable(self, failure: RequestFailed, texts: Sequence[str]) -> EmbeddingUnavailable:
        """The error for a request that failed: the server, its reason without the API key, and a remedy."""
        reason = failure.reason if self.api_key is None else failure.reason.replace(self.api_key, "…")
        times = f" {failure.attempts} times" if failure.attempts > 1 else ""
        answer = "did not answer" if failure.status is None else f"answered {failure.status}"
        return EmbeddingUnavailable(f"{self._label} {answer}{times}: {reason}; {self._remedy(failure, texts)}")

    def _remedy(self, failure: RequestFailed, texts: Sequence[str]) -> str:
        if failure.status in _KEY_REFUSED:
            return f"check the key in {' or '.join((variables.API_KEY, *PROVIDERS[self.provider].keys))}"
        if failure.status == 404:
            return f"check {variables.MODEL} and {variables.BASE_URL}"
        if failure.status in _TEXTS_REFUSED:
            hint = f", or set {variables.DIMENSIONS}=off" if "dimension" in failure.reason.lower() else ""
            longest = max(map(len, texts))
            return f"of {len(texts)} texts the longest has {longest:,} characters; shorten it{hint}"
        if failure.status == 429:
            return f"lower {variables.CONCURRENCY}, raise {variables.DEADLINE}, or try again later"
        return f"see whether the server runs, check {variables.BASE_URL}, or try again later"
