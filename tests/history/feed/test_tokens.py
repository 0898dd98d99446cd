"""Cursors and page tokens fit what they were given for, and nothing else."""

from __future__ import annotations

import hashlib
import json
import shutil
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.history.feed.replica import SCHEMA, person
from tests.stores import Store

import omnigraph
from omnigraph import Graph
from omnigraph.errors import CursorRejected
from omnigraph.history.feed.tokens import Scope, TokenKind, decode_token, encode_token

SCOPE = Scope("graph", "branch", None, "filter")
TOKEN = encode_token(TokenKind.FEED_CURSOR, SCOPE, {"at": 7, "commit": "01A"})


@pytest.fixture
def graph(local_store: Store) -> Graph:
    graph = omnigraph.init(local_store.uri, SCHEMA)
    graph.load([person("Ada"), person("Bo")], mode="append")
    return graph


def handed_out(graph: Graph) -> dict[str, str]:
    """One token of each kind."""
    page, commit = graph.changes(start="beginning", limit=1), graph.commits()[0].graph_commit_id
    cursor, piece = graph.changes().cursor, graph.commit_changes(commit, limit=1)
    assert page.next_page_token
    assert cursor
    assert piece.next_page_token
    return {"feed-cursor": cursor, "feed-page": page.next_page_token, "commit-page": piece.next_page_token}


