"""Which route a path is about."""

from __future__ import annotations

import pytest

from omnigraph.server.routes.finding import RouteFinder
from omnigraph.server.routes.route import Route
from omnigraph.server.routes.table import ROUTES

FINDER = RouteFinder(ROUTES)


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_every_route_is_found_by_its_path(route: Route) -> None:
    found = FINDER.find(route.method, route.path.replace("{", "a-").replace("}", "-z"))
    assert found is not None
    named = {"graph", "query", "branch", "tag", "commit"} & set(found[1])
    assert (found[0], dict(found[1])) == (route, {name: f"a-{name}-z" for name in named})


def test_names_of_branches_tags_and_commits_may_have_slashes() -> None:
    for method, path, name in (
        ("DELETE", "/graphs/g/branches/a/b", "delete_branch"),
        ("DELETE", "/graphs/g/tags/a/b", "delete_tag"),
        ("GET", "/graphs/g/commits/a/b", "commit"),
        ("GET", "/graphs/g/commits/a/b/changes", "commit_changes"),
    ):
        found = FINDER.find(method, path)
        assert found is not None
        assert (found[0].name, set(found[1].values())) == (name, {"g", "a/b"})
    assert FINDER.find("GET", "/graphs/a/b/schema") is None


def test_a_branch_may_be_called_as_a_route_is() -> None:
    """`POST …/branches/merge` merges, and `DELETE …/branches/merge` deletes a branch."""
    found = FINDER.find("DELETE", "/graphs/g/branches/merge")
    assert found is not None
    assert (found[0].name, found[1]) == ("delete_branch", {"graph": "g", "branch": "merge"})
    assert FINDER.allowed("/graphs/g/branches/merge") == ["DELETE", "POST"]


def test_what_is_got_can_be_asked_for_its_head() -> None:
    found = FINDER.find("HEAD", "/graphs/g/schema")
    assert found is not None
    assert found[0].name == "schema"


@pytest.mark.parametrize(
    "path",
    ["", "/", "/graphs/", "/graphs//schema", "/graphs/g", "/graphs/g/", "/graphs/g/schema/", "/schema", "//"],
)
def test_other_paths_are_about_nothing(path: str) -> None:
    assert FINDER.allowed(path) == []
