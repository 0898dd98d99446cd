"""Tests of a policy: questions, each with the answer that is expected."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from omnigraph.errors import PolicyInvalid
from omnigraph.policy.actions import Action
from omnigraph.policy.policy import Decision, Policy, Question, trimmed
from omnigraph.policy.rules import FieldReader


@dataclass(frozen=True, slots=True)
class Case:
    """One question, and whether it should be allowed."""

    id: str
    question: Question
    is_allowed: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a policy decided in a case."""

    case: Case
    decision: Decision

    @property
    def is_as_expected(self) -> bool:
        return self.decision.allowed == self.case.is_allowed


def read_cases(path: str | os.PathLike[str]) -> Sequence[Case]:
    """The cases of a YAML file; PolicyInvalid lists every mistake."""
    source = os.fspath(path)
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PolicyInvalid(source, [f"it cannot be read: {error}"]) from None
    reader = FieldReader(source)
    top = reader.mapping("the file", reader.yaml(text), ("version", "cases"))
    reader.version(top)
    found = [
        _case(reader, f"cases[{index}]", each)
        for index, each in enumerate(reader.sequence("cases", top.get("cases")))
    ]
    ids = [case.id for case in found if case is not None]
    reader.problems += [f"two cases have the id '{each}'" for each in sorted(set(ids)) if ids.count(each) > 1]
    reader.raise_if_any()
    return [case for case in found if case is not None]


def _case(reader: FieldReader, where: str, found: object) -> Case | None:
    known = ("id", "actor", "action", "branch", "target_branch", "type", "expect")
    given = reader.mapping(where, found, known)
    before = len(reader.problems)
    texts = {name: reader.text(f"{where}.{name}", given.get(name), None) for name in ("id", "actor", "expect")}
    optional = {
        name: None if given.get(name) is None else reader.text(f"{where}.{name}", given[name], None)
        for name in ("branch", "target_branch", "type")
    }
    actions = reader.choices(f"{where}.action", [given.get("action")], Action)
    if texts["expect"] not in ("", "allow", "deny"):
        reader.problems.append(f"{where}.expect is allow or deny")
    if len(reader.problems) > before:
        return None
    branch, target = optional["branch"], optional["target_branch"]
    question = Question(texts["actor"], actions[0], trimmed(branch), trimmed(target), table_key(optional["type"]))
    return Case(texts["id"], question, texts["expect"] == "allow")


def table_key(name: str | None) -> str | None:
    """A type as policies are asked about it: one that is named without a kind is a node type."""
    return name if name is None or ":" in name else f"node:{name}"


def run_cases(policy: Policy, cases: Sequence[Case]) -> list[Outcome]:
    """Decide every case."""
    return [Outcome(case, policy.decide(case.question)) for case in cases]
