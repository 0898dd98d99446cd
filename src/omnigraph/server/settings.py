"""What an operator can choose about a server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

RETRY_AFTER: Final = 1
"""How many seconds a caller waits that was not admitted."""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Limits of a server. Each is about one process; several processes may serve the same graphs."""

    body_bytes: int = 1 << 20
    """Bytes of a request's body, after decompression."""
    load_bytes: int = 32 << 20
    """Bytes of the records of a load, before and after decompression. They are kept in a file, not in memory."""
    body_seconds: float = 60.0
    """How long a body may take to arrive, and a caller to take the next piece of an answer."""
    actor_writes: int = 16
    """Writes of one actor at a time."""
    actor_bytes: int = 4 << 30
    """Bytes of the bodies of one actor's writes at a time."""
    streams: int = 8
    """Answers at a time that are too large to be made in memory."""
    followers: int = 256
    """Callers at a time that follow changes as events."""
    stream_from: int = 8 << 20
    """A result of more bytes than this is streamed."""
    read_threads: int = 32
    """Reads at a time, most of which wait for the store or compute without Python's lock."""
    short_reads: int = 1
    """Reads at a time that have only just begun: more of them would take Python's lock from each other."""
    short_local: float = 0.01
    """So many seconds a read has only just begun, …"""
    short_remote: float = 0.001
    """… and so many if it asks an object store, whose answers take longer than all the rest."""
    write_threads: int = 32
    """Writes at a time, of all actors; most of them wait for the store or for each other."""
    key_seconds: float = 86_400.0
    """How long an idempotency key is known at least."""
    shutdown_seconds: float = 30.0
    """How long a server that stops waits for requests that it has begun to answer."""
