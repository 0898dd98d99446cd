"""A client for jobs: the vectors of each finished batch are kept on the store until the job is over.

A task that is tried again, or runs twice, finds them there and asks the server for nothing. The first batch that
fails for good is noted there too, so that the other tasks do not go on to pay for a job that is lost.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import numpy as np

from omnigraph.embed.batches import BatchLimits, cut, each_once
from omnigraph.embed.client import EmbeddingClient, Role, Vectors
from omnigraph.embed.http import HttpClient
from omnigraph.embed.mock import MockClient
from omnigraph.errors import EmbeddingUnavailable
from omnigraph.storage.address import Address
from omnigraph.storage.objects import ObjectStore, open_objects

_FAILED: Final = "embedding-failed"
_BATCHES: Final = "embedded"
_OTHERS: Final = BatchLimits(1024, 4_000_000)
"""What a client that is not ours is asked at a time, one batch after the other."""


def resumable(client: EmbeddingClient | None, address: Address, folder: str) -> EmbeddingClient | None:
    """The client for a job that keeps its things in a folder of the graph; the mock costs nothing to repeat."""
    if client is None or type(client) is MockClient:
        return client
    return ResumableClient(patient(client), address, folder)


def patient(client: EmbeddingClient) -> EmbeddingClient:
    """The client as a job uses it, if it is one of ours: it waits longer, and takes turns with others."""
    return client.for_job() if isinstance(client, HttpClient) else client


@dataclass(frozen=True, slots=True)
class ResumableClient:
    """Asks another client, batch by batch, for what no attempt of this job has asked before."""

    client: EmbeddingClient
    address: Address
    folder: str

    @property
    def model(self) -> str:
        return self.client.model

    def embed(self, texts: Sequence[str], dimension: int, role: Role) -> Vectors:
        different, which = each_once(texts)
        ours = self.client if isinstance(self.client, HttpClient) else None
        batches = cut(different, _OTHERS if ours is None else ours.limits)
        if not batches:
            return np.empty((0, dimension), np.float32)
        threads = 1 if ours is None else ours.concurrency
        objects = open_objects(self.address)
        pool = ThreadPoolExecutor(min(threads, len(batches)), "omnigraph-embed")
        try:
            parts = list(pool.map(lambda batch: self._batch(objects, batch, dimension, role), batches))
        finally:
            pool.shutdown(cancel_futures=True)
        return np.concatenate(parts)[which]

    def _batch(self, objects: ObjectStore, texts: Sequence[str], dimension: int, role: Role) -> Vectors:
        """The vectors of one batch: those that are kept, else new ones, which are then kept."""
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
        """A name that only the same question has."""
        digest = hashlib.sha256(f"{self.model}\0{dimension}\0{role}\0".encode())
        for text in texts:
            content = text.encode(errors="surrogatepass")
            digest.update(len(content).to_bytes(8, "little"))
            digest.update(content)
        return digest.hexdigest()
