"""A policy file as Cedar: the schema, one `permit` for each action of each rule, and the entities."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from omnigraph.errors import MissingExtra, PolicyInvalid
from omnigraph.policy.actions import ON_SERVER, TO_BRANCH, Action
from omnigraph.policy.rules import BranchScope, PolicyFile, Rule

if TYPE_CHECKING:
    import cedarpy

GRAPH: Final = 'Omnigraph::Graph::"graph"'
SERVER: Final = 'Omnigraph::Server::"root"'
_ON_GRAPH: Final = ", ".join(f'"{action}"' for action in Action if action not in ON_SERVER)
SCHEMA: Final = f"""
namespace Omnigraph {{
  entity Group;
  entity Actor in [Group];
  entity Graph;
  entity Server;
  action {_ON_GRAPH} appliesTo {{
    principal: [Actor],
    resource: [Graph],
    context: {{
      has_branch: Bool, branch: String, branch_is_protected: Bool,
      has_target_branch: Bool, target_branch: String, target_branch_is_protected: Bool,
      has_type: Bool, type: String,
    }}
  }};
  action "graph_list" appliesTo {{ principal: [Actor], resource: [Server] }};
}}
"""


@dataclass(frozen=True, slots=True)
class CompiledPolicy:
    """What Cedar is asked with."""

    policies: cedarpy.PolicySet
    entities: cedarpy.Entities
    schema: cedarpy.Schema


def compile_policy(file: PolicyFile, source: str) -> CompiledPolicy:
    """Compile a policy, and let Cedar check it strictly against the schema."""
    try:
        import cedarpy
    except ModuleNotFoundError:
        raise MissingExtra("cedarpy", "policy", "policies") from None
    text = cedar_text(file)
    schema = cedarpy.Schema.from_str(SCHEMA)
    checked = cedarpy.validate_policies(text, schema)
    if not checked.validation_passed:
        raise PolicyInvalid(source, [f"Cedar refuses it: {error}" for error in checked.errors])
    entities = cedarpy.Entities.from_json_str(json.dumps(_entities(file)), schema)
    return CompiledPolicy(cedarpy.PolicySet.from_str(text), entities, schema)


def cedar_text(file: PolicyFile) -> str:
    """The rules in Cedar's language."""
    return "\n".join(_permit(rule, action) for rule in file.rules for action in rule.actions)


def _permit(rule: Rule, action: Action) -> str:
    allowed = [f"Omnigraph::Group::{_quoted(name)}" for name in rule.groups]
    allowed += [f"Omnigraph::Actor::{_quoted(name)}" for name in rule.actors]
    conditions = [f"principal in [{', '.join(allowed)}]"]
    which = "target_branch" if action in TO_BRANCH else "branch"
    if action not in ON_SERVER:
        if rule.branch_scope is not BranchScope.ANY:
            is_protected = f"context.{which}_is_protected"
            wanted = is_protected if rule.branch_scope is BranchScope.PROTECTED else f"!{is_protected}"
            conditions.append(f"context.has_{which} && {wanted}")
        if rule.branches is not None:
            named = _any(f"context.{which}", rule.branches)
            conditions.append(f"context.has_{which} && ({named})")
        if rule.types is not None:
            conditions.append(f"(!context.has_type || {_any('context.type', _table_keys(rule.types))})")
    return (
        f"@id({_quoted(f'{rule.id}:{action}')})\n"
        f'permit (principal, action == Omnigraph::Action::"{action}", resource)\n'
        f"when {{ {' && '.join(conditions)} }};"
    )


def _table_keys(types: Iterable[str]) -> list[str]:
    """The patterns of types as patterns of table keys: a name without its kind is both a node's and an edge's."""
    return [key for name in types for key in ([name] if ":" in name else [f"node:{name}", f"edge:{name}"])]


def _any(value: str, patterns: Iterable[str]) -> str:
    tests = [f"{value} {'like' if '*' in each else '=='} {_quoted(each)}" for each in patterns]
    return " || ".join(tests) or "false"


def _quoted(text: str) -> str:
    """A text as Cedar writes it."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _entities(file: PolicyFile) -> list[dict[str, Any]]:
    groups = [_entity("Group", name) for name in file.groups]
    actors = [
        _entity("Actor", actor, [{"type": "Omnigraph::Group", "id": name} for name in file.groups_of(actor)])
        for actor in sorted(file.actors)
    ]
    return [*groups, *actors, _entity("Graph", "graph"), _entity("Server", "root")]


def _entity(kind: str, name: str, parents: list[dict[str, str]] | None = None) -> dict[str, Any]:
    return {"uid": {"type": f"Omnigraph::{kind}", "id": name}, "attrs": {}, "parents": parents or []}
