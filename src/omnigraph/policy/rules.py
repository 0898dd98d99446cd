"""The policy file: groups, protected branches and rules. All mistakes are reported at once."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from omnigraph.arguments import LONGEST_ACTOR
from omnigraph.errors import PolicyInvalid
from omnigraph.policy.actions import ON_BRANCH, ON_SERVER, ON_TYPES, TO_BRANCH, Action
from omnigraph.policy.documents import read_yaml

VERSION: Final = 1
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_BRANCH: Final = re.compile(r"[A-Za-z0-9._/-]{1,250}")
_BRANCH_PATTERN: Final = re.compile(r"[A-Za-z0-9._/*-]{1,250}")
_OTHER_SCOPE: Final = {"branch_scope": "target_branch_scope", "target_branch_scope": "branch_scope"}
_TYPE_PATTERN: Final = re.compile(r"(node:|edge:)?[A-Za-z_*][A-Za-z0-9_*]{0,250}")


class BranchScope(StrEnum):
    """Which branches a rule is about."""

    ANY = "any"
    PROTECTED = "protected"
    UNPROTECTED = "unprotected"


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing that is allowed. ``branches`` and ``types`` are names, in which `*` stands for any characters;
    None means all of them. They are about the target branch of actions that have one."""

    id: str
    actions: tuple[Action, ...]
    groups: tuple[str, ...] = ()
    actors: tuple[str, ...] = ()
    branch_scope: BranchScope = BranchScope.ANY
    branches: tuple[str, ...] | None = None
    types: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class PolicyFile:
    """A policy as it is written. What no rule allows is denied."""

    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    protected: frozenset[str] = frozenset()
    rules: tuple[Rule, ...] = ()

    def groups_of(self, actor: str) -> list[str]:
        """The groups that an actor is in."""
        return [name for name, members in self.groups.items() if actor in members]

    @property
    def actors(self) -> frozenset[str]:
        """The actors that the policy knows."""
        named = (actor for rule in self.rules for actor in rule.actors)
        return frozenset(actor for members in self.groups.values() for actor in members) | frozenset(named)


def parse_policy(text: str, source: str) -> PolicyFile:
    """The policy of a YAML text; PolicyInvalid lists every mistake."""
    reader = FieldReader(source)
    top = reader.mapping("the policy", reader.yaml(text), ("version", "groups", "protected_branches", "rules"))
    reader.version(top)
    groups = {
        name: reader.actors(f"groups.{name}", members)
        for name, members in reader.mapping("groups", top.get("groups", {}), None).items()
    }
    protected = reader.texts("protected_branches", top.get("protected_branches", []), _BRANCH)
    rules = tuple(
        _rule(reader, f"rules[{index}]", found, groups)
        for index, found in enumerate(reader.sequence("rules", top.get("rules")))
    )
    ids = [rule.id for rule in rules]
    reader.problems += [f"two rules have the id '{each}'" for each in sorted(set(ids)) if ids.count(each) > 1]
    reader.raise_if_any()
    return PolicyFile(groups, frozenset(protected), rules)


def _rule(reader: FieldReader, where: str, found: object, groups: Collection[str]) -> Rule:
    given = reader.mapping(where, found, ("id", "description", "allow"))
    rule_id = reader.text(f"{where}.id", given.get("id"), _ID)
    allow_at = f"rule '{rule_id}'" if rule_id else f"{where}.allow"
    known = ("actors", "actions", "branch_scope", "target_branch_scope", "branches", "types")
    allow = reader.mapping(allow_at, given.get("allow"), known)
    actors = reader.mapping(f"{allow_at}: actors", allow.get("actors"), ("group", "actor"))
    named = reader.texts(f"{allow_at}: actors.group", actors.get("group", []), None)
    reader.problems += [f"{allow_at}: there is no group '{name}'" for name in named if name not in groups]
    single = reader.actors(f"{allow_at}: actors.actor", actors["actor"]) if "actor" in actors else ()
    if not named and not single:
        reader.problems.append(f"{allow_at}: actors names a group or an actor")
    actions = reader.choices(f"{allow_at}: actions", allow.get("actions"), Action)
    branches = types = None
    if "branches" in allow:
        branches = reader.texts(f"{allow_at}: branches", allow["branches"], _BRANCH_PATTERN)
    if "types" in allow:
        types = reader.texts(f"{allow_at}: types", allow["types"], _TYPE_PATTERN)
    _check_scopes(reader, allow_at, allow, actions)
    key = "branch_scope" if "branch_scope" in allow else "target_branch_scope"
    scope = reader.choices(f"{allow_at}: {key}", [allow.get(key, "any")], BranchScope)
    return Rule(rule_id, actions, named, single, scope[0] if scope else BranchScope.ANY, branches, types)


