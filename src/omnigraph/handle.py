"""The handle of an open graph: its lifetime, its default branch, and the states it can see."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from omnigraph.arguments import LONGEST_ACTOR, optional_text, shortened, text_argument
from omnigraph.errors import GraphClosed, InvalidArgument, RequestError
from omnigraph.keywords import At
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.manifest.refs.names import moment_named
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.manifest.state import MAIN
from omnigraph.policy.actions import Action
from omnigraph.read.data.cache import Cache
from omnigraph.read.requests import Reader
from omnigraph.settings import Settings
from omnigraph.storage.address import Scheme
from omnigraph.storage.external.sources import BlobSources

if TYPE_CHECKING:
    from omnigraph.embed.client import EmbeddingClient
    from omnigraph.policy.guard import Guard


class GraphHandle:
    """An open graph: what `Graph` builds on."""

    def __init__(
        self,
        repository: Repository,
        *,
        branch: str = MAIN,
        actor: str | None = None,
        embedder: EmbeddingClient | None = None,
        cache: Cache | None = None,
        settings: Settings | None = None,
        parent: GraphHandle | None = None,
        guard: Guard | None = None,
    ) -> None:
        self._settings = Settings() if settings is None else settings
        self._opened = replace(repository, settings=self._settings.write, guard=guard)
        self._guard = guard
        self._branch = branch
        self._actor = optional_text("actor", actor, LONGEST_ACTOR)
        self._client = embedder
        self._cache = Cache() if cache is None else cache
        self._parent = parent
        self._closed = False
        self._blob_sources = BlobSources.of(self._settings.blobs, self._opened.address.options)
        self._reader = Reader(self._opened, self._cache, self._embedder, self._settings.read)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self._opened.address)!r}, branch={self._branch!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the memory and the files that the graph keeps open; it cannot be used any more.

        Closing a view that `branch` gave closes only that view; closing the graph closes its views too. A graph
        that is not closed is let go of with the last reference to it: nothing is lost either way.
        """
        self._closed = True
        if self._parent is None:
            self._cache.clear()
            self._opened.locks.let_go()
            self._opened.tables.close()

    @property
    def is_closed(self) -> bool:
        """Was it, or the graph it is a view of, closed?"""
        return self._closed or (self._parent is not None and self._parent.is_closed)

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickled graph is its address and the store's credentials; unpickling opens it again."""
        from omnigraph.opening import reopened

        if self._opened.address.scheme is Scheme.MEMORY:
            raise RequestError(f"{self.address} lives in the memory of one process and cannot be pickled")
        held = (self._branch, self._actor, self._client, self._cache.limit, self._settings, self._guard)
        return reopened, (self._opened.address, self._opened.read_only, *held)

    @property
    def _repository(self) -> Repository:
        """The parts of the graph, which only the process that opened it may use, and only until it is closed."""
        if self.is_closed:
            raise GraphClosed(self.address)
        self._opened.require_process()
        return self._opened

    @property
    def address(self) -> str:
        """Where the graph is."""
        return str(self._opened.address)

    @property
    def schema(self) -> str:
        """The accepted schema of this handle's branch, as its author wrote it."""
        return self._repository.schemas.source(self.snapshot().schema_digest)

    @property
    def catalog(self) -> Catalog:
        """The accepted schema of this handle's branch, for looking things up."""
        return self.snapshot().catalog

    def branch(self, name: str) -> Self:
        """The same graph, with another default branch."""
        found = self._repository.branches.find(text_argument("name", name)).name
        return self._view(found, self._actor, self._guard)

    def as_actor(self, name: str) -> Self:
        """The same graph, used by another actor, whose writes they are and whom the policy decides about."""
        return self._view(self._branch, text_argument("name", name), self._guard)

    def _view(self, branch: str, actor: str | None, guard: Guard | None) -> Self:
        return type(self)(
            self._repository,
            branch=branch,
            actor=actor,
            embedder=self._client,
            cache=self._cache,
            settings=self._settings,
            parent=self,
            guard=guard,
        )

    def _allow(
        self,
        action: Action,
        branch: str | None = None,
        target_branch: str | None = None,
        types: Collection[str] | None = None,
        actor: str | None = None,
    ) -> None:
        """Return if there is no policy, or if it lets the actor do it; else PolicyDenied, or ActorRequired."""
        if self._guard is not None:
            self._guard.require(self._who(actor), action, branch, target_branch, types)

    def _named(self, branch: str | None, argument: str = "branch") -> str:
        """The branch that is asked for, or else the one of this handle."""
        return optional_text(argument, branch) or self._branch

    def _who(self, actor: str | None) -> str | None:
        """Who writes: who is named, or else the one of this handle."""
        return optional_text("actor", actor, LONGEST_ACTOR) or self._actor

    def _embedder(self) -> EmbeddingClient | None:
        from omnigraph.embed.client import configured_client

        return self._client if self._client is not None else configured_client()

    def snapshot(self, branch: str | None = None, *, at: At = None) -> Snapshot:
        """The newest state of a branch, or its state at a manifest version or a moment, or the state of a commit.

        A commit, which can be named by a tag, is a state by itself, so it is not given together with a branch.
        """
        return self._state(Action.READ, branch, at)

    def _state(self, action: Action, branch: str | None, at: At) -> Snapshot:
        """A state that the policy lets the actor do something with: on the branch that was asked for, and on the
        one that the state turns out to be of."""
        if isinstance(at, Snapshot):
            self._allow(action, at.branch)
            return self._own(at, branch)
        self._allow(action, self._named(branch) if branch is not None or at is None else None)
        found = self._repository.branches.find(self._named(branch))
        if at is not None and (isinstance(at, bool) or not isinstance(at, int | dt.datetime)):
            commit = shortened(text_argument("at", at))
            if branch is not None and moment_named(commit) is None:
                raise InvalidArgument("at", f"commit {commit} is a state by itself; leave out branch '{branch}'")
        state = self._repository.snapshot_at(found, at)
        if at is not None:
            self._allow(action, state.branch)
        return state

    def _catalog(self) -> Catalog:
        """The schema of this handle's branch, for a method that has asked the policy."""
        found = self._repository.branches.find(self._branch)
        return self._repository.snapshot(found).catalog

    def _own(self, snapshot: Snapshot, branch: str | None) -> Snapshot:
        """A snapshot that a caller took of this graph earlier."""
        if branch is not None:
            raise InvalidArgument("at", f"a snapshot is of one branch; give it, or branch '{branch}', not both")
        if snapshot.address != self._repository.address:
            raise InvalidArgument("at", f"it is a snapshot of {snapshot.address}, not of {self.address}")
        return snapshot
