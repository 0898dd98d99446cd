"""Running all checks of a load, and raising what they find with the file and line of each record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

from omnigraph.bulk.load.checking.checks import Check, CheckResult, StagedLoad, checks_of, run_checks, tasks_of
from omnigraph.bulk.load.checking.joins import KeyJoins
from omnigraph.bulk.load.checking.known import SharedIds
from omnigraph.bulk.load.checking.origins import Origins, with_source_lines
from omnigraph.bulk.load.topology import EndsFile
from omnigraph.bulk.runner import Runner
from omnigraph.errors import ConstraintViolation, ErrorGroup, KeyConflict, OmniError, Violation
from omnigraph.lang.schema.catalog import EntityType
from omnigraph.write.evaluator import unique_reason
from omnigraph.write.tally import Tally


def validate_load(
    runner: Runner, joins: KeyJoins, load: StagedLoad, origins: Origins, key_budget: int
) -> list[EndsFile]:
    """Run every check; raise the violations. Checks that need more than ``key_budget`` bytes of keys are joins.

    Returned are the files in which checks have kept the positions of edge ends.
    """
    checks = checks_of(load, runner.cores)
    # Joins need no groups of files: if one group is too large for a task, one join checks all of them.
    large = {check.ungrouped for check in checks if check.memory(load) > key_budget}
    small = [check for check in checks if check.ungrouped not in large]
    tasks = tasks_of(load, small)
    done = runner.run("checking keys and ends", partial(run_checks, SharedIds(load)), tasks)
    results: dict[Check, CheckResult] = dict(zip(chain(*tasks), chain(*done), strict=True))
    for check in checks:
        if check.ungrouped in large:
            large.remove(check.ungrouped)
            results[check] = joins.check(load, check.ungrouped)
    ordered = [results[check] for check in checks if check in results]
    try:
        _raise_violations(load, ordered)
    except ConstraintViolation as error:
        raise located(error, partial(with_source_lines, runner, load, origins=origins)) from None
    return [file for result in ordered for file in result.ends]


def located(
    error: ConstraintViolation, find: Callable[[Sequence[Violation]], Sequence[Violation]]
) -> ConstraintViolation:
    """The error with the places that ``find`` adds to its violations, sorted by place, and to its summary."""
    groups = [*error.groups, *(one for group in error.groups for one in group.ids)]
    firsts = [group.first for group in groups if isinstance(group.first, Violation)]
    found = find([*error.violations, *firsts])
    listed, places = found[: len(error.violations)], dict(zip(firsts, found[len(error.violations) :], strict=True))

    def placed(group: ErrorGroup) -> ErrorGroup:
        first = places.get(group.first) if isinstance(group.first, Violation) else None
        return replace(group, first=first, ids=tuple(map(placed, group.ids)))

    return ConstraintViolation(sorted(listed, key=by_line), error.total, tuple(map(placed, error.groups)))


def by_line(violation: Violation) -> tuple[bool, str, int, str]:
    """The order of violations: by source and line, those without a line last."""
    return violation.source is None, violation.source or "", violation.line or 0, violation.rule


def _raise_violations(load: StagedLoad, results: Sequence[CheckResult]) -> None:
    """Raise what was found: first ids that several records have, then ids that exist, then everything else."""
    for result in results:
        if result.repeated_total:
            raise _repeated_ids(load.snapshot.entity(result.table_key), result)
    for result in results:
        if result.existing_total:
            raise KeyConflict(result.table_key, result.existing, result.existing_total)
    total = sum(result.total for result in results)
    if total:
        listed = [violation for result in results for violation in result.violations]
        tally = Tally(group for result in results for group in result.groups)
        raise ConstraintViolation(listed[: load.error_limit], total, tally.summary())


def _repeated_ids(entity: EntityType, result: CheckResult) -> OmniError:
    if not entity.key:
        ids = [row_id for row_id, _ in result.repeated]
        return KeyConflict(entity.table_key, ids, result.repeated_total, repeated=True)
    violations = [repeated_key(entity, row_id, count) for row_id, count in result.repeated]
    return repeated_keys(entity, violations, result.repeated_total)


def repeated_keys(entity: EntityType, violations: Sequence[Violation], total: int) -> ConstraintViolation:
    """The error about keys that several records have."""
    group = ErrorGroup("unique", unique_reason(entity.name, entity.key), total, violations[0])
    return ConstraintViolation(violations, total, [group])


def repeated_key(
    entity: EntityType, row_id: str, count: int, source: str | None = None, line: int | None = None
) -> Violation:
    """The violation of a key that several records of a load have."""
    message = f"{unique_reason(entity.name, entity.key)}: value '{row_id}' is in {count} records"
    return Violation(entity.table_key, row_id, "unique", message, source, line)
