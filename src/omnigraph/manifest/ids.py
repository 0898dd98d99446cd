"""Ids of commits, branches, tags and jobs."""

from __future__ import annotations


def fresh_id() -> str:
    """An id that no other process makes; later ones sort behind earlier ones."""
    from ulid import ULID  # which reads the metadata of its package when it is imported: readers do without

    return str(ULID())
