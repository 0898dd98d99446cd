"""Approving a change that apply makes only if an operator agrees to it."""

from __future__ import annotations

from pathlib import Path

from omnigraph.cluster.changes.change import Disposition
from omnigraph.cluster.changes.planning import make_plan
from omnigraph.cluster.codes import refused
from omnigraph.cluster.configuration.resources import load_desired
from omnigraph.cluster.state.approvals import Approval, new_approval, read_approvals, write_approval
from omnigraph.cluster.state.ledger import require_ledger
from omnigraph.cluster.state.places import place_at


def approve(folder: Path, resource: str, who: str | None, reason: str) -> Approval:
    """Agree to the change of a resource as it is planned now; ClusterRefused if nothing waits for that.

    An approval that is there and fits is the same as a new one.
    """
    desired = load_desired(folder)
    place = place_at(desired.config.root)
    if not who:
        said = "an approval says who gave it; add --as ACTOR"
        raise refused(place.root, "approval_actor_missing", resource, said)
    given, _ = read_approvals(place)
    plan = make_plan(place, desired, require_ledger(place), given)
    change = plan.change_of(resource)
    if change is not None and change.approval_id is not None:
        return next(each for each in given if each.approval_id == change.approval_id)
    if change is None or change.disposition is not Disposition.DEFERRED or not change.conditions:
        waiting = ", ".join(plan.approvals_required) or "nothing"
        said = f"no change of it waits for an approval; {waiting} does"
        raise refused(place.root, "approval_not_needed", resource, said)
    digests = (desired.digest, change.before, change.after)
    made = new_approval(resource, change.operation.value, reason, digests, who)
    write_approval(place, made)
    return made
