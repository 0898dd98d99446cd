"""What the verbs of `omnigraph cluster` show to people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from omnigraph.cli.output import console, counted, print_table, print_text, styled

if TYPE_CHECKING:
    from omnigraph.cluster.changes.applying import Applying
    from omnigraph.cluster.changes.change import Change, Plan
    from omnigraph.cluster.changes.refreshing import Refreshed
    from omnigraph.cluster.configuration.resources import Desired
    from omnigraph.cluster.status import ClusterStatus
    from omnigraph.errors import ClusterProblem

_SIGNS: Final = {"create": ("+ ", "green"), "update": ("~ ", "yellow"), "delete": ("- ", "red")}
_STYLES: Final = {"error": "bold red", "warning": "yellow"}


def print_problems(problems: Iterable[ClusterProblem]) -> None:
    """Each problem on a line, with its code and its place."""
    for each in problems:
        print_text(
            styled(f"{each.severity}: ", _STYLES[each.severity]), f"{each.code}: {each.path}: {each.message}"
        )


def warn_about(problems: Iterable[ClusterProblem]) -> None:
    """The same on standard error, for commands that report what they have done: `--quiet` does not silence it."""
    out = console(stderr=True)
    for each in problems:
        out.print(f"{each.severity}: {each.code}: {each.path}: {each.message}", style=_STYLES[each.severity])


def print_checked(checked: Desired) -> None:
    """What a check found."""
    print_problems(checked.problems)
    wrong = sum(each.severity == "error" for each in checked.problems)
    said = f"not ok, {counted(wrong, 'error')}" if wrong else "ok"
    print_text(f"{counted(len(checked.resources), 'resource')}: {said}")


def print_plan(plan: Plan) -> None:
    """The changes of a plan, with the steps of schemas."""
    for change in plan.changes:
        _print_change(change, change.disposition.value)
    print_problems(plan.problems)
    made = sum(change.is_made for change in plan.changes)
    if not plan.changes:
        print_text("no changes")
    else:
        print_text(f"{counted(len(plan.changes), 'change')}, {made} of them possible now")


def print_applying(done: Applying) -> None:
    """What apply did."""
    _print_recovered(done.recovered)
    for change, outcome in done.outcomes:
        _print_change(change, outcome)
    warn_about(done.problems)
    said = "converged" if done.is_converged else "not converged"
    written = f"revision {done.ledgered.state.revision}" if done.is_written else "nothing written"
    print_text(styled(said, "green" if done.is_converged else "yellow"), f", {written}")


def print_refreshed(found: Refreshed) -> None:
    """What refresh or import found."""
    _print_recovered(found.recovered)
    warn_about(found.problems)
    state = found.ledgered.state
    written = f"revision {state.revision}" if found.is_written else "nothing written"
    print_text(f"{counted(len(state.graphs), 'graph')} in the ledger, {written}")


def print_status(found: ClusterStatus) -> None:
    """The ledger as a table."""
    state = found.ledgered.state
    rows = [
        (name, each.status.value, _short(state.resources[name].digest) if name in state.resources else "-")
        for name, each in found.statuses().items()
    ]
    print_table(("resource", "status", "digest"), rows)
    for approval in found.approvals:
        print_text(f"approval {approval.approval_id} of {approval.approved_by} for {approval.resource} is unused")
    if found.lock is not None:
        print_text(f"locked by `cluster {found.lock.operation}` as {found.lock.lock_id}")
    print_problems(found.problems)
    print_text(f"revision {state.revision}")


def _print_change(change: Change, outcome: str) -> None:
    sign, style = _SIGNS[change.operation.value]
    more = f" ({change.metadata_change})" if change.metadata_change else ""
    print_text(styled(sign, style), f"{change.resource}: {change.operation.value}, {outcome}{more}")
    for step in (change.migration or {}).get("steps", ()):
        print_text(f"    {_step(step)}")


def _print_recovered(recovered: Sequence[dict[str, Any]]) -> None:
    for each in recovered:
        print_text(f"ended {each['kind']} of {each['graph_id']}, which was killed: {each['outcome']}")


def _step(step: dict[str, Any]) -> str:
    """A step of a schema's change as one line."""
    from omnigraph.lang.schema.steps import Step

    return str(Step(step["kind"], {name: value for name, value in step.items() if name != "kind"}))


def _short(digest: str) -> str:
    return digest.removeprefix("sha256:")[:12]
