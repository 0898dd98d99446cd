"""A client for jobs: it keeps the vectors of each finished batch in the job's folder until the job ends.

A task that is retried finds them there and sends no request for them. The first batch that fails for good leaves a
note there too, so that the other tasks of the job stop sending requests.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import numpy as np

from omnigraph.embed.batches import BatchLimits, cut, distinct
from omnigraph.embed.client import EmbeddingClient, Role, Vectors
from omnigraph.embed.http import HttpClient
from omnigraph.embed.mock import MockClient
from omnigraph.errors import EmbeddingUnavailable
from omnigraph.storage.address import Address
from omnigraph.storage.objects import ObjectStore, open_objects

_FAILED: Final = "embedding-failed"
_BATCHES: Final = "embedded"
_OTHER_CLIENTS: Final = BatchLimits(1024, 4_000_000)
"""The batch limits of a client that a user brings, which gets one batch at a time."""


def resumable(client: EmbeddingClient | None, address: Address, folder: str) -> EmbeddingClient | None:
    """The client of a job that has a folder in the graph. The mock stays as it is: its vectors cost nothing."""
    if client is None or type(client) is MockClient:
        return client
    return ResumableClient(job_client(client), address, folder)


def job_client(client: EmbeddingClient) -> EmbeddingClient:
    """The client with the retries and the machine-wide request limit of a job, if it is an `HttpClient`."""
    return client.for_job() if isinstance(client, HttpClient) else client


@dataclass(frozen=True, slots=True)
class ResumableClient:
    """Sends another client only the batches that no earlier attempt of the job has finished."""

    client: EmbeddingClient
    address: Address
    folder: str

    @property
    def model(self) -> str:
        return self.client.model

    def embed(self, texts: Sequence[str], dimension: int, role: Role) -> Vectors:
        unique, inverse = distinct(texts)
        http = self.client if isinstance(self.client, HttpClient) else None
        batches = cut(unique, _OTHER_CLIENTS if http is None else http.limits)
        if not batches:
            return np.empty((0, dimension), np.float32)
        threads = 1 if http is None else http.concurrency
        objects = open_objects(self.address)
        pool = ThreadPoolExecutor(min(threads, len(batches)), "omnigraph-embed")
        try:
            parts = list(pool.map(lambda batch: self._batch(objects, batch, dimension, role), batches))
        finally:
            pool.shutdown(cancel_futures=True)
        return np.concatenate(parts)[inverse]

    def _batch(self, objects: ObjectStore, texts: Sequence[str], dimension: int, role: Role) -> Vectors:
        """The vectors of one batch: from the job's folder, else from the client, which then go to the folder."""
        key = f"{self.folder}/{_BATCHES}/{self._name(texts, dimension, role)}"
        shape = len(texts), dimension
        kept = objects.get(key)
        if kept is not None and len(kept.content) == 4 * shape[0] * shape[1]:
            return np.frombuffer(kept.content, "<f4").reshape(shape)
        failed = objects.get(f"{self.folder}/{_FAILED}")
        if failed is not None:
            raise EmbeddingUnavailable(failed.content.decode())
        try:
            vectors = self.client.embed(texts, dimension, role)
        except EmbeddingUnavailable as error:
            objects.put(f"{self.folder}/{_FAILED}", str(error).encode())
            raise
        objects.put(key, vectors.astype("<f4").tobytes())
        return vectors

    def _name(self, texts: Sequence[str], dimension: int, role: Role) -> str:
        """A file name that depends on everything the vectors depend on."""
        digest = hashlib.sha256(f"{self.model}\0{dimension}\0{role}\0".encode())
        for text in texts:
            content = text.encode(errors="surrogatepass")
            digest.update(len(content).to_bytes(8, "little"))
            digest.update(content)
        return digest.hexdigest()
