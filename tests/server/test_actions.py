"""What a request asks of a policy before its body is read."""

from __future__ import annotations

from typing import Any

import pytest

from omnigraph.policy.actions import Action
from omnigraph.server.routes.actions import Asked, asked
from omnigraph.server.routes.route import Access
from omnigraph.server.routes.table import ROUTES

BY_NAME = {route.name: route for route in ROUTES}


def test_every_route_with_a_token_asks_for_something() -> None:
    without = {route.name for route in ROUTES if route.action is None and route.access is not Access.OPEN}
    assert without == {"metrics"}


@pytest.mark.parametrize(
    ("route", "values", "expected"),
    [
        ("graphs", {}, Asked("ada", Action.GRAPH_LIST)),
        ("branches", {}, Asked("ada", Action.READ, "main")),
        ("commits", {"branch": " dev "}, Asked("ada", Action.READ, " dev ")),
        ("snapshot", {"snapshot": 3, "branch": "dev"}, Asked("ada", Action.READ)),
        ("commit_changes", {"commit": "01H"}, Asked("ada", Action.READ)),
        ("query", {}, Asked("ada", Action.READ)),
        ("load_records", {"branch": "dev"}, Asked("ada", Action.CHANGE, "dev")),
        ("delete_branch", {"branch": "dev"}, Asked("ada", Action.BRANCH_DELETE, None, "dev")),
        ("delete_tag", {"tag": "v1"}, Asked("ada", Action.CHANGE)),
        ("merge", {}, Asked("ada", Action.BRANCH_MERGE)),
        ("invoke", {"query": "names"}, Asked("ada", Action.INVOKE_QUERY)),
    ],
)
def test_what_is_known_without_the_body(route: str, values: dict[str, Any], expected: Asked) -> None:
    assert asked(BY_NAME[route], "ada", values) == expected
