"""Everything that can be said about a cluster, in one table: code, severity and meaning."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal, NamedTuple

from omnigraph.errors import ClusterProblem, ClusterRefused

Severity = Literal["error", "warning"]
ERROR: Final = "error"


class Code(NamedTuple):
    """How bad it is, and what it means."""

    severity: Severity
    meaning: str


CODES: Final[Mapping[str, Code]] = {
    # cluster.yaml and the files it names
    "cluster_yaml_missing": Code("error", "there is no cluster.yaml, or it cannot be read"),
    "cluster_yaml_invalid": Code("error", "cluster.yaml is not YAML, or a value in it is of the wrong kind"),
    "duplicate_key": Code("error", "a key is given twice"),
    "unknown_key": Code("error", "a key means nothing"),
    "future_phase_field": Code("error", "a key is kept for a later release"),
    "unsupported_version": Code("error", "the version of cluster.yaml is not 1"),
    "unsupported_state_backend": Code("error", "the ledger can only be kept by the cluster itself"),
    "storage_invalid": Code("error", "no cluster can be at the address of `storage`"),
    "graph_id_invalid": Code("error", "a graph cannot have that id"),
    "resource_name_invalid": Code("error", "a policy or a provider cannot have that name"),
    "file_missing": Code("error", "a file that cluster.yaml names cannot be read"),
    "schema_invalid": Code("error", "a schema has a mistake"),
    "query_invalid": Code("error", "a stored query has a mistake, or does not fit its graph's schema"),
    "query_not_found": Code("error", "a file has no query of that name"),
    "duplicate_query": Code("error", "two stored queries of a graph have one name"),
    "policy_invalid": Code("error", "a policy has a mistake"),
    "policy_bindings_missing": Code("error", "a policy does not say what it applies to"),
    "policy_binding_unknown": Code("error", "a policy applies to a graph that the cluster does not have"),
    "policy_kind_mixed": Code("error", "a policy is about graphs and about the cluster, or its rules do not fit"),
    "duplicate_policy_binding": Code("error", "two policies apply to the same graph, or to the cluster"),
    "graph_without_policy": Code("error", "some graphs have a policy, and this one has none"),
    "provider_invalid": Code("error", "a provider of embeddings cannot be used as it is written"),
    "provider_unknown": Code("error", "a graph names a provider that the cluster does not have"),
    "secret_not_reference": Code("error", "a secret is written down; it can only be ${NAME} of the environment"),
    "external_blobs_invalid": Code("error", "an address from which blobs may be copied cannot be one"),
    "cluster_empty": Code("warning", "the cluster has no graphs"),
    # the ledger and the lock
    "cluster_state_missing": Code("error", "the cluster has no ledger"),
    "cluster_state_unreadable": Code("error", "the ledger is damaged, or of a newer release"),
    "cluster_state_exists": Code("error", "import: the cluster has a ledger already"),
    "state_cas_mismatch": Code("error", "another process wrote the ledger meanwhile"),
    "state_lock_held": Code("error", "another process works on the cluster, or was killed while it did"),
    "state_lock_lost": Code("error", "the lock was taken away while this process worked"),
    "lock_not_held": Code("error", "force-unlock: nobody holds the lock"),
    "lock_id_mismatch": Code("error", "force-unlock: the lock has another id"),
    # after a crash
    "cluster_recovery_pending": Code("warning", "an apply was killed; the next one finishes or retires its work"),
    "recovery_unattributable": Code("error", "a sidecar cannot be read, so what it is about is unknown"),
    "graph_create_incomplete": Code("warning", "the creation of a graph was killed; it is created again"),
    "graph_delete_incomplete": Code("warning", "the removal of a graph was killed; it is removed again"),
    "actual_applied_state_pending": Code("warning", "after a crash a graph has a schema that no file asks for"),
    # plan and apply
    "approval_required": Code("warning", "a graph is removed only with an approval"),
    "approval_stale": Code("warning", "an approval was given for another state of the cluster"),
    "approval_unreadable": Code("warning", "an approval is damaged"),
    "approval_not_needed": Code("error", "approve: nothing about that resource waits for an approval"),
    "approval_actor_missing": Code("error", "approve: no actor is named who approves"),
    "apply_dependency_blocked": Code("warning", "a change waits for another one that cannot be made"),
    "apply_unsupported_change": Code("warning", "a graph cannot get the schema as it is written"),
    "graph_root_exists": Code("warning", "something lies where a graph is to be created"),
    "graph_unreadable": Code("warning", "a graph of the cluster cannot be opened"),
    "graph_create_failed": Code("error", "a graph could not be created"),
    "schema_apply_failed": Code("error", "a graph could not get its schema"),
    "graph_delete_failed": Code("error", "a graph could not be removed"),
    # what is there
    "graph_missing": Code("warning", "a graph of the ledger is not there"),
    "schema_drift": Code("warning", "a graph has another schema than the ledger says"),
    "catalog_payload_missing": Code("error", "the catalog lacks a stored query or a policy of the ledger"),
    "catalog_payload_mismatch": Code("error", "a stored query or a policy of the catalog was changed"),
    # servers
    "cluster_no_healthy_graphs": Code("error", "no graph of the cluster can be served"),
    "stored_query_broken": Code("error", "a stored query does not fit the schema that its graph has"),
    "provider_secret_missing": Code("error", "the environment lacks the secret of a provider"),
    "external_blob_policy_digest_mismatch": Code("error", "the ledger's allow list for blobs was changed"),
}
"""All codes; none ever changes its meaning."""


def problem(code: str, path: str, message: str) -> ClusterProblem:
    """A problem with a code of the table."""
    return ClusterProblem(code, CODES[code].severity, path, message)


def refused(place: str, code: str, path: str, message: str) -> ClusterRefused:
    """The error of a single problem."""
    return ClusterRefused(place, [problem(code, path, message)])


def is_wrong(problems: Iterable[ClusterProblem]) -> bool:
    """Is one of them an error?"""
    return any(each.severity == ERROR for each in problems)