def _check_scopes(reader: FieldReader, where: str, allow: Mapping[str, Any], actions: Collection[Action]) -> None:
    """A rule says only what makes sense for all of its actions."""
    taken = {
        "branch_scope": ON_BRANCH,
        "target_branch_scope": TO_BRANCH,
        "branches": ON_BRANCH | TO_BRANCH,
        "types": ON_TYPES,
    }
    if "branch_scope" in allow and "target_branch_scope" in allow:
        reader.problems.append(f"{where}: give branch_scope or target_branch_scope, not both")
    for key, fitting in taken.items():
        others = [action for action in actions if action not in fitting]
        if key in allow and others:
            listed = ", ".join(sorted(fitting))
            other = _OTHER_SCOPE.get(key)
            hint = f", and {other} for these" if other is not None and set(others) <= taken[other] else ""
            reader.problems.append(f"{where}: {key} does not fit {', '.join(others)}; it is for {listed}{hint}")
    about_server = [action for action in actions if action in ON_SERVER]
    if about_server and len(about_server) != len(actions):
        reader.problems.append(f"{where}: {about_server[0]} is about the server; give it a rule of its own")


class FieldReader:
    """Reads fields of a YAML document, and collects what is wrong with them."""

    def __init__(self, source: str) -> None:
        self._source = source
        self.problems: list[str] = []

    def yaml(self, text: str) -> object:
        """The document. What is no YAML, or has a key twice, is refused at once."""
        try:
            return read_yaml(text)
        except ValueError as error:
            raise PolicyInvalid(self._source, [str(error)]) from None

    def raise_if_any(self) -> None:
        """Raise PolicyInvalid if something was wrong."""
        if self.problems:
            raise PolicyInvalid(self._source, self.problems)

    def version(self, top: Mapping[str, Any]) -> None:
        if top.get("version") != VERSION or isinstance(top.get("version"), bool):
            self.problems.append(f"version is {VERSION}")

    def mapping(self, where: str, found: object, known: Collection[str] | None) -> Mapping[str, Any]:
        if not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
            self.problems.append(f"{where} is a mapping of names" if found is not None else f"{where} is missing")
            return {}
        if known is not None:
            listed = ", ".join(known)
            self.problems += [
                f"{where} has an unknown field '{key}'; there are {listed}" for key in found if key not in known
            ]
        return found

    def sequence(self, where: str, found: object) -> list[Any]:
        if isinstance(found, list):
            return found
        self.problems.append(f"{where} is a list" if found is not None else f"{where} is missing")
        return []

    def text(self, where: str, found: object, pattern: re.Pattern[str] | None) -> str:
        is_text = isinstance(found, str) and bool(found.strip()) and found.isprintable()
        if isinstance(found, str) and is_text and (pattern is None or pattern.fullmatch(found)):
            return found
        self.problems.append(f"{where} is missing" if found is None else f"{where} cannot be {str(found)[:80]!r}")
        return ""

    def texts(self, where: str, found: object, pattern: re.Pattern[str] | None) -> tuple[str, ...]:
        """A text, or a list of them."""
        listed = [found] if isinstance(found, str) else self.sequence(where, found)
        return tuple(self.text(where, each, pattern) for each in listed)

    def actors(self, where: str, found: object) -> tuple[str, ...]:
        """One or more actors."""
        named = self.texts(where, found, None)
        if not named:
            self.problems.append(f"{where} is empty")
        self.problems += [f"{where}: an actor's name is too long" for each in named if len(each) > LONGEST_ACTOR]
        return named

    def choices(self, where: str, found: object, kind: type[Any]) -> tuple[Any, ...]:
        """Members of an enumeration."""
        known = {member.value: member for member in kind}
        listed = self.sequence(where, found)
        if not listed and isinstance(found, list):
            self.problems.append(f"{where} is empty")
        wrong = [each for each in listed if not isinstance(each, str) or each not in known]
        self.problems += [f"{where} cannot be {str(each)[:80]!r}; there are {', '.join(known)}" for each in wrong]
        return tuple(dict.fromkeys(known[each] for each in listed if each not in wrong))
