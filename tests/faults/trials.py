"""Trials: an operation, one thing that goes wrong, and whether the graph bears it.

::

    python -m tests.faults.trials --store disk --operation "merge on main" --fault "short at *" --limit 100

runs what the options select, or without any of them all, and prints what was found, grouped by what looks alike.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import re
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from tests.faults import disk
from tests.faults.operations import OPERATIONS, Operation, View, look, opened, with_every_type, write_every_type
from tests.faults.patterns import pattern
from tests.faults.places import Fault, Place, a_bucket, a_folder
from tests.processes import say
from tests.recovery.scenes import assert_settled
from tests.recovery.victims import connect

import omnigraph
from omnigraph import Graph
from omnigraph.errors import OmniError

MEMORY = next((folder for folder in ("/dev/shm",) if os.access(folder, os.W_OK)), None)
"""Where directories are quickest made and removed, if there is such a place."""

HUNG = 120
"""After how many seconds a trial is given up, with the whole run and a traceback."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that must not be."""

    operation: str
    fault: str
    what: str
    detail: str

    @property
    def signature(self) -> str:
        """What similar findings have in common."""
        return f"{self.what}: {_shortened(self.detail)}" if self.detail else self.what


class Unbearable(Exception):
    """A trial has found something."""

    def __init__(self, what: str, detail: str = "") -> None:
        super().__init__(what, detail)
        self.what = what
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Case:
    """An operation at a place, and what a reader may see: before it, after what it heals, and after it."""

    name: str
    operation: Operation
    place: Place
    steps: Sequence[View]

    @property
    def after(self) -> View:
        return self.steps[-1]


def prepared(name: str, place: Place) -> tuple[Case, list[Fault]]:
    """A case, and everything that can go wrong in it."""
    operation = OPERATIONS[name]
    operation.prepare(place.store)
    place.save()
    steps = [look(_open(place, read_only=True)), look(_open(place))]
    if operation.forks is not None:
        steps.insert(0, {**steps[0], operation.forks: steps[0]["main"]})
    place.restore()
    if operation.halfway is not None:
        operation.halfway(place.store, connect(place.store))
        steps.insert(0, look(_open(place, read_only=True)))
        place.restore()
    graph = opened(operation, place.store)
    faults = place.faults(lambda: operation.run(place.store, graph))
    steps.append(look(_open(place)))
    return Case(name, operation, place, steps), faults


def run(case: Case, fault: Fault) -> Finding | None:
    """One trial."""
    case.place.restore()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            _try(case, fault)
        except Unbearable as found:
            return Finding(case.name, str(fault), found.what, found.detail)
    return None


def _try(case: Case, fault: Fault) -> None:
    graph = opened(case.operation, case.place.store)
    told: OmniError | None = None
    raised: BaseException | None = None
    with case.place.under(fault):
        try:
            case.operation.run(case.place.store, graph)
        except OmniError as error:
            told = error
        except Exception as error:  # noqa: BLE001  whatever it is, it is a finding
            raised = error
        except BaseException as error:
            if type(error).__name__ != "PanicException":
                raise
            raised = error
    if not case.place.struck:
        return
    done = told is None and raised is None
    _check_afterwards(case, fault, None if fault.power_cut else graph, told, done=done)
    if raised is not None:
        raise Unbearable("raised something that is not ours", _text(raised))


def _check_afterwards(
    case: Case, fault: Fault, graph: Graph | None, told: OmniError | None, *, done: bool
) -> None:
    place = case.place
    possible = [case.after] if done and not case.operation.opens else case.steps  # opening need not heal
    shown = f" after {type(told).__name__}" if told else " after it returned" if done else ""
    with _expecting(f"does not open read-only{shown}"):
        reader = _open(place, read_only=True)
    with _expecting(f"cannot be read{shown}"):
        seen = look(reader)
    if seen not in possible:
        raise Unbearable(f"a reader sees something else{shown}", _difference(seen, case))
    with _expecting(f"does not open{shown}"):
        healed = _open(place)
    with _expecting(f"cannot be read after healing{shown}"):
        settled = look(healed)
    if settled not in possible or (seen == case.after and settled != case.after):
        raise Unbearable(f"after healing a reader sees something else{shown}", _difference(settled, case))
    _check_words(case, fault, told, settled)
    place.release()
    with _expecting(f"cannot be read after the late request{shown}"):
        if look(_open(place, read_only=True)) != settled:
            raise Unbearable(f"the late request changed what is read{shown}")
    if settled != case.after:
        with _expecting(f"repeating it fails{shown}"):
            case.operation.run(place.store, graph or healed)
        with _expecting(f"cannot be read after repeating it{shown}"):
            settled = look(_open(place))
        if settled != case.after:
            raise Unbearable(f"repeating it did something else{shown}", _difference(settled, case))
    _check_next_write(case, graph or healed, settled, shown)


