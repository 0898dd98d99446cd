"""Walking a history whose commits lie in several places."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.manifest.support import new_graph

from omnigraph.manifest import lineage
from omnigraph.manifest.lineage import Ancestry
from omnigraph.manifest.state import Commit

NOON = dt.datetime(2026, 5, 1, 12, 0, tzinfo=dt.UTC)


def commit(number: int, *parents: int, version: int = 0) -> Commit:
    at = NOON + dt.timedelta(seconds=number)
    return Commit(str(number), "main", version or number, tuple(map(str, parents)), at, "load")


def by_id(commits: Iterable[Commit]) -> dict[str, Commit]:
    return {found.graph_commit_id: found for found in commits}


def history(
    head: Commit | None, known: dict[str, Commit], places: Iterable[Callable[[], Mapping[str, Commit]]]
) -> Iterator[Commit]:
    """The walk from a head, with functions for the places that the rest of the commits lie in."""
    return lineage.history(head, Ancestry(known, (place() for place in places)))


CHAIN = [commit(1), *(commit(number, number - 1) for number in range(2, 7))]


def no_place() -> dict[str, Commit]:
    raise AssertionError("this place was not needed")


def test_nothing_leads_to_no_head() -> None:
    assert list(history(None, {}, (no_place,))) == []


def test_what_is_known_is_not_looked_for() -> None:
    assert list(history(CHAIN[-1], by_id(CHAIN), (no_place,))) == CHAIN[::-1]


def test_a_place_is_asked_when_the_walk_comes_to_it() -> None:
    walk = history(CHAIN[-1], by_id(CHAIN[3:]), (lambda: by_id(CHAIN[:3]), no_place))
    assert list(walk) == CHAIN[::-1]


def test_a_page_that_is_full_asks_nobody() -> None:
    walk = history(CHAIN[-1], by_id(CHAIN[3:]), (no_place,))
    assert [next(walk) for _ in range(3)] == CHAIN[:2:-1]


def test_a_parent_that_nobody_knows_ends_its_path() -> None:
    assert list(history(CHAIN[-1], by_id(CHAIN[3:]), (dict, dict))) == CHAIN[:2:-1]


def test_a_merge_brings_in_the_other_history_before_what_they_share() -> None:
    base, left, right, merge = commit(1), commit(2, 1), commit(3, 1, version=9), commit(4, 2, 3)
    walk = history(merge, by_id([base, left, merge]), (dict, lambda: by_id([right])))
    assert list(walk) == [merge, right, left, base]


@st.composite
def histories(draw: st.DrawFn) -> list[Commit]:
    """Any history: each commit has earlier ones for parents, and versions say nothing across branches."""
    commits = [commit(1)]
    for number in range(2, draw(st.integers(2, 14))):
        parents = draw(st.lists(st.integers(1, number - 1), min_size=1, max_size=2, unique=True))
        commits.append(commit(number, *parents, version=draw(st.integers(1, 9))))
    return commits


@given(histories(), st.data())
@settings(deadline=None)
def test_it_does_not_matter_where_the_commits_lie(commits: list[Commit], data: st.DataObject) -> None:
    places = [data.draw(st.sampled_from(["manifest", "archive", "branches"])) for _ in commits]
    lying = {
        place: by_id(c for c, where in zip(commits, places, strict=True) if where == place)
        for place in ("manifest", "archive", "branches")
    }
    head = commits[-1]
    walk = list(history(head, lying["manifest"], (lambda: lying["archive"], lambda: lying["branches"])))
    assert walk == list(history(head, by_id(commits), ()))
    place = {found.graph_commit_id: at for at, found in enumerate(walk)}
    assert len(place) == len(walk)
    assert all(place[found.graph_commit_id] < place[parent] for found in walk for parent in found.parents)


class TestArchive:
    def test_a_commit_that_was_archived_twice_is_there_once(self, tmp_path: Path) -> None:
        archive = new_graph(tmp_path).manifest.archive
        archive.append(CHAIN[:4])
        archive.append(CHAIN[2:])
        assert archive.read() == by_id(CHAIN)

    def test_its_pages_begin_with_what_was_archived_last(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(lineage, "_FIRST_PAGE", 2)
        archive = new_graph(tmp_path).manifest.archive
        assert list(archive.pages()) == []
        archive.append(CHAIN[:4])
        archive.append(CHAIN[4:])
        assert [list(page) for page in archive.pages()] == [["5", "6"], ["1", "2", "3", "4"]]
        archive.append([commit(7, 6)])
        assert [list(page) for page in archive.pages()] == [["6", "7"], ["2", "3", "4", "5"], ["1"]]

    def test_one_is_found_by_its_id(self, tmp_path: Path) -> None:
        archive = new_graph(tmp_path).manifest.archive
        assert archive.find("1") is None
        archive.append(CHAIN)
        assert archive.find("3") == CHAIN[2]
        assert archive.find("99") is None

    @pytest.mark.parametrize("message", [None, "", "naïve “quotes” and ' marks\nand lines"])
    def test_nothing_of_a_commit_is_lost(self, tmp_path: Path, message: str | None) -> None:
        archive = new_graph(tmp_path).manifest.archive
        at = NOON + dt.timedelta(microseconds=123_456)
        stored = Commit("c", "review/1", 2**40, ("a", "b"), at, "merge", "bo", message)
        archive.append([stored])
        assert archive.find("c") == stored
