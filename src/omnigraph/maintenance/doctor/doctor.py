"""`doctor`: run the checks in their order, and report what they find."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Final

from omnigraph.errors import InvalidArgument, OmniError
from omnigraph.maintenance.doctor.activity import check_jobs, check_locks, check_sidecars
from omnigraph.maintenance.doctor.control import check_control
from omnigraph.maintenance.doctor.examination import Examination
from omnigraph.maintenance.doctor.files import check_files
from omnigraph.maintenance.doctor.indexes import check_indexes
from omnigraph.maintenance.doctor.lineage import check_audit, check_lineage
from omnigraph.maintenance.doctor.orphans import check_orphans
from omnigraph.maintenance.doctor.report import DoctorReport, Finding, ProgressListener, Severity
from omnigraph.maintenance.doctor.rules import check_rules
from omnigraph.maintenance.doctor.versions import check_counts, check_drift, check_fragments
from omnigraph.manifest.repository import Repository, can_hold_tables, why_not_a_graph
from omnigraph.storage import layout
from omnigraph.storage.address import Address, Scheme

Check = Callable[[Examination], Iterator[Finding]]

CHECKS: Final[Mapping[str, Check]] = {
    "control": check_control,
    "sidecars": check_sidecars,
    "locks": check_locks,
    "jobs": check_jobs,
    "drift": check_drift,
    "counts": check_counts,
    "files": check_files,
    "fragments": check_fragments,
    "indexes": check_indexes,
    "lineage": check_lineage,
    "audit": check_audit,
    "orphans": check_orphans,
    "rules": check_rules,
}
"""The checks by name. Those that find unreadable tables come before those that read rows."""

_SLOW: Final = frozenset({"orphans", "rules"})
"""What a quick examination leaves out: it would read rows, or every version of the history."""

_ORDER: Final = {severity: number for number, severity in enumerate(Severity)}


def examine(
    address: Address,
    *,
    quick: bool = False,
    branch: str | None = None,
    checks: Iterable[str] | None = None,
    listener: ProgressListener | None = None,
) -> DoctorReport:
    """Look at a whole graph, or at one branch, without changing anything or taking a lock.

    A ``quick`` examination reads metadata only. The graph need not be in a state in which it can be opened.
    """
    names = _chosen(checks, quick=quick)
    exam = Examination(Repository.at(address, read_only=True), quick, branch, listener)
    _require_graph(exam.repository)
    if branch is not None:
        exam.repository.branches.find(branch)
    findings = list(exam.begin())
    for name in names:
        exam.progress(name, 0, 0)
        findings += _run(exam, name)
    gone = exam.gone()
    findings = [finding for finding in findings if finding.branch not in gone]
    findings.sort(key=lambda finding: _ORDER[finding.severity])
    tables = {pin.ref for each in exam.branches for pin in each.state.tables.values()}
    branches = tuple(each.branch.name for each in exam.branches)
    return DoctorReport(str(address), quick, tuple(names), branches, len(tables), tuple(findings))


def _require_graph(repository: Repository) -> None:
    """Raise GraphNotFound or NotAGraph if there is no manifest at all."""
    if can_hold_tables(repository.address) and repository.objects.exists(layout.MANIFEST):
        return
    if repository.address.scheme is not Scheme.MEMORY or repository.tables.newest(layout.MANIFEST) is None:
        raise why_not_a_graph(repository)


def _run(exam: Examination, name: str) -> Iterator[Finding]:
    """Run one check. If it cannot go on, that is a finding, and the other checks still run."""
    try:
        yield from CHECKS[name](exam)
    except OmniError as error:
        message = f"the check '{name}' could not be completed: {error}"
        yield Finding("check_failed", Severity.ERROR, message, "see the other findings, and try again")


def _chosen(checks: Iterable[str] | None, *, quick: bool) -> list[str]:
    wanted = None if checks is None else set(checks)
    for name in sorted(wanted or ()):
        if name not in CHECKS:
            close = get_close_matches(name, CHECKS, n=1)
            nearest = f"; did you mean '{close[0]}'?" if close else f"; there are {', '.join(CHECKS)}"
            raise InvalidArgument("checks", f"there is no check '{name}'{nearest}")
    return [name for name in CHECKS if (wanted is None or name in wanted) and not (quick and name in _SLOW)]
