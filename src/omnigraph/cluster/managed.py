"""Whether a graph is a cluster's: then its schema, and its creation, are the cluster's to decide."""

from __future__ import annotations

from omnigraph.cluster.state.places import GRAPHS, STATE, SUFFIX, place_at
from omnigraph.errors import ClusterManaged
from omnigraph.storage.address import Scheme, parse_address


def require_unmanaged(uri: str, what: str) -> None:
    """Raise ClusterManaged if a graph lies where a cluster with a ledger keeps its graphs."""
    address = parse_address(uri)
    folder, _, name = address.root.rpartition("/")
    root, _, graphs = folder.rpartition("/")
    if address.scheme is Scheme.MEMORY or graphs != GRAPHS or not name.endswith(SUFFIX) or not root:
        return
    if not root.endswith(":/") and place_at(root).objects.has(STATE):
        raise ClusterManaged(what, str(address))