@given(st.integers(0, len(TOKEN) * 8 - 1))
def test_a_flipped_bit_is_found(bit: int) -> None:
    damaged = bytearray(TOKEN.encode())
    damaged[bit // 8] ^= 1 << bit % 8
    with pytest.raises(CursorRejected):
        decode_token(TokenKind.FEED_CURSOR, SCOPE, damaged.decode("latin-1"))


@given(st.one_of(st.text(), st.integers(0, len(TOKEN) - 1).map(lambda n: TOKEN[:n]), st.just(TOKEN + "=")))
def test_what_is_no_token_is_refused(text: str) -> None:
    with pytest.raises(CursorRejected):
        decode_token(TokenKind.FEED_CURSOR, SCOPE, text)


def test_a_token_is_as_short_as_promised(graph: Graph) -> None:
    assert all(len(token) < 1_024 for token in handed_out(graph).values())
    with pytest.raises(CursorRejected):
        graph.changes(cursor="A" * 4_097)


@pytest.mark.parametrize("kind", TokenKind)
def test_a_token_of_another_kind_is_refused(graph: Graph, kind: TokenKind) -> None:
    token, commit = handed_out(graph)[kind], graph.commits()[0].graph_commit_id
    if kind is not TokenKind.FEED_CURSOR:
        with pytest.raises(CursorRejected, match=f"it is a {kind.value}, and a feed-cursor is needed"):
            graph.changes(cursor=token)
    if kind is not TokenKind.FEED_PAGE:
        with pytest.raises(CursorRejected, match=f"it is a {kind.value}, and a feed-page is needed"):
            graph.changes(page_token=token)
    if kind is not TokenKind.COMMIT_PAGE:
        with pytest.raises(CursorRejected, match=f"it is a {kind.value}, and a commit-page is needed"):
            graph.commit_changes(commit, page_token=token)


def test_a_cursor_of_another_graph_is_refused(graph: Graph, tmp_path: Path) -> None:
    other = omnigraph.init(tmp_path / "other", SCHEMA)
    with pytest.raises(CursorRejected, match="another graph"):
        graph.changes(cursor=other.changes().cursor)


def test_a_cursor_of_another_branch_is_refused(graph: Graph) -> None:
    graph.create_branch("dev")
    with pytest.raises(CursorRejected, match="another branch"):
        graph.changes(cursor=graph.changes("dev").cursor)
    with pytest.raises(CursorRejected, match="another branch"):
        graph.changes("dev", cursor=graph.changes().cursor)


def test_a_cursor_of_a_branch_that_was_deleted_and_created_again_is_refused(graph: Graph) -> None:
    graph.create_branch("dev")
    cursor = graph.changes("dev").cursor
    graph.delete_branch("dev")
    graph.create_branch("dev")
    with pytest.raises(CursorRejected, match="its branch was deleted"):
        graph.changes("dev", cursor=cursor)


def test_a_token_goes_with_its_filters(graph: Graph) -> None:
    cursor, commit = graph.changes(kinds=["node"]).cursor, graph.commits()[0].graph_commit_id
    assert graph.changes(cursor=cursor, kinds=["node"]).caught_up
    wrong: list[dict[str, Any]] = [{}, {"kinds": ["edge"]}, {"kinds": ["node"], "types": ["Person"]}]
    for options in wrong:
        with pytest.raises(CursorRejected, match="another filter"):
            graph.changes(cursor=cursor, **options)
    token = graph.commit_changes(commit, limit=1).next_page_token
    with pytest.raises(CursorRejected, match="another filter"):
        graph.commit_changes(commit, page_token=token, ops=["insert"])


def test_a_page_token_of_another_commit_is_refused(graph: Graph) -> None:
    token = graph.commit_changes(graph.commits()[0].graph_commit_id, limit=1).next_page_token
    graph.load([person("Cy")], mode="append")
    with pytest.raises(CursorRejected, match="another commit"):
        graph.commit_changes(graph.commits()[0].graph_commit_id, page_token=token)


def test_a_cursor_of_a_history_that_was_rolled_back_is_refused(graph: Graph, tmp_path: Path) -> None:
    """A graph that is restored from a copy has no place for what was read after the copy was made."""
    shutil.copytree(graph.address, tmp_path / "copy")
    graph.load([person("Cy"), person("Di")], mode="append")
    cursor, page = graph.changes().cursor, graph.changes(start="beginning", limit=2).next_page_token
    copy = omnigraph.open(tmp_path / "copy")
    with pytest.raises(CursorRejected, match="'main' has no commit"):
        copy.changes(cursor=cursor)
    with pytest.raises(CursorRejected, match="does not reach as far"):
        copy.changes(page_token=page)
    copy.load([person("Ed")], mode="append")
    with pytest.raises(CursorRejected, match="'main' has no commit"):
        copy.changes(cursor=cursor)


@pytest.mark.parametrize(
    "changed",
    [
        {"fields": None},
        {"fields": {}},
        {"fields": {"at": -1, "commit": None}},
        {"fields": {"at": True, "commit": None}},
        {"fields": {"at": "7", "commit": None}},
        {"fields": {"at": 2, "commit": None}},
        {"fields": {"at": 10**30, "commit": "01A"}},
        {"version": 2},
        {"version": None},
    ],
)
def test_a_token_that_was_made_up_is_refused(graph: Graph, changed: dict[str, Any]) -> None:
    """A digest is no secret, so that its content is checked as well."""
    cursor = handed_out(graph)["feed-cursor"]
    with pytest.raises(CursorRejected):
        graph.changes(cursor=sealed(json.dumps({**opened(cursor), **changed}).encode()))


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff", b"{", b"[" * 2_000])
def test_a_digest_of_nonsense_is_refused(graph: Graph, content: bytes) -> None:
    with pytest.raises(CursorRejected):
        graph.changes(cursor=sealed(content))


@pytest.mark.parametrize("fields", [{"type": 999}, {"offset": 3}, {"type": "1"}, {"cut": None}])
def test_a_place_that_no_commit_has_is_refused(graph: Graph, fields: dict[str, Any]) -> None:
    token = handed_out(graph)["feed-page"]
    content = opened(token)
    made_up = sealed(json.dumps({**content, "fields": {**content["fields"], **fields}}).encode())
    with pytest.raises(CursorRejected):
        graph.changes(page_token=made_up)


def opened(token: str) -> dict[str, Any]:
    from base64 import urlsafe_b64decode

    found = json.loads(urlsafe_b64decode(token + "==")[:-32])
    assert isinstance(found, dict)
    return found


def sealed(content: bytes) -> str:
    return urlsafe_b64encode(content + hashlib.sha256(content).digest()).decode().rstrip("=")
