"""What policies apply to: each to graphs or to the cluster, and to each of these one policy."""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.cluster.codes import problem
from omnigraph.cluster.configuration.config import CLUSTER, ClusterConfig, PolicyConfig
from omnigraph.errors import ClusterProblem, PolicyInvalid
from omnigraph.policy.actions import ON_SERVER
from omnigraph.policy.policy import Policy


def check_policy(policy: PolicyConfig, content: bytes, path: str, shown: str) -> Iterator[ClusterProblem]:
    """What is wrong with a policy: in itself, and with rules that are not about what it applies to."""
    try:
        found = Policy(content.decode("utf-8"), shown).file
    except UnicodeDecodeError as error:
        yield problem("policy_invalid", f"{path}.file", f"{shown} is not UTF-8: {error}")
        return
    except PolicyInvalid as error:
        for each in error.problems:
            yield problem("policy_invalid", f"{path}.file", f"{shown}: {each}")
        return
    is_cluster = CLUSTER in policy.applies_to
    if is_cluster and len(policy.applies_to) > 1:
        yield problem("policy_kind_mixed", f"{path}.applies_to", f"it names graphs, or [{CLUSTER}], not both")
        return
    for rule in found.rules:
        for action in rule.actions:
            if (action in ON_SERVER) != is_cluster and policy.applies_to:
                what = f"the {CLUSTER}" if action in ON_SERVER else "graphs"
                said = f"{shown}: rule '{rule.id}': {action} is about {what}, and the policy is not"
                yield problem("policy_kind_mixed", f"{path}.file", said)


def check_bindings(config: ClusterConfig) -> Iterator[ClusterProblem]:
    """What is wrong with the bindings of all policies together."""
    bound: dict[str, str] = {}
    for policy in config.policies.values():
        path = f"policies.{policy.name}.applies_to"
        for each in policy.applies_to:
            if each != CLUSTER and each not in config.graphs:
                yield problem("policy_binding_unknown", path, f"the cluster has no graph '{each}'")
            elif each in bound:
                said = f"'{bound[each]}' applies to {each} already; one policy decides"
                yield problem("duplicate_policy_binding", path, said)
            else:
                bound[each] = policy.name
    if bound.keys() - {CLUSTER}:
        for graph in config.graphs.keys() - bound.keys():
            said = "other graphs have a policy, and nothing would be decided about this one"
            yield problem("graph_without_policy", f"graphs.{graph}", said)
