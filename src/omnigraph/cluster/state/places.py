"""Where a cluster keeps what it has: `__cluster` and `graphs` below its root, on a disk or in a bucket."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from omnigraph.cluster.configuration.config import root_of
from omnigraph.cluster.configuration.document import FILE
from omnigraph.manifest.ids import fresh_id
from omnigraph.storage.address import Address, Scheme, parse_address
from omnigraph.storage.objects import ObjectStore, open_objects, require_conditional_put

FOLDER: Final = "__cluster"
GRAPHS: Final = "graphs"
SUFFIX: Final = ".omni"
STATE: Final = "state.json"
LOCK: Final = "lock.json"
RESOURCES: Final = "resources"
APPROVALS: Final = "approvals"
RECOVERIES: Final = "recoveries"


@dataclass(frozen=True, slots=True)
class ClusterPlace:
    """The root of a cluster, and the objects below its `__cluster`, whose keys are relative to that."""

    root: str
    address: Address
    objects: ObjectStore

    def graph_uri(self, graph: str) -> str:
        """Where a graph of the cluster is."""
        return f"{self.root}/{GRAPHS}/{graph}{SUFFIX}"

    def require_trusted(self) -> None:
        """Refuse a store on which two writers of the ledger could both win."""
        if self.address.scheme is Scheme.S3 and self.address.endpoint is not None:
            require_conditional_put(self.objects, self.address, fresh_id())


def place_at(root: str) -> ClusterPlace:
    """The cluster at a root."""
    clean = str(parse_address(root))
    address = parse_address(f"{clean}/{FOLDER}")
    return ClusterPlace(clean, address, open_objects(address))


def place_named(named: str) -> ClusterPlace:
    """The cluster of a configuration's folder, or the one at a root."""
    folder = Path(named.removeprefix("file://"))
    is_configured = "://" not in named.removeprefix("file://") and (folder / FILE).is_file()
    return place_at(root_of(folder) if is_configured else named)


def is_cluster(named: str) -> bool:
    """Is a place the folder of a configuration, or the root of a cluster?"""
    folder = Path(named.removeprefix("file://"))
    if "://" not in named.removeprefix("file://"):
        return (folder / FILE).is_file() or (folder / FOLDER / STATE).is_file()
    return place_at(named).objects.has(STATE)
