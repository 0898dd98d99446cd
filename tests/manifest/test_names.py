"""What a branch may be called."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.manifest.support import create_branch, delete_branch, files, new_graph

from omnigraph.errors import BranchNotFound, InvalidBranchName
from omnigraph.manifest.refs.names import check_new_name

GOOD = [
    "a",
    "1",
    "review/1",
    "team/ada/draft",
    "v1.2",
    "fix_it-now",
    ".hidden",
    "MAIN",
    "mainly",
    "x/__y",
    "deploy.lock",
    "a" * 180,
    "/".join("a" * 30),
]

BAD = {
    "": "is empty",
    " \t\n": "is empty",
    "main": "has its main branch already",
    "  main ": "has its main branch already",
    "main/x": "cannot be a folder and a name at once",
    "__run__1": "internal",
    "__x": "internal",
    "a b": "is made of letters",
    "a\nb": "is made of letters",
    "a\0": "is made of letters",
    "naïve": "is made of letters",
    "分支": "is made of letters",
    "١": "is made of letters",
    "a:b": "is made of letters",
    "a\\b": "is made of letters",
    "a%2Fb": "is made of letters",
    "a#1": "is made of letters",
    "/a": "is made of letters",
    "a/": "is made of letters",
    "a//b": "is made of letters",
    ".": "dot",
    "..": "dot",
    "a/../b": "dot",
    "../../_schema": "dot",
    "./a": "dot",
    "a..b": "dot",
    "a.": "dot",
    "a./b": "dot",
    "a.json/b": ".json",
    "main.json/b": ".json",
    "a" * 181: "more than 180",
    "/".join("a" * 31): "more than 180",
}

CLASHES = [("a", "a/b"), ("a/b", "a"), ("a/b/c", "a"), ("a", "a/b/c")]


@pytest.mark.parametrize("name", GOOD)
def test_a_good_name_can_be_created_and_found(name: str, tmp_path: Path) -> None:
    graph = new_graph(tmp_path)
    created = create_branch(graph, name)
    assert graph.branches.find(name) == created
    assert [branch.name for branch in graph.branches.all()] == ["main", name]
    delete_branch(graph, name)


@pytest.mark.parametrize(("name", "reason"), BAD.items())
def test_a_bad_name_is_refused_for_its_reason(name: str, reason: str) -> None:
    with pytest.raises(InvalidBranchName, match=reason):
        check_new_name(name, ["main"])


@pytest.mark.parametrize(("live", "name"), CLASHES)
def test_two_names_cannot_be_a_folder_and_a_name_at_once(live: str, name: str) -> None:
    with pytest.raises(InvalidBranchName, match=f"'{live}'"):
        check_new_name(name, ["main", live])


@pytest.mark.parametrize(("live", "name"), [("a", "ab"), ("a/b", "a/c"), ("a", "b/a")])
def test_names_that_only_look_alike_live_together(live: str, name: str) -> None:
    assert check_new_name(name, ["main", live]) == name


def test_blanks_around_a_name_are_not_part_of_it(tmp_path: Path) -> None:
    graph = new_graph(tmp_path)
    assert create_branch(graph, "  review/1 \n").name == "review/1"
    assert graph.branches.find("\treview/1 ").name == "review/1"


@pytest.mark.parametrize("name", [name for name in BAD if name.strip() != "main"])
def test_looking_for_a_name_that_cannot_be_finds_nothing_and_writes_nothing(name: str, tmp_path: Path) -> None:
    graph = new_graph(tmp_path)
    create_branch(graph, "a/b")
    before = files(tmp_path)
    with pytest.raises(BranchNotFound):
        graph.branches.find(name)
    with pytest.raises(InvalidBranchName):
        create_branch(graph, name)
    assert files(tmp_path) == before


@pytest.mark.parametrize("other_spelling", ["a//b", "./a/b", "a/./b", "a/b/", "x/../a/b"])
def test_a_branch_has_one_spelling(other_spelling: str, tmp_path: Path) -> None:
    graph = new_graph(tmp_path)
    create_branch(graph, "a/b")
    with pytest.raises(BranchNotFound):
        graph.branches.find(other_spelling)
