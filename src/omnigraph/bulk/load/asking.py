"""Asking everything a load must be asked, by whichever way fits, and saying where objections stand."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from omnigraph.bulk.load import checks
from omnigraph.bulk.load.checks import Findings, Ground, Question, answer, questions
from omnigraph.bulk.load.joins import KeyJoins
from omnigraph.bulk.load.origins import Origins, with_places
from omnigraph.bulk.runner import Runner
from omnigraph.errors import ConstraintViolation, KeyConflict, OmniError, Violation
from omnigraph.lang.schema.catalog import EntityType, NodeType


def raise_objections(runner: Runner, joins: KeyJoins, ground: Ground, cores: int, origins: Origins) -> None:
    """Ask every question; raise what any answer objects to, with the files and lines of the records."""
    asked = questions(ground, cores)
    # A shuffle needs no groups of files: if one group is too large for a task, all of them are one question.
    large = {question.ungrouped for question in asked if question.memory(ground) > checks.KEY_BUDGET}
    small = [question for question in asked if question.ungrouped not in large]
    found: dict[Question, Findings] = dict(
        zip(small, runner.run("checking keys and ends", partial(answer, ground), small), strict=True)
    )
    for question in asked:
        if question.ungrouped in large:
            large.remove(question.ungrouped)
            found[question] = joins.check(ground, question.ungrouped)
    ordered = [found[question] for question in asked if question in found]
    try:
        _raise_found(ground, ordered)
    except ConstraintViolation as error:
        placed = with_places(runner, ground, error.violations, origins)
        raise ConstraintViolation(sorted(placed, key=_by_place), error.total) from None


def _by_place(violation: Violation) -> tuple[bool, str, int, str]:
    return violation.source is None, violation.source or "", violation.line or 0, violation.rule


def _raise_found(ground: Ground, answers: Iterable[Findings]) -> None:
    """Raise what the answers object to: first ids that are there twice, then ids that exist, then the rest."""
    every = list(answers)
    for findings in every:
        if findings.repeated_total:
            raise _repeats(ground.graph.entity(findings.table_key), findings)
    for findings in every:
        if findings.taken_total:
            raise KeyConflict(findings.table_key, findings.taken, findings.taken_total)
    total = sum(findings.total for findings in every)
    if total:
        listed = [violation for findings in every for violation in findings.violations]
        raise ConstraintViolation(listed[: ground.most], total)


def _repeats(entity: EntityType, findings: Findings) -> OmniError:
    if not isinstance(entity, NodeType) or not entity.key:
        return KeyConflict(entity.table_key, [value for value, _ in findings.repeated], findings.repeated_total)
    where = entity.key[0] if len(entity.key) == 1 else f"({', '.join(entity.key)})"
    violations = [
        Violation(
            entity.table_key,
            value,
            "unique",
            f"@unique violation on {entity.name}.{where}: value '{value}' is in {count} records",
        )
        for value, count in findings.repeated
    ]
    return ConstraintViolation(violations, findings.repeated_total)
