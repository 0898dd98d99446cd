"""A server of a cluster: graphs, stored queries and policies as its ledger has them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from omnigraph.cluster.serving import (
    ServableCluster,
    ServableGraph,
    broken_query,
    none_healthy,
    read_servable,
)
from omnigraph.cluster.state.places import ClusterPlace
from omnigraph.errors import LanguageError, OmniError, RequestError
from omnigraph.graph import Graph
from omnigraph.opening import open as open_graph
from omnigraph.policy.policy import Note, Policy
from omnigraph.server.answers.stored import Stored, StoredQuery, stored_query
from omnigraph.server.application import Server
from omnigraph.server.graphs import ServedGraphs, open_each
from omnigraph.server.policies import ServerPolicies


@dataclass(frozen=True, slots=True)
class ServedCluster:
    """The open graphs of a cluster, with their stored queries and policies."""

    served: ServedGraphs
    stored: Stored
    policies: ServerPolicies | None


def open_cluster(cluster: ServableCluster, note: Note, *, read_only: bool, require_all: bool) -> ServedCluster:
    """Open the graphs of a cluster. One that cannot be served is left out, unless all are required; ClusterRefused
    if none is left."""
    policies = _policies(cluster, note)
    stored: dict[str, Mapping[str, StoredQuery]] = {}

    def opened(each: ServableGraph) -> Graph:
        policy = None if policies is None else policies.graphs.get(each.name)
        graph = open_graph(
            each.uri, read_only=read_only, embedder=each.embedder, settings=each.settings, policy=policy
        )
        try:
            stored[each.name] = _stored(cluster, each, graph)
        except OmniError:
            graph.close()
            raise
        return graph

    found = open_each({name: partial(opened, each) for name, each in cluster.graphs.items()})
    unusable: dict[str, OmniError] = {**cluster.unusable, **found.unusable}
    if unusable and require_all:
        found.close()
        raise next(iter(unusable.values()))
    if not found.graphs:
        raise none_healthy(cluster, unusable)
    return ServedCluster(ServedGraphs(found.graphs, unusable), stored, policies)


@dataclass(frozen=True, slots=True)
class ClusterFiles:
    """Where the cluster of a server is, and the policies that its graphs ask."""

    place: ClusterPlace
    note: Note
    policies: ServerPolicies | None
    only: str | None = None

    def reload(self, server: Server) -> bool:
        """Read the ledger again, for the graphs that are served. If something is wrong, everything stays as it
        was; graphs come and go only with a new server."""
        try:
            cluster = read_servable(self.place, os.environ, self.only)
            stored = {
                name: _stored(cluster, cluster.graphs[name], graph)
                for name, graph in server.graphs.items()
                if name in cluster.graphs
            }
            policies = _policies(cluster, self.note)
            self._require_same_kind(policies, server)
        except OmniError as error:
            server.log("reload_failed", reason=str(error))
            return False
        server.stored = {**server.stored, **stored}
        if self.policies is not None and policies is not None:
            self.policies.become(policies)
        others = sorted(server.graphs.keys() ^ cluster.graphs.keys())
        if others:
            server.log("restart_needed", graphs=others)
        server.log("reloaded", revision=cluster.revision)
        return True

    def _require_same_kind(self, policies: ServerPolicies | None, server: Server) -> None:
        """Raise RequestError if something that is served has got its first policy, or has lost its only one."""
        before, after = (
            (each is not None and each.server is not None, frozenset() if each is None else each.graphs.keys())
            for each in (self.policies, policies)
        )
        if before[0] != after[0] or before[1] & server.graphs.keys() != after[1] & server.graphs.keys():
            raise RequestError("a policy was added or removed; start the server again")


def _policies(cluster: ServableCluster, note: Note) -> ServerPolicies | None:
    if not cluster.has_policies:
        return None
    graphs = {
        name: Policy(each.policy.text, each.policy.source, note)
        for name, each in cluster.graphs.items()
        if each.policy is not None
    }
    own = cluster.policy
    return ServerPolicies(graphs, None if own is None else Policy(own.text, own.source, note))


def _stored(cluster: ServableCluster, each: ServableGraph, graph: Graph) -> dict[str, StoredQuery]:
    found = {}
    for name, payload in each.queries.items():
        try:
            found[name] = stored_query(graph, name, payload.text, payload.source)
        except LanguageError as error:
            raise broken_query(cluster.place, each.name, name, error) from error
    return found
