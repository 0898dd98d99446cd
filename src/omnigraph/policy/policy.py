"""The policy: questions in, decisions out. A decision is remembered for the same question."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from omnigraph.errors import PolicyInvalid
from omnigraph.policy.actions import ON_SERVER, Action
from omnigraph.policy.cedar import GRAPH, SERVER, CompiledPolicy, compile_policy
from omnigraph.policy.rules import PolicyFile, parse_policy

_LOG: Final = logging.getLogger("omnigraph.policy")
_REMEMBERED: Final = 10_000
"""How many decisions a policy remembers."""


@dataclass(frozen=True, slots=True)
class Question:
    """May an actor do something? Without a type it is allowed if it is for at least one of them."""

    actor: str
    action: Action
    branch: str | None = None
    target_branch: str | None = None
    type: str | None = None
    """A table key, such as `node:Person`."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer, and which rule allowed it: the first by name if there are several."""

    question: Question
    allowed: bool
    rule: str | None
    message: str

    def as_json(self) -> dict[str, Any]:
        asked = self.question
        return {
            "allowed": self.allowed,
            "matched_rule_id": self.rule,
            "message": self.message,
            "actor": asked.actor,
            "action": asked.action.value,
            "branch": asked.branch,
            "target_branch": asked.target_branch,
            "type": asked.type,
        }


Note = Callable[[Decision], None]
"""Is told every decision."""


def log_decision(decision: Decision) -> None:
    """Note a decision in Python's log `omnigraph.policy`, with its fields as `policy`."""
    level = logging.INFO if decision.allowed else logging.WARNING
    _LOG.log(level, "%s", decision.message, extra={"policy": decision.as_json()})


class Policy:
    """Rules about who may do what with a graph. What no rule allows is denied. ``note`` is told every decision."""

    def __init__(self, text: str, source: str = "<policy>", note: Note = log_decision) -> None:
        self._rules = _Rules(text, source)
        self.source = source
        self.note = note

    def __repr__(self) -> str:
        return f"Policy({self.source!r}, {len(self.file.rules)} rules)"

    def __reduce__(self) -> tuple[Any, ...]:
        return Policy, (self._rules.text, self.source)

    @property
    def file(self) -> PolicyFile:
        """The policy as it is written."""
        return self._rules.file

    def become(self, other: Policy) -> None:
        """Decide by the rules of another policy from now on, for all graphs that ask this one."""
        self._rules = other._rules

    def decide(self, question: Question) -> Decision:
        """Is it allowed, and by which rule?"""
        return self._rules.decide(question)

    def possible(self, actor: str, action: Action) -> Decision:
        """Is there a branch on which an actor may do something?"""
        return self._rules.possible(actor, action)


class _Rules:
    """The rules of one version of a policy, and what they have decided."""

    def __init__(self, text: str, source: str) -> None:
        self.text = text
        self.file: PolicyFile = parse_policy(text, source)
        self._source = source
        self._known = self.file.actors
        self._compiled: CompiledPolicy = compile_policy(self.file, source)
        self._decided: dict[Question, Decision] = {}

    def decide(self, question: Question) -> Decision:
        found = self._decided.get(question)
        if found is None:
            found = self._decision(question)
            if len(self._decided) >= _REMEMBERED:
                self._decided.clear()
            self._decided[question] = found
        return found

    def possible(self, actor: str, action: Action) -> Decision:
        question, known = Question(actor, action), self._possible.get(actor)
        if known is None:
            return _unknown(question)
        rule = known.get(action)
        if rule is None:
            return Decision(question, False, None, f"no rule allows {described(question)}")
        return Decision(question, True, rule, f"rule '{rule}' allows {described(question)} on some branch")

    @cached_property
    def _possible(self) -> dict[str, dict[Action, str]]:
        """For each actor, a rule for each action that is not denied everywhere."""
        found: dict[str, dict[Action, str]] = {actor: {} for actor in self._known}
        for rule in sorted(self.file.rules, key=lambda rule: rule.id, reverse=True):
            members = (actor for name in rule.groups for actor in self.file.groups[name])
            for actor in (*rule.actors, *members):
                found[actor].update(dict.fromkeys(rule.actions, rule.id))
        return found

    def _decision(self, question: Question) -> Decision:
        if question.actor not in self._known:
            return _unknown(question)
        import cedarpy

        answer = cedarpy.is_authorized(
            self._request(question), self._compiled.policies, self._compiled.entities, self._compiled.schema
        )
        if answer.diagnostics.errors:
            raise PolicyInvalid(self._source, list(answer.diagnostics.errors))
        if not answer.allowed:
            return Decision(question, False, None, f"no rule allows {described(question)}")
        matched = answer.diagnostics.id_annotations_by_reason.values()
        rule = min(each.rpartition(":")[0] for each in matched)
        return Decision(question, True, rule, f"rule '{rule}' allows {described(question)}")

    def _request(self, question: Question) -> dict[str, Any]:
        branch, target, protected = question.branch, question.target_branch, self.file.protected
        context = {
            "has_branch": branch is not None,
            "branch": branch or "",
            "branch_is_protected": branch in protected,
            "has_target_branch": target is not None,
            "target_branch": target or "",
            "target_branch_is_protected": target in protected,
            "has_type": question.type is not None,
            "type": question.type or "",
        }
        is_server = question.action in ON_SERVER
        return {
            "principal": {"type": "Omnigraph::Actor", "id": question.actor},
            "action": f'Omnigraph::Action::"{question.action}"',
            "resource": SERVER if is_server else GRAPH,
            "context": {} if is_server else context,
        }


def _unknown(question: Question) -> Decision:
    return Decision(question, False, None, f"the policy does not know the actor '{question.actor}'")


def described(question: Question) -> str:
    """A question in words."""
    parts = [f"'{question.actor}' to {question.action}"]
    if question.type is not None:
        parts.append(question.type)
    if question.branch is not None:
        parts.append(f"on branch '{question.branch}'")
    if question.target_branch is not None:
        parts.append(f"towards branch '{question.target_branch}'")
    return " ".join(parts)


def trimmed(name: str | None) -> str | None:
    """The name of a branch as the graph looks it up."""
    return None if name is None else name.strip()


def read_policy(path: str | os.PathLike[str], note: Note = log_decision) -> Policy:
    """The policy of a file; PolicyInvalid lists every mistake."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PolicyInvalid(os.fspath(path), [f"it cannot be read: {error}"]) from None
    return Policy(text, os.fspath(path), note)
