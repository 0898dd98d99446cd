"""Requests made of the OpenAPI document: the answers are what the document says, and never a 500."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from tests.sampling import examples
from tests.server.running import ADD, NAMES, make_graph, serving

pytestmark = pytest.mark.long
KNOWN = {
    "graph": ["default"],
    "branch": ["main", "dev", "nowhere"],
    "type": ["Person", "Knows", "Other"],
    "id": ["ada", "k1", "nobody"],
    "property": ["photo", "age", "other"],
    "query": ["names", "add", "other"],
    "mode": ["append", "merge", "overwrite"],
}
"""Values with which a request gets further than with a random text."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    place: Path = tmp_path_factory.mktemp("schemathesis")
    make_graph(place / "g.omni")
    (place / "stored.gq").write_text(f"{NAMES}\n{ADD}")
    with serving(place / "g.omni", is_open=True, queries=place) as running:
        yield running.url


def document(url: str) -> dict[str, Any]:
    """The document of a server, with names that are there in the place of some texts."""
    import urllib3

    found: dict[str, Any] = urllib3.request("GET", f"{url}/openapi.json").json()
    for methods in found["paths"].values():
        for operation in methods.values():
            for each in operation["parameters"]:
                if each["name"] in KNOWN and "enum" not in each["schema"]:
                    each["schema"] = {"type": "string", "enum": KNOWN[each["name"]]}
    return found


def test_every_operation(server: str) -> None:
    import schemathesis
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance

    @schemathesis.serializer("application/x-ndjson")
    def lines(_: Any, value: Any) -> bytes:
        return str(value).encode(errors="replace")

    schema = schemathesis.openapi.from_dict(document(server))
    checks = [not_a_server_error, content_type_conformance, response_schema_conformance]
    tried = set()
    for found in schema.get_all_operations():
        operation: Any = found.ok()  # type: ignore[union-attr]
        name = operation.definition.raw["operationId"]
        if name == "follow":  # it has no end
            continue

        @given(case=operation.as_strategy())
        @settings(
            max_examples=examples(6, of=60),
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        def answered(case: Any) -> None:
            answer = case.call(base_url=server, timeout=60)
            case.validate_response(answer, checks=checks)
            assert answer.headers["x-request-id"]

        answered()
        tried.add(name)
    assert len(tried) > 40
