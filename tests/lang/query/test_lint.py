"""The report of the linter as machines read it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.lang.query.support import CATALOG

from omnigraph.lang.query.lint import LintReport, lint_queries

READ = "query names() { match { $p: Pilot } return { $p.call } }"
UNFIT = "query unfit() { match { $p: Pilt } return { $p, $q } }"
UPDATE = "query set_size($c: String, $n: I32) { update Base set { size: $n } where code = $c }"
SEED = 'query seed() { insert Base { code: "alpha" } }'


def lint(*queries: str) -> LintReport:
    return lint_queries("\n".join(queries), CATALOG, "graph.gq", "graph.pg")


def report(*queries: str) -> dict[str, Any]:
    """The JSON of a report, as it comes out of a file."""
    loaded: dict[str, Any] = json.loads(json.dumps(lint(*queries).as_json()))
    return loaded


class TestReport:
    def test_a_file_without_remarks(self) -> None:
        assert report(READ) == {
            "status": "ok",
            "schema_source": "graph.pg",
            "query_path": "graph.gq",
            "queries_processed": 1,
            "errors": 0,
            "warnings": 0,
            "infos": 0,
            "results": [
                {
                    "name": "names",
                    "kind": "read",
                    "status": "ok",
                    "operation": {
                        "result": [{"name": "p.call", "kind": "string", "nullable": False}],
                        "reads": [{"kind": "node", "type_name": "Pilot"}],
                        "writes": [],
                    },
                }
            ],
            "findings": [],
        }

    def test_an_empty_file(self) -> None:
        empty = report("// later")
        assert (empty["status"], empty["queries_processed"], empty["results"]) == ("ok", 0, [])

    def test_type_errors_are_told_with_their_query(self) -> None:
        found = report(READ, UNFIT)
        assert (found["status"], found["errors"], found["queries_processed"]) == ("error", 2, 2)
        assert found["findings"] == []
        fit, unfit = found["results"]
        assert fit["status"] == "ok"
        assert (unfit["name"], unfit["kind"], unfit["status"]) == ("unfit", "read", "error")
        assert unfit["error"].startswith("type error: T1: unknown node type `Pilt`; type error: Q103: ")
        assert [(d["code"], d["line"], d["column"]) for d in unfit["diagnostics"]] == [
            ("T1", 2, 29),
            ("Q103", 2, 49),
        ]
        assert "operation" not in unfit

    def test_a_file_that_does_not_parse_has_no_results(self) -> None:
        found = report(READ, "query a() { match { } return { 1 } }", UNFIT, "query b( { }")
        assert (found["status"], found["queries_processed"], found["results"]) == ("error", 0, [])
        assert [(f["code"], f["message"], f["line"]) for f in found["findings"]] == [
            ("Q000", "P001: `match { }` is empty", 2),
            ("Q000", "P001: expected a parameter such as `$name: String`, found `{`", 4),
        ]
        assert found["errors"] == 2

    def test_warnings_leave_the_status_alone(self) -> None:
        found = report(SEED)
        assert (found["status"], found["errors"], found["warnings"]) == ("ok", 0, 1)
        assert lint(SEED).ok


class TestFindings:
    def test_a_property_no_update_sets(self) -> None:
        updates = "query set_hours($c: String, $h: I32) { update Pilot set { hours: $h } where call = $c }"
        again = "query more_hours($c: String) { update Pilot set { hours: 9000 } where call = $c }"
        first = report(updates, again)["findings"][0]
        assert first == {
            "severity": "warning",
            "code": "L201",
            "message": "Pilot.active exists in schema but no update query sets it",
            "type_name": "Pilot",
            "property": "active",
            "query_names": ["more_hours", "set_hours"],
        }

    def test_only_nullable_properties_of_updated_types_count(self) -> None:
        assert (
            report(UPDATE, READ, "query add($r: String) { insert Plane { reg: $r, model: $r } }")["findings"] == []
        )

    def test_an_update_that_does_not_compile_asks_for_nothing(self) -> None:
        broken = "query broken($c: String) { update Pilot set { hours: $nothing } where call = $c }"
        assert report(broken)["findings"] == []

    def test_a_mutation_without_parameters_is_told_with_its_query(self) -> None:
        found = report(SEED)
        assert found["findings"] == []
        message = "mutation `seed` has no parameters and writes the same every time"
        assert [result["warnings"] for result in found["results"]] == [[message]]

    def test_warnings_of_the_checker_have_a_place_and_are_told_with_their_query(self) -> None:
        found = report(READ, 'query r() { match { $p: Pilot  $p.rank = "boss" } return { $p.call } }')
        message = '"boss" is not one of the enum\'s values, so this never matches'
        assert found["findings"] == [
            {
                "severity": "warning",
                "code": "L302",
                "message": message,
                "query_names": ["r"],
                "line": 2,
                "column": 42,
            }
        ]
        assert [result.get("warnings") for result in found["results"]] == [None, [message]]

    def test_the_order_is_severity_type_property_message(self) -> None:
        found = report(
            "query z($c: String) { update Pilot set { hours: 1 } where call = $c }",
            'query r() { match { $p: Pilot  $p.rank = "boss" } return { $p.call } }',
        )
        keys = [(f.get("type_name", ""), f.get("property", ""), f["message"]) for f in found["findings"]]
        assert keys == sorted(keys)
        assert keys[:2] == [
            ("", "", '"boss" is not one of the enum\'s values, so this never matches'),
            ("Pilot", "active", "Pilot.active exists in schema but no update query sets it"),
        ]


@pytest.mark.parametrize("queries", [(READ,), (UNFIT,), (SEED, UPDATE), ("query",)])
def test_the_counts_agree_with_what_is_listed(queries: tuple[str, ...]) -> None:
    found = report(*queries)
    listed = [f["severity"] for f in found["findings"]]
    failed = sum(len(result.get("diagnostics", ())) for result in found["results"])
    assert found["errors"] == listed.count("error") + failed
    remarks = [w for result in found["results"] for w in result.get("warnings", ())]
    assert found["warnings"] == listed.count("warning") + len(remarks)
    assert (found["status"] == "ok") is (found["errors"] == 0)
