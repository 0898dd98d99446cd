"""Filling vectors from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.command import omnigraph as run
from tests.embed.server import Reply, embedding_server

import omnigraph

SCHEMA = """
node Doc { slug: String @key  title: String?  meaning: Vector(4)? @embed("title") }
node Note { slug: String @key  text: String  sense: Vector(4)? @embed("text") }
"""
RECORDS = [
    {"type": "Doc", "data": {"slug": "a", "title": "Engines"}},
    {"type": "Doc", "data": {"slug": "b"}},
    {"type": "Note", "data": {"slug": "n", "text": "Motors"}},
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with one graph that was loaded before there was a provider; now there is the mock."""
    for name in ("OMNIGRAPH_EMBED_PROVIDER", "OMNIGRAPH_EMBED_BASE_URL", "OMNIGRAPH_EMBEDDINGS_MOCK"):
        monkeypatch.delenv(name, raising=False)
    with pytest.warns(UserWarning, match="stayed null"):
        omnigraph.init(tmp_path / "g.omni", SCHEMA).load(RECORDS, mode="append")
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "mock")
    return tmp_path


def test_what_is_missing_is_computed_once(folder: Path) -> None:
    ran = run("embed", "--as", "ada", cwd=folder)
    assert (ran.code, ran.err) == (0, "")
    first, *lines = ran.out.splitlines()
    assert first.startswith("committed 2 vectors of mock on main as ")
    assert lines == [
        "  Doc.meaning: 1 computed, 0 there already, 1 without text",
        "  Note.sense: 1 computed, 0 there already",
    ]
    again = run("embed", cwd=folder)
    assert again.out.splitlines()[0] == "no vector is missing"
    history = run("commit", "list", "--json", cwd=folder).json["commits"]
    assert (history[0]["kind"], history[0]["actor_id"]) == ("embed", "ada")


def test_some_of_it_and_all_again_as_json(folder: Path) -> None:
    done = run("embed", str(folder / "g.omni"), "--type", "Note", "--json").json
    assert done["uri"] == str(folder / "g.omni")
    assert (done["branch"], done["engine"], done["model"], done["embedded"]) == ("main", "local", "mock", 1)
    assert done["properties"] == [
        {"type": "Note", "property": "sense", "embedded": 1, "present": 0, "without_text": 0}
    ]
    assert done["commit"]["kind"] == "embed"
    again = run("embed", "--reembed-all", "--property", "sense", "--json", cwd=folder).json
    assert (again["embedded"], len(again["properties"])) == (1, 1)
    nothing = run("embed", "--property", "sense", "--json", cwd=folder).json
    assert (nothing["embedded"], nothing["commit"]) == (0, None)


def test_what_cannot_be_done(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unknown = run("embed", "--type", "Dok", cwd=folder)
    assert (unknown.code, unknown.err) == (1, "error: there is no node type 'Dok'; did you mean `Doc`?\n")
    assert run("embed", "--engine", "quick", cwd=folder).code == 2
    monkeypatch.delenv("OMNIGRAPH_EMBED_PROVIDER")
    nobody = run("embed", "--json", cwd=folder)
    assert nobody.code == 1
    assert nobody.json["error"].startswith("no embedding provider is configured; set OMNIGRAPH_EMBED_PROVIDER")


def test_a_server_and_its_key(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with embedding_server() as server:
        monkeypatch.delenv("OMNIGRAPH_EMBED_PROVIDER")
        monkeypatch.setenv("OMNIGRAPH_EMBED_BASE_URL", server.url)
        monkeypatch.setenv("OMNIGRAPH_EMBED_MODEL", "mini")
        monkeypatch.setenv("OMNIGRAPH_EMBED_API_KEY", "sk-secret")
        server.replies = [Reply(401, b'{"error": {"message": "wrong key sk-secret"}}')]
        refused = run("embed", "--type", "Doc", cwd=folder)
        assert refused.code == 1
        assert "answered 401: wrong key …; check the key in" in " ".join(refused.err.split())
        assert "sk-secret" not in refused.err
        done = run("embed", "--json", cwd=folder).json
        assert (done["model"], done["embedded"]) == ("mini", 2)
        assert server.texts == ["Engines", "Engines", "Motors"]
