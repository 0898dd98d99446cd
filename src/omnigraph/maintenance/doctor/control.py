"""Control objects: schemas, refs, hints, a schema change of all branches, an unfinished creation."""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.errors import ObjectDamaged, OmniError
from omnigraph.maintenance.doctor.examination import RESTORE, Examination
from omnigraph.maintenance.doctor.report import Finding, Severity
from omnigraph.storage import layout
from omnigraph.storage.control.place import PlaceState, read_place
from omnigraph.storage.control.sealed import number, unseal
from omnigraph.storage.tables import TableRef
from omnigraph.write.evolution.branches import pending_intent

_REOPEN = "open the graph for writing, for example by `omnigraph repair --confirm`"


def check_control(exam: Examination) -> Iterator[Finding]:
    """Look at all control objects but those of writers and jobs."""
    yield from _schemas(exam)
    yield from _refs(exam)
    yield from _hints(exam)
    yield from _intent(exam)
    yield from _place(exam)
    if exam.repository.objects.has(layout.INIT_CLAIM):
        yield Finding(
            "creation_unfinished",
            Severity.NOTE,
            "the process that created the graph died before it removed its claim; the graph is whole",
            f"remove {layout.INIT_CLAIM}",
            file=layout.INIT_CLAIM,
        )


def _place(exam: Examination) -> Iterator[Finding]:
    """Where the graph says that it lies, and whether a copy or a move of it was finished."""
    try:
        place = read_place(exam.repository.objects)
    except ObjectDamaged as error:
        yield Finding("place_damaged", Severity.ERROR, str(error), error.remedy, file=error.key)
        return
    if place is not None and place.state is not PlaceState.WHOLE:
        yield Finding(
            "place_unfinished",
            Severity.WARNING,
            f"the graph is {place.state.value}: a copy or a move of it is under way, or was interrupted",
            "wait for the command that does it, or run that again",
            file=layout.PLACE,
        )


def _schemas(exam: Examination) -> Iterator[Finding]:
    """Every schema that the graph has accepted can be read, and is the one that it is named by."""
    repository = exam.repository
    keys = repository.objects.list(layout.SCHEMAS)
    digests = {key.removeprefix(f"{layout.SCHEMAS}/").removesuffix(".json"): key for key in keys}
    used = {examined.state.schema for examined in exam.branches} | {state.schema for _, state in exam.tagged}
    for digest in [None, *sorted({*digests, *(named for named in used if named is not None)})]:
        key = layout.SCHEMA_IR if digest is None else layout.schema_object(digest)
        try:
            repository.schemas.catalog(digest)
            repository.schemas.source(digest)
        except OmniError as error:
            is_used = digest in used or digest is None
            file = error.key if isinstance(error, ObjectDamaged) else key
            severity = Severity.ERROR if is_used else Severity.WARNING
            yield Finding("schema_damaged", severity, str(error), RESTORE, file=file)


def _refs(exam: Examination) -> Iterator[Finding]:
    """Every branch has the parent, and the commit to start from, that its ref names."""
    names = set(exam.repository.branches.names())
    for examined in exam.branches:
        branch = examined.branch
        if branch.parent is not None and branch.parent not in names:
            yield Finding(
                "ref_foreign",
                Severity.ERROR,
                f"the ref of branch '{branch.name}' says that it comes from '{branch.parent}', which is gone",
                RESTORE,
                branch.name,
                file=layout.branch_ref(branch.name),
            )
        elif branch.fork_version is not None and branch.fork_version > examined.state.version:
            yield Finding(
                "ref_foreign",
                Severity.ERROR,
                f"the ref of branch '{branch.name}' says that it starts at version {branch.fork_version}, but "
                f"its newest is {examined.state.version}",
                RESTORE,
                branch.name,
                file=layout.branch_ref(branch.name),
            )


def _hints(exam: Examination) -> Iterator[Finding]:
    """A hint is where the search for the newest manifest starts; a wrong one costs time, and nothing else."""
    repository = exam.repository
    for examined in exam.branches:
        key = layout.head_hint(examined.branch.native)
        found = repository.objects.get(key)
        if found is None:
            continue
        try:
            hinted = number(unseal(key, found.content)["version"])
        except (ObjectDamaged, ValueError, KeyError) as error:
            reason = error.reason if isinstance(error, ObjectDamaged) else str(error)
            yield Finding(
                "hint_damaged",
                Severity.WARNING,
                f"the hint to the newest manifest of branch '{examined.branch.name}' cannot be read: {reason}",
                _REOPEN,
                examined.branch.name,
                file=key,
            )
            continue
        if not repository.tables.exists(TableRef(layout.MANIFEST, examined.branch.native, hinted)):
            yield Finding(
                "hint_stale",
                Severity.WARNING,
                f"the hint to the newest manifest of branch '{examined.branch.name}' names version {hinted}, "
                "which is not there; the newest is found by a listing, which takes longer",
                _REOPEN,
                examined.branch.name,
                file=key,
            )


def _intent(exam: Examination) -> Iterator[Finding]:
    """A change of the schema on all branches that was not finished."""
    try:
        branches = pending_intent(exam.repository)
    except ObjectDamaged as error:
        yield Finding("intent_damaged", Severity.ERROR, str(error), error.remedy, file=error.key)
        return
    if branches is not None:
        yield Finding(
            "intent_pending",
            Severity.WARNING,
            f"a change of the schema is under way on branches {', '.join(branches)}, or was interrupted",
            f"wait if its process runs; else {_REOPEN}",
            file=layout.SCHEMA_INTENT,
        )
