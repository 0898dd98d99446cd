"""`omnigraph schema`: plan, apply, show and list schemas."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.command import omnigraph as run
from tests.evolution.cases import ADA, BOB, PEOPLE, node

import omnigraph
from omnigraph import Graph

MAIL = PEOPLE.replace(" }", "  mail: String }")
RANGE = PEOPLE.replace(" }", "  @range(age, 0..9) }")


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = omnigraph.init(tmp_path / "g.omni", PEOPLE)
    graph.load([node(**ADA), node(**BOB)], mode="append")
    for name, text in {"mail": MAIL, "range": RANGE, "int": PEOPLE.replace("I32", "Bool")}.items():
        (tmp_path / f"{name}.pg").write_text(text)
    return graph


def test_a_plan_says_what_happens_to_each_table(graph: Graph, tmp_path: Path) -> None:
    fill = ("--fill", "Person.mail=none", "--store", graph.address)
    ran = run("schema", "plan", "--schema", "mail.pg", *fill, cwd=tmp_path)
    assert ran.code == 0
    assert 'add Person.mail: String, filled with "none"' in ran.out
    assert "all, to compute mail" in ran.out
    shown = run("schema", "plan", "--schema", "mail.pg", *fill, "--json", cwd=tmp_path).json
    assert shown["tables"] == [
        {
            "table_key": "node:Person",
            "action": "change columns",
            "rows": 2,
            "reads_rows": True,
            "computed": ["mail"],
        }
    ]
    assert graph.schema == PEOPLE


def test_a_refused_plan_has_exit_code_1(graph: Graph, tmp_path: Path) -> None:
    ran = run("schema", "plan", "--schema", "mail.pg", "--store", graph.address, cwd=tmp_path)
    assert (ran.code, "--fill Person.mail=…" in ran.out) == (1, True)
    ran = run("schema", "apply", "--schema", "int.pg", "--store", graph.address, cwd=tmp_path)
    assert (ran.code, "it can become F64? or I64?" in ran.err) == (1, True)


def test_a_schema_is_applied_shown_and_listed(graph: Graph, tmp_path: Path) -> None:
    store = ("--store", graph.address)
    done = run(
        "schema", "apply", "--schema", "mail.pg", "--fill", "Person.mail=$name", *store, "--json", cwd=tmp_path
    )
    assert done.json["commit"]["kind"] == "schema_apply"
    assert run("schema", "show", *store).out == MAIL
    first = run("schema", "history", *store, "--json").json["schemas"][-1]["commit"]["graph_commit_id"]
    assert run("schema", "get", *store, "--at", first).out == PEOPLE
    assert "add Person.mail: String" in run("schema", "history", *store).out
    assert graph.entity("Person", "Ada")["mail"] == "Ada"  # type: ignore[index]


def test_rows_that_break_a_rule_are_listed(graph: Graph, tmp_path: Path) -> None:
    ran = run("schema", "apply", "--schema", "range.pg", "--store", graph.address, "--json", cwd=tmp_path)
    assert ran.code == 1
    assert ran.json["violations"][0]["message"] == "@range violation on Person.age: 36 is not in 0..9 (row 'Ada')"


def test_a_stale_plan_has_exit_code_4(graph: Graph, tmp_path: Path) -> None:
    stale = ("--if-commit", "01A", "--fill", "Person.mail=none")
    ran = run("schema", "apply", "--schema", "mail.pg", *stale, "--store", graph.address, cwd=tmp_path)
    assert ran.code == 4


def test_all_branches_or_one(graph: Graph, tmp_path: Path) -> None:
    graph.create_branch("dev")
    every = ("schema", "apply", "--schema", "mail.pg", "--store", graph.address, "--all-branches")
    assert run(*every, "--branch", "dev", cwd=tmp_path).code == 2
    ran = run(*every, "--fill", "Person.mail=none", cwd=tmp_path)
    assert ran.code == 0
    assert [line for line in ran.out.splitlines() if line.endswith(":")] == ["main:", "dev:"]
    assert run("schema", "show", "--branch", "dev", "--store", graph.address).out == MAIL


@pytest.mark.parametrize("fill", ["Person.mail", "mail=x"])
def test_a_fill_names_a_property_and_a_value(graph: Graph, fill: str, tmp_path: Path) -> None:
    ran = run("schema", "apply", "--schema", "mail.pg", "--fill", fill, "--store", graph.address, cwd=tmp_path)
    assert ran.code in (1, 2)
    assert graph.schema == PEOPLE
