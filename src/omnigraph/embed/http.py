"""A client of embedding servers over HTTP: batches, a few at a time, and only vectors that can be stored."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import urlsplit

import numpy as np

from omnigraph.embed import variables
from omnigraph.embed.batches import BatchLimits, cut, each_once
from omnigraph.embed.client import Role, Vectors
from omnigraph.embed.providers import PROVIDERS
from omnigraph.embed.transport import Patience, Unanswered, ask
from omnigraph.embed.turns import turn
from omnigraph.errors import EmbeddingUnavailable

_SHORTEST: Final = 1e-12
"""A vector that is shorter than this points nowhere."""
_KEY_REFUSED: Final = (401, 403)
_TOO_LONG: Final = (400, 413, 422)


@dataclass(frozen=True, slots=True)
class HttpClient:
    """Asks one model of one server. It is plain data, so it goes to other processes; its key is never shown.

    ``concurrency`` is how many requests are under way at a time: from this process, or, in a job, from all
    processes of the machine. ``sends_dimension`` is off for models that cannot be asked for one.
    """

    provider: str
    model: str
    base_url: str
    api_key: str | None = field(default=None, repr=False)
    limits: BatchLimits = field(default_factory=BatchLimits)
    patience: Patience = field(default_factory=Patience)
    concurrency: int = 4
    sends_dimension: bool = True
    of_job: bool = False

    def for_job(self) -> HttpClient:
        """The same for a job: it waits longer, and shares its turns with the other tasks of the machine."""
        return replace(self, patience=self.patience.of_job(), of_job=True)

    def embed(self, texts: Sequence[str], dimension: int, role: Role) -> Vectors:
        """Unit vectors of the texts. The first request that fails for good stops those that wait."""
        different, which = each_once(texts)
        batches = cut(different, self.limits)
        if not batches:
            return np.empty((0, dimension), np.float32)
        if len(batches) == 1:
            return self._asked(batches[0], dimension, role)[which]
        pool = ThreadPoolExecutor(min(self.concurrency, len(batches)), "omnigraph-embed")
        try:
            parts = list(pool.map(lambda batch: self._asked(batch, dimension, role), batches))
        finally:
            pool.shutdown(cancel_futures=True)
        return np.concatenate(parts)[which]

    def _asked(self, texts: Sequence[str], dimension: int, role: Role) -> Vectors:
        """The vectors of one request. Servers refuse texts without a letter, so those are sent as a space."""
        provider = PROVIDERS[self.provider]
        sent = [text or " " for text in texts]
        asked_for = dimension if self.sends_dimension else None
        question = provider.question(self.base_url, self.model, self.api_key, sent, asked_for, role)
        try:
            with turn(self.base_url, self.concurrency, of_machine=self.of_job):
                answer = ask(question, self.patience)
        except Unanswered as error:
            raise self._unavailable(error, texts) from None
        try:
            found = provider.vectors(answer)
        except (KeyError, TypeError, IndexError, AttributeError):
            raise EmbeddingUnavailable(
                f"{self._shown}: the answer has no vectors; check {variables.BASE_URL}"
            ) from None
        return self._checked(found, len(texts), dimension)

    def _checked(self, found: list[Any], count: int, dimension: int) -> Vectors:
        """The vectors at length one, if they are as many and as wide as they have to be."""
        if len(found) != count:
            raise EmbeddingUnavailable(f"{self._shown}: {len(found)} vectors for {count} texts")
        widths = sorted({len(one) if isinstance(one, list) else 0 for one in found})
        if widths != [dimension]:
            raise EmbeddingUnavailable(
                f"{self._shown}: vectors of {', '.join(map(str, widths))} components, and the schema has "
                f"Vector({dimension}); choose a model that gives {dimension}, or change the schema"
            )
        try:
            vectors = np.asarray(found, np.float64)
        except (TypeError, ValueError):
            raise EmbeddingUnavailable(f"{self._shown}: a vector has components that are no numbers") from None
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(vectors).all() or not (lengths > _SHORTEST).all():
            raise EmbeddingUnavailable(f"{self._shown}: a vector is not finite, or has no length")
        unit: Vectors = (vectors / lengths).astype(np.float32)
        return unit

    @property
    def _shown(self) -> str:
        return f"{self.provider} model {self.model} at {urlsplit(self.base_url).netloc}"

    def _unavailable(self, error: Unanswered, texts: Sequence[str]) -> EmbeddingUnavailable:
        reason = error.reason if self.api_key is None else error.reason.replace(self.api_key, "…")
        often = f" {error.attempts} times" if error.attempts > 1 else ""
        said = f"answered {error.status}{often}" if error.status is not None else f"did not answer{often}"
        return EmbeddingUnavailable(f"{self._shown} {said}: {reason}; {self._remedy(error, texts)}")

    def _remedy(self, error: Unanswered, texts: Sequence[str]) -> str:
        if error.status in _KEY_REFUSED:
            return f"check the key in {' or '.join((variables.API_KEY, *PROVIDERS[self.provider].keys))}"
        if error.status == 404:
            return f"check {variables.MODEL} and {variables.BASE_URL}"
        if error.status in _TOO_LONG:
            hint = f", or set {variables.DIMENSIONS}=off" if "dimension" in error.reason.lower() else ""
            longest = max(map(len, texts))
            return f"of {len(texts)} texts the longest has {longest:,} characters; shorten it{hint}"
        if error.status == 429:
            return f"lower {variables.CONCURRENCY}, raise {variables.DEADLINE}, or try again later"
        return f"see whether the server runs, check {variables.BASE_URL}, or try again later"