def _check_words(case: Case, fault: Fault, told: OmniError | None, settled: View) -> None:
    """Was what the caller was told true?"""
    outcome = getattr(told, "outcome", "unknown")
    if told is None or fault.power_cut:
        return
    if outcome == "nothing_written" and settled == case.after and settled != case.steps[-2]:
        raise Unbearable("told that nothing was written, but it was", _text(told))
    if outcome == "written" and settled != case.after:
        raise Unbearable("told that it was written, but it was not", _text(told))


def _check_next_write(case: Case, graph: Graph, settled: View, shown: str) -> None:
    branch = case.operation.branch
    with _expecting(f"the next write fails{shown}"):
        write_every_type(graph, branch)
    expected = {**settled, branch: with_every_type(settled[branch])}
    with _expecting(f"cannot be read after the next write{shown}"):
        last = _open(case.place)
        if look(last) != expected:
            raise Unbearable(f"the next write did something else{shown}")
    with _expecting(f"is not settled{shown}"):
        assert_settled(last)


@contextmanager
def _expecting(what: str) -> Iterator[None]:
    try:
        yield
    except Unbearable:
        raise
    except Exception as error:
        raise Unbearable(what, _text(error)) from error


def _open(place: Place, *, read_only: bool = False) -> Graph:
    return omnigraph.open(place.store.uri, read_only=read_only, storage_options=place.store.options)


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _difference(seen: View, case: Case) -> str:
    if seen in case.steps[:-1]:
        return "as before the operation"
    branches = [name for name in {*seen, *case.after} if seen.get(name) != case.after.get(name)]
    return f"branches {sorted(branches)} differ from what is expected"


def _shortened(detail: str) -> str:
    """A text without what differs from run to run."""
    detail = re.sub(r"(?:s3:/)?/\S*?/g(?=[/\s:'\"]|$)", "…", detail.split("\n")[0])
    return re.sub(r"\b[0-9a-f]{16}\b|\d{2,}", "N", pattern(detail))[:230]


def selected(faults: Sequence[Fault], limit: int | None) -> Sequence[Fault]:
    """All faults, or so many of them, evenly spread."""
    if limit is None or len(faults) <= limit:
        return faults
    return [faults[number * len(faults) // limit] for number in range(limit)]


def report(findings: Iterable[Finding]) -> str:
    """Findings by what looks alike, the most frequent first, with a few examples of each."""
    groups = defaultdict(list)
    for finding in findings:
        groups[finding.signature].append(finding)
    lines = []
    for signature, alike in sorted(groups.items(), key=lambda group: -len(group[1])):
        lines.append(f"{len(alike)} × {signature}")
        lines += [f"    {finding.operation}: {finding.fault}" for finding in alike[:: max(1, len(alike) // 3)][:4]]
    return "\n".join(lines)


def try_all(name: str, place: Place, limit: int | None, glob: str = "*") -> tuple[int, list[Finding]]:
    """The trials of one operation with the faults whose names match: how many there were, and what they found."""
    case, faults = prepared(name, place)
    chosen = selected([fault for fault in faults if fnmatchcase(str(fault), glob)], limit)
    findings = []
    for fault in chosen:
        faulthandler.dump_traceback_later(HUNG, exit=True)
        if os.environ.get("OMNIGRAPH_TRIALS_SHOWN"):
            sys.stderr.write(f"{name}: {fault}\n")
        if found := run(case, fault):
            findings.append(found)
    faulthandler.cancel_dump_traceback_later()
    return len(chosen), findings


def tell(name: str, limit: int | None) -> None:
    """In a process that may use `Disk`: the trials of one operation on disk, as lines for the parent."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder, a_folder(Path(folder)) as place:
        _, findings = try_all(name, place, limit)
    if findings:
        say(report(findings))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.trials")
    parser.add_argument("--store", choices=("disk", "s3"), default="disk")
    parser.add_argument("--operation", choices=OPERATIONS, action="append")
    parser.add_argument("--fault", default="*", metavar="GLOB")
    parser.add_argument("--limit", type=int)
    given = parser.parse_args()
    if given.store == "disk" and not disk.loaded():
        os.execve(
            sys.executable,
            [sys.executable, "-m", "tests.faults.trials", *sys.argv[1:]],
            {**disk.environment(), "LANCE_LOG": "error"},
        )
    findings: list[Finding] = []
    try:
        for name in given.operation or OPERATIONS:
            findings += _tried(name, given.store, given.limit, given.fault)
    finally:
        sys.stdout.write(report(findings) + "\n")
    sys.exit(1 if findings else 0)


def _tried(name: str, store: str, limit: int | None, glob: str) -> list[Finding]:
    """The findings of one operation, and a line about it."""
    began = time.monotonic()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=MEMORY)))
        place = stack.enter_context(a_folder(folder) if store == "disk" else a_bucket())
        count, findings = try_all(name, place, limit, glob)
    sys.stdout.write(f"{name}: {count} trials, {len(findings)} findings, {time.monotonic() - began:.0f} s\n")
    sys.stdout.flush()
    return findings


if __name__ == "__main__":
    main()
