"""The policy file: what it can say, what is wrong with it, and what it decides."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
import yaml

from omnigraph.errors import PolicyInvalid
from omnigraph.policy.actions import Action
from omnigraph.policy.cases import read_cases, run_cases
from omnigraph.policy.policy import Policy, Question, read_policy

TEAM = """
version: 1
groups:
  admins: [act-a]
  team: [act-a, act-b]
protected_branches: [main, release/1]
rules:
  - id: team-reads
    description: everybody of the team reads everything
    allow: {actors: {group: team}, actions: [read], branch_scope: any}
  - id: agents
    allow:
      actors: {actor: [agent-1, 'weird "name" \\ *']}
      actions: [read, change]
      branches: ["agent/*", sandbox]
      types: [Person, "edge:Kn*"]
  - id: admins
    allow: {actors: {group: [admins]}, actions: [branch_merge, schema_apply], target_branch_scope: protected}
  - id: b-team-too
    allow: {actors: {group: team}, actions: [read], branch_scope: protected}
  - id: lists
    allow: {actors: {group: admins}, actions: [graph_list]}
  - id: keeps
    allow: {actors: {group: admins}, actions: [admin, invoke_query]}
"""
WEIRD = 'weird "name" \\ *'


def test_decisions_name_the_first_rule_that_allows() -> None:
    decision = Policy(TEAM).decide(Question("act-b", Action.READ, "main"))
    assert (decision.allowed, decision.rule) == (True, "b-team-too")
    assert decision.message == "rule 'b-team-too' allows 'act-b' to read on branch 'main'"


@pytest.mark.parametrize(
    ("question", "rule"),
    [
        (Question("act-b", Action.READ, "dev"), "team-reads"),
        (Question("act-b", Action.READ, "dev", None, "node:Anything"), "team-reads"),
        (Question("act-b", Action.CHANGE, "dev"), None),
        (Question("agent-1", Action.CHANGE, "agent/7/x"), "agents"),
        (Question("agent-1", Action.CHANGE, "sandbox"), "agents"),
        (Question("agent-1", Action.CHANGE, "sandbox2"), None),
        (Question("agent-1", Action.CHANGE, "my-agent/7"), None),
        (Question("agent-1", Action.CHANGE, "agent/7", None, "node:Person"), "agents"),
        (Question("agent-1", Action.CHANGE, "agent/7", None, "edge:Person"), "agents"),
        (Question("agent-1", Action.CHANGE, "agent/7", None, "edge:Knows"), "agents"),
        (Question("agent-1", Action.CHANGE, "agent/7", None, "node:Knows"), None),
        (Question("agent-1", Action.CHANGE), None),
        (Question(WEIRD, Action.CHANGE, "agent/7"), "agents"),
        (Question("act-a", Action.BRANCH_MERGE, "dev", "main"), "admins"),
        (Question("act-a", Action.BRANCH_MERGE, "main", "dev"), None),
        (Question("act-a", Action.SCHEMA_APPLY, None, "release/1"), "admins"),
        (Question("act-a", Action.GRAPH_LIST), "lists"),
        (Question("act-b", Action.GRAPH_LIST), None),
        (Question("act-a", Action.ADMIN), "keeps"),
        (Question("act-a", Action.INVOKE_QUERY, "dev"), "keeps"),
        (Question("team", Action.READ, "main"), None),
        (Question("", Action.READ, "main"), None),
    ],
)
def test_what_is_allowed_and_what_is_not(question: Question, rule: str | None) -> None:
    decision = Policy(TEAM).decide(question)
    assert (decision.allowed, decision.rule) == (rule is not None, rule), decision.message


def test_an_action_is_possible_if_it_is_allowed_on_some_branch() -> None:
    policy = Policy(TEAM)
    assert policy.possible("agent-1", Action.CHANGE).allowed
    assert not policy.possible("act-b", Action.CHANGE).allowed
    assert not policy.possible("nobody", Action.READ).allowed


def test_a_question_is_decided_once() -> None:
    policy, question = Policy(TEAM), Question("act-b", Action.READ, "main")
    assert policy.decide(question) is policy.decide(Question("act-b", Action.READ, "main"))


def test_a_policy_can_be_pickled() -> None:
    again = pickle.loads(pickle.dumps(Policy(TEAM, "team.yaml")))
    assert again.decide(Question("agent-1", Action.CHANGE, "sandbox")).rule == "agents"


def allowing(actions: str) -> str:
    """A policy whose one rule says this about its actions."""
    return f"{{version: 1, rules: [{{id: r, allow: {{actors: {{actor: a}}, actions: {actions}}}}}]}}"


RULE = "{id: r, allow: {actors: {actor: a}, actions: [read]}}"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the policy is missing"),
        ("[1]", "the policy is a mapping"),
        ("version: 1", "rules is missing"),
        (f"{{version: 2, rules: [{RULE}]}}", "version is 1"),
        (f"{{version: true, rules: [{RULE}]}}", "version is 1"),
        (f"{{version: 1, rules: [{RULE}], extra: 1}}", "unknown field 'extra'"),
        (f"{{version: 1, version: 1, rules: [{RULE}]}}", "'version' is given twice"),
        (f"{{version: 1, rules: [{RULE}, {RULE}]}}", "two rules have the id 'r'"),
        (f"{{version: 1, groups: {{team: []}}, rules: [{RULE}]}}", "groups.team is empty"),
        (f"{{version: 1, groups: {{team: [' ']}}, rules: [{RULE}]}}", "groups.team cannot be ' '"),
        (f"{{version: 1, protected_branches: ['a b'], rules: [{RULE}]}}", "cannot be 'a b'"),
        ("{version: 1, rules: [{allow: {actors: {actor: a}, actions: [read]}}]}", "rules[0].id is missing"),
        ("{version: 1, rules: [{id: r, deny: {}}]}", "unknown field 'deny'"),
        ("{version: 1, rules: [{id: r, allow: {actors: {group: g}, actions: [read]}}]}", "no group 'g'"),
        ("{version: 1, rules: [{id: r, allow: {actors: {}, actions: [read]}}]}", "names a group or an actor"),
        (allowing("[]"), "actions is empty"),
        (allowing("[fly]"), "cannot be 'fly'"),
        (
            allowing("[read], branch_scope: all"),
            "cannot be 'all'",
        ),
        (
            allowing("[read], target_branch_scope: any"),
            "target_branch_scope does not fit read",
        ),
        (
            allowing("[branch_merge], branch_scope: any"),
            "invoke_query, read, and target_branch_scope for these",
        ),
        (
            allowing("[admin], branches: [x]"),
            "branches does not fit admin",
        ),
        (
            allowing("[branch_delete], types: [X]"),
            "types does not fit branch_delete",
        ),
        (
            allowing("[read, graph_list]"),
            "graph_list is about the server",
        ),
        (
            "{version: 1, rules: [{id: r, allow: {actors: {actor: a}, actions: [read], branches: ['x\"']}}]}",
            "branches cannot be",
        ),
        ("a: b: c", "it is not YAML"),
        ("? [1]\n: 2", "it is not YAML"),
    ],
)
def test_mistakes_are_named(text: str, problem: str) -> None:
    with pytest.raises(PolicyInvalid) as caught:
        Policy(text)
    assert problem in str(caught.value)


def test_all_mistakes_are_listed_at_once() -> None:
    with pytest.raises(PolicyInvalid) as caught:
        Policy("{version: 3, rules: [{id: ' '}], more: 1}")
    assert len(caught.value.problems) >= 4


def test_cases_are_decided_and_compared(tmp_path: Path) -> None:
    cases = [
        {"id": "one", "actor": "act-b", "action": "read", "branch": " main ", "expect": "allow"},
        {
            "id": "two",
            "actor": "agent-1",
            "action": "change",
            "branch": "agent/1",
            "type": "Company",
            "expect": "deny",
        },
        {"id": "three", "actor": "act-a", "action": "branch_merge", "target_branch": "main", "expect": "deny"},
    ]
    (tmp_path / "cases.yaml").write_text(yaml.safe_dump({"version": 1, "cases": cases}))
    (tmp_path / "policy.yaml").write_text(TEAM)
    outcomes = run_cases(read_policy(tmp_path / "policy.yaml"), read_cases(tmp_path / "cases.yaml"))
    assert [each.is_as_expected for each in outcomes] == [True, True, False]


@pytest.mark.parametrize(
    ("case", "problem"),
    [
        ({"id": "x", "actor": "a", "action": "read", "expect": "perhaps"}, "expect is allow or deny"),
        ({"id": "x", "actor": "a", "action": "swim", "expect": "deny"}, "cannot be 'swim'"),
        ({"id": "x", "action": "read", "expect": "deny"}, "actor is missing"),
        ({"id": "x", "actor": "a", "action": "read", "expect": "deny", "who": "a"}, "unknown field 'who'"),
    ],
)
def test_mistakes_in_cases_are_named(tmp_path: Path, case: dict[str, str], problem: str) -> None:
    (tmp_path / "cases.yaml").write_text(yaml.safe_dump({"version": 1, "cases": [case]}))
    with pytest.raises(PolicyInvalid, match=problem):
        read_cases(tmp_path / "cases.yaml")
