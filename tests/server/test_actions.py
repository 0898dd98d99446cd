"""What a request asks for, in the words of a policy."""

from __future__ import annotations

from typing import Any

import pytest

from omnigraph.server.routes.actions import Action, Asked, asked
from omnigraph.server.routes.table import ROUTES

UNASKED = {"health", "readiness", "openapi", "metrics"}


def test_every_route_about_graphs_has_its_action() -> None:
    assert {route.name for route in ROUTES if route.action is None} == UNASKED


@pytest.mark.parametrize(
    ("action", "values", "expected"),
    [
        (Action.GRAPH_LIST, {}, {"graph": None}),
        (Action.READ, {}, {"branch": "main"}),
        (Action.READ, {"branch": " main "}, {"branch": "main"}),
        (Action.READ, {"snapshot": "v1"}, {"at": "v1"}),
        (Action.READ, {"commit": "HEAD", "branch": "dev"}, {"at": "HEAD", "branch": "dev"}),
        (Action.READ, {"type": "Person"}, {"branch": "main", "type_names": ("Person",)}),
        (Action.EXPORT, {"type_names": ["A", "B"]}, {"branch": "main", "type_names": ("A", "B")}),
        (Action.CHANGE, {"branch": "dev"}, {"branch": "dev"}),
        (Action.SCHEMA_APPLY, {}, {"target_branch": "main"}),
        (Action.BRANCH_CREATE, {"name": "dev"}, {"branch": "main", "target_branch": "dev"}),
        (Action.BRANCH_DELETE, {"branch": "dev"}, {"target_branch": "dev"}),
        (Action.BRANCH_MERGE, {"source": "dev"}, {"branch": "dev", "target_branch": "main"}),
        (Action.INVOKE_QUERY, {"query": "names"}, {}),
    ],
)
def test_branches_and_types_are_those_of_the_request(
    action: Action, values: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert asked(action, "ada", {"graph": "g", **values}) == Asked("ada", action, **{"graph": "g", **expected})
