"""Writers and jobs: locks, writes that were interrupted, jobs that were killed."""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.errors import OmniError, SidecarUnreadable
from omnigraph.maintenance.doctor.examination import RESTORE, UPGRADE, Examination
from omnigraph.maintenance.doctor.report import Finding, Severity
from omnigraph.recovery.classify import Decision, decide, movements_of
from omnigraph.recovery.jobs import listed_records, unreferenced
from omnigraph.recovery.sidecar import Sidecar, list_sidecars, read_sidecars
from omnigraph.storage import layout
from omnigraph.storage.locks import branch_lock

_WAIT = "nothing: it is taken over when the next writer needs it"


def check_locks(exam: Examination) -> Iterator[Finding]:
    """Which locks are held, by which process, and which belong to one that has died."""
    shown = {branch_lock(name): f"the commit lock of branch '{name}'" for name in exam.repository.branches.names()}
    for lock in exam.repository.locks.holders(watch=not exam.quick):
        name = shown.get(lock.name, f"the lock '{lock.name}'")
        if lock.holder is None:
            yield Finding(
                "lock_damaged",
                Severity.WARNING,
                f"{name} has a lease that cannot be read; a writer waits until it has run out",
                _WAIT,
                file=lock.file,
            )
        elif lock.is_alive is False:
            yield Finding(
                "lock_expired",
                Severity.WARNING,
                f"{name} is held by {lock.holder}, which does not renew it and is dead",
                _WAIT,
                file=lock.file,
            )
        else:
            yield Finding("lock_held", Severity.NOTE, f"{name} is held by {lock.holder}", "wait", file=lock.file)


def check_sidecars(exam: Examination) -> Iterator[Finding]:
    """Writes that are in flight, or were interrupted, and whether the next writer can resolve them."""
    for key in list_sidecars(exam.repository.objects):
        try:
            sidecars = read_sidecars(exam.repository.objects, key)
        except SidecarUnreadable as error:
            code = "newer_release" if error.is_newer else "sidecar_damaged"
            remedy = UPGRADE if error.is_newer else f"{RESTORE}, or run `omnigraph repair --confirm --force`"
            yield Finding(code, Severity.ERROR, str(error), remedy, file=key)
            continue
        for sidecar in sidecars:
            if exam.only_branch in (None, sidecar.branch.name):
                yield _of_sidecar(exam, sidecar)


def _of_sidecar(exam: Examination, sidecar: Sidecar) -> Finding:
    repository, branch = exam.repository, sidecar.branch.name
    what = f"{sidecar.writer} {sidecar.operation_id}, which began {sidecar.started_at:%Y-%m-%d %H:%M:%S}"
    heal = (
        f"nothing: the next write to the branch resolves it; or run `omnigraph repair --confirm --branch {branch}`"
    )
    if not repository.branches.has(sidecar.branch):
        return Finding(
            "sidecar_orphaned",
            Severity.WARNING,
            f"the write {what} was interrupted, and its branch '{branch}' was deleted since",
            "run `omnigraph repair --confirm`",
            branch,
            file=sidecar.key,
        )
    if repository.locks.is_committing(branch):
        return Finding(
            "write_in_flight", Severity.NOTE, f"a writer commits {what}", "wait", branch, file=sidecar.key
        )
    try:
        state = repository.manifest.latest(sidecar.branch.native)
        is_published = any(c.graph_commit_id == sidecar.draft.graph_commit_id for c in state.commits)
        movements = movements_of(sidecar, state, repository.tables)
        is_stuck = not is_published and decide(movements) is Decision.STOP
    except OmniError as error:
        return Finding(
            "recovery_blocked",
            Severity.ERROR,
            f"the write {what} was interrupted and cannot be resolved: {error}",
            "see the other findings about its tables",
            branch,
            file=sidecar.key,
        )
    if is_stuck:
        moved = ", ".join(f"{key} ({movement.value})" for key, movement in movements.items())
        return Finding(
            "recovery_blocked",
            Severity.ERROR,
            f"the write {what} was interrupted, and other programs have moved its tables since: {moved}",
            f"run `omnigraph repair --branch {branch}` to see by whom, and undo that",
            branch,
            file=sidecar.key,
        )
    return Finding(
        "write_interrupted", Severity.WARNING, f"the write {what} was interrupted", heal, branch, file=sidecar.key
    )


def check_jobs(exam: Examination) -> Iterator[Finding]:
    """Bulk jobs that run, and those that were killed, with the files they left."""
    repository = exam.repository
    records, damaged = listed_records(repository)
    for broken in damaged:
        yield Finding("job_damaged", Severity.WARNING, str(broken), broken.remedy, file=broken.key)
    for record in records:
        what = f"job {record.job} ({record.kind} to branch '{record.branch}')"
        if repository.locks.is_alive(record.job):
            yield Finding("job_running", Severity.NOTE, f"{what} runs", "wait", record.branch, file=record.key)
            continue
        if not repository.objects.has(record.key):
            continue  # it has just ended
        left = "" if exam.quick else f", and {len(unreferenced(repository, record))} files are left"
        yield Finding(
            "job_killed",
            Severity.WARNING,
            f"{what} was killed{left}",
            "run `omnigraph jobs --clean`",
            record.branch,
            file=record.key,
        )
    known = {record.job for record in records} | {broken.key.split("/")[1] for broken in damaged}
    folders = {key.split("/")[1] for key in repository.objects.list(layout.JOBS) if key.count("/") > 1}
    for job in sorted(folders - {name.removesuffix(".json") for name in known}):
        if not repository.objects.has(layout.job_record(job)):
            yield Finding(
                "job_leftover",
                Severity.WARNING,
                f"job {job} has no record any more, and has left notes",
                "run `omnigraph jobs --clean`",
                file=layout.job_folder(job),
            )
