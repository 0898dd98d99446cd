"""History: all parents of commits are there, branches are at commits of their own, the audit log can be read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from omnigraph.errors import BranchNotFound, OmniError
from omnigraph.maintenance.doctor.examination import RESTORE, Examination, ExaminedBranch
from omnigraph.maintenance.doctor.report import Finding, Severity
from omnigraph.manifest.state import Commit
from omnigraph.recovery.audit import AuditLog
from omnigraph.storage import layout

_SHOWN = 3


def check_lineage(exam: Examination) -> Iterator[Finding]:
    """Look at all commits of the archive, and at the newest ones of every branch."""
    try:
        known, missing = _history(exam)
    except OmniError as error:
        yield Finding("archive_damaged", Severity.ERROR, str(error), RESTORE, file=layout.COMMITS)
        return
    if missing:
        shown = ", ".join(f"{parent} (parent of {child})" for parent, child in sorted(missing.items())[:_SHOWN])
        more = f", and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
        yield Finding(
            "parent_missing",
            Severity.ERROR,
            f"the history is cut: no commit {shown}{more}",
            RESTORE,
            count=len(missing),
        )
    for examined in exam.branches:
        yield from _head(examined, known)


def _history(exam: Examination) -> tuple[set[str], dict[str, str]]:
    """The ids of all commits, and those of parents that are not there, each with a child of it.

    Commits enter the archive before they leave a branch, so the branches are read first. What a branch gets from
    another one meanwhile is found by a second look. If a branch cannot be read, nothing is said to be missing: it
    may be on that one.
    """
    tails, is_complete = _tails(exam)
    known, missing = set(tails), _parents(tails)
    for page in exam.repository.manifest.archive.pages():
        known |= page.keys()
        missing |= _parents(page)
        missing = {parent: child for parent, child in missing.items() if parent not in known}
    missing = {parent: child for parent, child in missing.items() if parent not in known}
    if missing and is_complete:
        again, is_complete = _tails(exam)
        known |= again.keys()
        missing = {parent: child for parent, child in missing.items() if parent not in known}
    return known, missing if is_complete else {}


def _parents(commits: Mapping[str, Commit]) -> dict[str, str]:
    return {parent: commit.graph_commit_id for commit in commits.values() for parent in commit.parents}


def _tails(exam: Examination) -> tuple[dict[str, Commit], bool]:
    """The commits that branches keep, and whether all branches could be read."""
    branches, damaged = exam.repository.branches.listed()
    tails: dict[str, Commit] = {}
    is_complete = not damaged
    for branch in branches:
        try:
            newest = exam.repository.manifest.latest(branch.native)
        except BranchNotFound:
            continue  # deleted since it was listed, and archived by now
        except OmniError:
            is_complete = False
        else:
            tails |= {commit.graph_commit_id: commit for commit in newest.commits}
    return tails, is_complete


def _head(examined: ExaminedBranch, known: set[str]) -> Iterator[Finding]:
    branch, state = examined.branch, examined.state
    head = state.head
    if head is None:
        return  # a graph of an older release keeps all commits in the archive
    if head.manifest_version > state.version or (head.branch != branch.name and not _is_fork(examined, head)):
        yield Finding(
            "head_foreign",
            Severity.ERROR,
            f"branch '{branch.name}' is at commit {head.graph_commit_id}, which was made on '{head.branch}' at "
            f"manifest version {head.manifest_version}",
            RESTORE,
            branch.name,
        )
    if branch.fork_commit is not None and branch.fork_commit not in known:
        yield Finding(
            "parent_missing",
            Severity.ERROR,
            f"branch '{branch.name}' was forked at commit {branch.fork_commit}, which is not there",
            RESTORE,
            branch.name,
        )


def _is_fork(examined: ExaminedBranch, head: Commit) -> bool:
    """Is a commit the one that the branch was forked at? Then it has none of its own yet."""
    return examined.branch.fork_commit in (None, head.graph_commit_id)


def check_audit(exam: Examination) -> Iterator[Finding]:
    """Can the record of recoveries be read, and are the commits there that it names?"""
    repository = exam.repository
    try:
        recoveries = AuditLog(repository.tables).read()
    except (OmniError, ValueError, KeyError, TypeError) as error:
        yield Finding("audit_damaged", Severity.ERROR, str(error), RESTORE, file=layout.RECOVERIES)
        return
    named = {r.graph_commit_id: r for r in recoveries if r.graph_commit_id is not None}
    if not named:
        return
    known, _ = _history(exam)
    for commit_id in sorted(named.keys() - known):
        recovery = named[commit_id]
        yield Finding(
            "audit_commit_missing",
            Severity.WARNING,
            f"the recovery of {recovery.operation_id} on branch '{recovery.branch}' was commit {commit_id}, which "
            "is not there",
            RESTORE,
            recovery.branch,
        )
