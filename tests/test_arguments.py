"""Arguments of the wrong kind: each is refused by its name, with an error of ours, before anything is written."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.command import omnigraph as command

import omnigraph
from omnigraph import Graph
from omnigraph.errors import InvalidAddress, InvalidArgument, OmniError, SourceUnusable, StorageUnavailable

SCHEMA = "node P { k: String @key }"
ADD = 'query add() { insert P { k: "a" } }'
ALL = "query every() { match { $p: P } return { $p.k } }"
LINE = '{"type": "P", "data": {"k": "x"}}'
HALF = "M\udcfcller"
WRONG: dict[str, Any] = {"number": 5, "bytes": b"x", "object": object(), "half a character": HALF, "list": ["x"]}

CALLS: dict[str, tuple[str, Callable[[Graph, Any], object]]] = {
    "branch": ("name", lambda g, x: g.branch(x)),
    "create_branch": ("name", lambda g, x: g.create_branch(x)),
    "create_branch from": ("from_", lambda g, x: g.create_branch("new", x)),
    "create_branch as": ("actor", lambda g, x: g.create_branch("new", actor=x)),
    "delete_branch": ("name", lambda g, x: g.delete_branch(x)),
    "query": ("text", lambda g, x: g.query(x)),
    "query name": ("name", lambda g, x: g.query(ALL, name=x)),
    "query on": ("branch", lambda g, x: g.query(ALL, branch=x)),
    "check": ("text", lambda g, x: g.check(x)),
    "explain": ("text", lambda g, x: g.explain(x)),
    "mutate": ("text", lambda g, x: g.mutate(x)),
    "mutate as": ("actor", lambda g, x: g.mutate(ADD, actor=x)),
    "mutate on": ("branch", lambda g, x: g.mutate(ADD, branch=x)),
    "mutate if": ("if_commit", lambda g, x: g.mutate(ADD, if_commit=x)),
    "load as": ("actor", lambda g, x: g.load(LINE, mode="merge", actor=x)),
    "load message": ("message", lambda g, x: g.load(LINE, mode="merge", message=x)),
    "load on": ("branch", lambda g, x: g.load(LINE, mode="merge", branch=x)),
    "ingest": ("branch", lambda g, x: g.ingest(LINE, x)),
    "ingest from": ("from_", lambda g, x: g.ingest(LINE, "new", from_=x)),
    "indices as": ("actor", lambda g, x: g.ensure_indices(actor=x)),
    "optimize as": ("actor", lambda g, x: g.optimize(actor=x)),
    "commit": ("graph_commit_id", lambda g, x: g.commit(x)),
    "commits on": ("branch", lambda g, x: g.commits(x)),
    "commits by": ("actor", lambda g, x: g.commits(actor=x)),
    "commits after": ("after", lambda g, x: g.commits(after=x)),
    "open as": ("actor", lambda g, x: omnigraph.open(g.address, actor=x)),
    "init as": ("actor", lambda g, x: omnigraph.init(f"{g.address}-2", SCHEMA, actor=x)),
    "init": ("schema", lambda g, x: omnigraph.init(f"{g.address}-2", x)),
    "open": ("uri", lambda _, x: omnigraph.open(x)),
}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return omnigraph.init(tmp_path_factory.mktemp("arguments") / "g", SCHEMA)


@pytest.mark.parametrize("wrong", WRONG.values(), ids=list(WRONG))
@pytest.mark.parametrize("call", CALLS)
def test_a_wrong_argument_is_refused_by_its_name(graph: Graph, call: str, wrong: object) -> None:
    argument, use = CALLS[call]
    with pytest.raises(InvalidArgument) as caught:
        use(graph, wrong)
    assert caught.value.argument == argument
    assert f"'{argument}'" in str(caught.value).encode().decode()
    assert len(graph.commits()) == 1
    assert not Path(f"{graph.address}-2").exists()


@pytest.mark.parametrize("value", [None, "x", 1.5, True])
def test_a_limit_is_a_number(graph: Graph, value: Any) -> None:
    with pytest.raises(InvalidArgument, match="'limit'"):
        graph.commits(limit=value)


@pytest.mark.parametrize("value", [1.5, True, b"x", HALF])
def test_a_snapshot_is_a_number_or_a_text(graph: Graph, value: Any) -> None:
    with pytest.raises(InvalidArgument, match="'at'"):
        graph.query(ALL, at=value)


def test_an_actor_has_up_to_256_characters_and_a_message_65_536(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", SCHEMA)
    graph.load(LINE, mode="merge", actor="é" * 256, message="m" * 65_536)
    for wrong in ({"actor": "a" * 257}, {"message": "m" * 65_537}):
        with pytest.raises(InvalidArgument, match="characters, and"):
            graph.load(LINE, mode="merge", **wrong)  # type: ignore[arg-type]
    assert [commit.actor_id for commit in graph.commits()] == ["é" * 256, None]


@pytest.mark.parametrize(
    "address",
    ["x" * 5000, "/".join(["deep"] * 2000), "nul\0/g", "s3://bucket/" + "x" * 5000, "memory://m/nul\0", "y" * 300],
    ids=["long", "deep", "null", "s3", "memory", "name"],
)
def test_an_address_that_no_store_can_have(address: str) -> None:
    for use in (omnigraph.open, lambda uri: omnigraph.init(uri, SCHEMA)):
        with pytest.raises(InvalidAddress) as caught:
            use(address)
        assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("data", "error"),
    [
        ("x" * 5000, StorageUnavailable),
        ("y" * 300, StorageUnavailable),
        ("nul\0", SourceUnusable),
        (Path("nul\0"), SourceUnusable),
    ],
    ids=["long", "name", "null", "path"],
)
def test_data_from_a_file_that_cannot_be(graph: Graph, data: Any, error: type[OmniError]) -> None:
    with pytest.raises(error):
        graph.load(data, mode="merge")


@pytest.mark.parametrize("data", [5, None, 1.5])
def test_data_that_is_none(graph: Graph, data: Any) -> None:
    with pytest.raises(OmniError):
        graph.load(data, mode="merge")


@pytest.mark.parametrize(
    "arguments",
    [["branch", "create", "new", "--as", b"M\xfcller"], ["branch", "create", b"M\xfcller"], ["jobs", b"\xfc"]],
    ids=["actor", "branch", "address"],
)
def test_the_command_says_so_without_a_traceback(graph: Graph, arguments: list[str | bytes]) -> None:
    store = [] if "jobs" in arguments else ["--store", graph.address]
    ran = command(*(os.fsdecode(part) for part in (*arguments, *store)))
    assert ran.code == 1
    assert b"Traceback" not in ran.stderr
    assert b"\\udcfc" in ran.stderr
