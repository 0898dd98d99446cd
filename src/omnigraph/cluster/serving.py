"""What a server reads of a cluster: its applied graphs with their stored queries, policies and settings.

The ledger is read without the lock. What is wrong with one graph is that graph's alone; what is wrong with the
ledger, or with a policy, keeps a server from starting.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from omnigraph.cluster.codes import problem, refused
from omnigraph.cluster.configuration.config import CLUSTER
from omnigraph.cluster.configuration.providers import ProviderConfig, profile_of
from omnigraph.cluster.configuration.sources import SERVER_SAFE
from omnigraph.cluster.resource import Applied, digest_of
from omnigraph.cluster.state.catalog import read_payload
from omnigraph.cluster.state.ledger import State, require_ledger
from omnigraph.cluster.state.places import ClusterPlace
from omnigraph.cluster.state.sidecars import Kind, read_sidecars
from omnigraph.errors import ClusterProblem, ClusterRefused, EmbeddingUnavailable
from omnigraph.settings import BlobSettings, Settings

if TYPE_CHECKING:
    from omnigraph.embed.client import EmbeddingClient


@dataclass(frozen=True, slots=True)
class PayloadText:
    """A text of the catalog, and how messages name it."""

    text: str
    source: str


@dataclass(frozen=True, slots=True)
class ServableGraph:
    """A graph with everything that the cluster says about it."""

    name: str
    uri: str
    queries: Mapping[str, PayloadText] = field(default_factory=dict)
    policy: PayloadText | None = None
    embedder: EmbeddingClient | None = None
    settings: Settings = field(default_factory=lambda: Settings(blobs=BlobSettings(allow=())))


@dataclass(frozen=True, slots=True)
class ServableCluster:
    """The graphs of a cluster that can be tried, and why others cannot."""

    place: ClusterPlace
    revision: int
    graphs: Mapping[str, ServableGraph]
    unusable: Mapping[str, ClusterRefused]
    policy: PayloadText | None = None
    """The policy about the cluster itself."""

    @property
    def has_policies(self) -> bool:
        """Does anything have to know who calls?"""
        return self.policy is not None or any(each.policy is not None for each in self.graphs.values())


def read_servable(place: ClusterPlace, environment: Mapping[str, str], only: str | None = None) -> ServableCluster:
    """What the ledger says is to be served, or of it one graph; ClusterRefused if nothing can be."""
    ledgered = require_ledger(place)
    sidecars = read_sidecars(place)
    names = ledgered.state.graphs
    if not names:
        raise refused(place.root, "cluster_empty", "graphs", "the ledger has no graphs; there is nothing to serve")
    if only is not None:
        if only not in names:
            said = f"the ledger has no such graph; it has {', '.join(names)}"
            raise refused(place.root, "graph_missing", f"graph.{only}", said)
        names = [only]
    bound = _policies(place, ledgered.state)
    leaving = {each.graph_id: each for each in sidecars if each.kind is Kind.DELETE}
    graphs: dict[str, ServableGraph] = {}
    unusable: dict[str, ClusterRefused] = {}
    for name in names:
        try:
            if name in leaving:
                said = f"its removal, {leaving[name].operation_id}, has begun"
                raise refused(place.root, "cluster_recovery_pending", f"graph.{name}", said)
            graphs[name] = _graph(place, ledgered.state, name, bound, environment)
        except ClusterRefused as error:
            unusable[name] = error
    return ServableCluster(place, ledgered.state.revision, graphs, unusable, bound.get(CLUSTER))


def applied_policy(place: ClusterPlace, scope: str) -> PayloadText:
    """The policy that was applied to a graph, or to the cluster itself; ClusterRefused if there is none."""
    bound = _policies(place, require_ledger(place).state)
    if scope not in bound:
        said = f"no policy applies to it; there are some for {', '.join(sorted(bound)) or 'nothing'}"
        raise refused(place.root, "policy_bindings_missing", scope, said)
    return bound[scope]


def applied_queries(place: ClusterPlace, graph: str) -> dict[str, PayloadText]:
    """The stored queries that were applied to a graph, by their names."""
    return _queries(place, require_ledger(place).state, graph)


def _queries(place: ClusterPlace, state: State, graph: str) -> dict[str, PayloadText]:
    prefix = f"query.{graph}."
    return {
        address.removeprefix(prefix): _text(place, address, each)
        for address, each in sorted(state.resources.items())
        if address.startswith(prefix)
    }


def _graph(
    place: ClusterPlace,
    state: State,
    name: str,
    bound: Mapping[str, PayloadText],
    environment: Mapping[str, str],
) -> ServableGraph:
    own = state.resources[f"graph.{name}"]
    if name not in bound and bound.keys() - {CLUSTER}:
        said = "other graphs have a policy, and nothing would be decided about this one"
        raise refused(place.root, "graph_without_policy", f"graph.{name}", said)
    return ServableGraph(
        name,
        place.graph_uri(name),
        _queries(place, state, name),
        bound.get(name),
        _embedder(place, state, name, own, environment),
        Settings(blobs=BlobSettings(allow=_allowed(place, name, own.external_blob_policy))),
    )


def _policies(place: ClusterPlace, state: State) -> dict[str, PayloadText]:
    """The policy of each graph, and of the cluster; what is wrong with one is wrong for all."""
    found: dict[str, PayloadText] = {}
    for address, known in sorted(state.resources.items()):
        if not address.startswith("policy."):
            continue
        if not known.applies_to:
            said = "the ledger does not say what it applies to; run `omnigraph cluster apply`"
            raise refused(place.root, "policy_bindings_missing", address, said)
        for each in known.applies_to:
            if each in found:
                said = f"another policy applies to {each} too"
                raise refused(place.root, "duplicate_policy_binding", address, said)
            found[each] = _text(place, address, known)
    return found


def _embedder(
    place: ClusterPlace, state: State, name: str, own: Applied, environment: Mapping[str, str]
) -> EmbeddingClient | None:
    if own.embedding_provider is None:
        return None
    provider = state.resources.get(f"provider.embedding.{own.embedding_provider}")
    profile = None if provider is None else provider.embedding_profile
    path = f"graph.{name}"
    if profile is None:
        said = f"the ledger has no provider '{own.embedding_provider}'; run `omnigraph cluster apply`"
        raise refused(place.root, "provider_unknown", path, said)
    made: ProviderConfig = profile_of(own.embedding_provider, profile)
    if made.api_key is not None and not environment.get(made.api_key):
        said = f"provider '{made.name}' takes its key from {made.api_key}, which is not set"
        raise refused(place.root, "provider_secret_missing", path, said)
    try:
        return made.client(environment)
    except EmbeddingUnavailable as error:
        raise refused(place.root, "provider_invalid", path, str(error)) from error


def _allowed(place: ClusterPlace, name: str, policy: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Where a server may copy blobs from, if the ledger's list is as it was applied."""
    if policy is None:
        return ()
    allowed = policy.get("allow")
    if not isinstance(allowed, list) or digest_of(allowed) != policy.get("digest"):
        said = "the list of addresses is not the one that was applied; run `omnigraph cluster apply`"
        raise refused(place.root, "external_blob_policy_digest_mismatch", f"graph.{name}", said)
    return tuple(each["base"] for each in allowed if each["scope"] == SERVER_SAFE)


def _text(place: ClusterPlace, address: str, known: Applied) -> PayloadText:
    found = read_payload(place, address, known.digest)
    if isinstance(found, ClusterProblem):
        raise ClusterRefused(place.root, [found])
    return PayloadText(found.decode("utf-8"), address)


def broken_query(place: ClusterPlace, graph: str, name: str, error: Exception) -> ClusterRefused:
    """The error of a stored query that does not fit the schema that its graph has."""
    return refused(place.root, "stored_query_broken", f"query.{graph}.{name}", str(error))


def none_healthy(cluster: ServableCluster, reasons: Mapping[str, Exception]) -> ClusterRefused:
    """The error of a cluster of which no graph can be served, with the reason of each."""
    first = problem("cluster_no_healthy_graphs", "graphs", "no graph of the cluster can be served")
    each = [replace(first, path=f"graph.{name}", message=str(error)) for name, error in sorted(reasons.items())]
    return ClusterRefused(cluster.place.root, [first, *each])
