"""`omnigraph load` and `omnigraph ingest`: records in, by the file or by the cluster."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.cli.output import Json, counted, print_json, print_text, reports_errors, styled
from omnigraph.cli.spark import Engine, EngineName, Master, Remote, progress
from omnigraph.cli.stores import Actor, Address, Store, open_graph

if TYPE_CHECKING:
    from omnigraph.bulk.load.options import LoadResult
    from omnigraph.graph import Graph


class LoadMode(StrEnum):
    """How a load treats what is there."""

    OVERWRITE = "overwrite"
    APPEND = "append"
    MERGE = "merge"


Branch = Annotated[str, typer.Option("--branch", help="The branch to write.")]
DataFiles = Annotated[
    list[str] | None,
    typer.Option(
        "--data",
        help="A file, directory or glob of JSON Lines (also .gz, .zst) or Parquet, on disk or s3://; repeatable. "
        "`-` reads standard input.",
    ),
]
NodeFiles = Annotated[
    list[str] | None, typer.Option("--nodes", metavar="TYPE=PATH", help="Parquet with nodes of one type.")
]
EdgeFiles = Annotated[
    list[str] | None, typer.Option("--edges", metavar="TYPE=PATH", help="Parquet with edges of one type.")
]
Message = Annotated[str | None, typer.Option("--message", "-m", help="Kept with the commit.")]
MaxErrors = Annotated[
    int | None, typer.Option("--max-errors", min=1, help="Stop after so many bad records.", show_default=False)
]
BadRecords = Annotated[
    str | None, typer.Option("--bad-records", help="Write bad records with their reasons to this file.")
]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Load the rest; the commit says how many are left out.")]


@reports_errors
def load(
    mode: Annotated[LoadMode, typer.Option("--mode", help="What happens to rows that are there.")],
    data: DataFiles = None,
    uri: Address = None,
    store: Store = None,
    nodes: NodeFiles = None,
    edges: EdgeFiles = None,
    branch: Branch = "main",
    from_: Annotated[
        str | None, typer.Option("--from", help="Fork the branch from this one if it is missing.")
    ] = None,
    message: Message = None,
    max_errors: MaxErrors = None,
    bad_records: BadRecords = None,
    skip_bad: SkipBad = False,
    engine: Engine = EngineName.AUTO,
    master: Master = None,
    remote: Remote = None,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Load records as one commit: all of them, or nothing."""
    graph = open_graph(uri, store, read_only=False, actor=actor)
    done = _load(
        graph,
        data,
        mode,
        nodes=_typed(nodes),
        edges=_typed(edges),
        branch=branch,
        from_=from_,
        message=message,
        max_errors=max_errors,
        bad_records=bad_records,
        skip_bad=skip_bad,
        engine=engine.value,
        spark=remote or master,
    )
    _report(done, graph.address, as_json)


@reports_errors
def ingest(
    branch: Annotated[str, typer.Option("--branch", help="The branch to load into; forked if missing.")],
    data: DataFiles = None,
    uri: Address = None,
    store: Store = None,
    nodes: NodeFiles = None,
    edges: EdgeFiles = None,
    from_: Annotated[str, typer.Option("--from", help="The branch to fork from.")] = "main",
    mode: Annotated[
        LoadMode, typer.Option("--mode", help="What happens to rows that are there.")
    ] = LoadMode.MERGE,
    message: Message = None,
    max_errors: MaxErrors = None,
    bad_records: BadRecords = None,
    skip_bad: SkipBad = False,
    engine: Engine = EngineName.AUTO,
    master: Master = None,
    remote: Remote = None,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Load records into a branch of their own, for review."""
    graph = open_graph(uri, store, read_only=False, actor=actor)
    done = _load(
        graph,
        data,
        mode,
        nodes=_typed(nodes),
        edges=_typed(edges),
        branch=branch,
        from_=from_,
        message=message,
        max_errors=max_errors,
        bad_records=bad_records,
        skip_bad=skip_bad,
        engine=engine.value,
        spark=remote or master,
    )
    _report(done, graph.address, as_json)


def _load(graph: Graph, data: list[str] | None, mode: LoadMode, **options: Any) -> LoadResult:
    with progress() as listener:
        return graph.load(_data(data, options), mode=mode.value, listener=listener, **options)


def _data(names: list[str] | None, options: dict[str, Any]) -> bytes | str | list[str] | None:
    """What the user named: standard input, one place, or several."""
    if not names:
        if options["nodes"] or options["edges"]:
            return None
        raise typer.BadParameter("give --data PATH, or --nodes TYPE=PATH and --edges TYPE=PATH")
    if "-" in names:
        if len(names) > 1:
            raise typer.BadParameter("`-` is standard input, and cannot be loaded together with files")
        return sys.stdin.buffer.read()
    return names[0] if len(names) == 1 else names


def _typed(given: list[str] | None) -> dict[str, str]:
    typed: dict[str, str] = {}
    for entry in given or ():
        name, equals, path = entry.partition("=")
        if not equals or not name or not path:
            raise typer.BadParameter(f"'{entry}' is not written TYPE=PATH")
        if name in typed:
            raise typer.BadParameter(f"{name} is given twice")
        typed[name] = path
    return typed


def _report(done: LoadResult, address: str, as_json: bool) -> None:
    if as_json:
        print_json({"uri": address, **done.as_json()})
        return
    if done.commit is None:
        print_text("there was nothing to load; no commit was made")
        return
    created = f" (forked from {done.base_branch})" if done.branch_created else ""
    print_text(
        styled("committed ", "green"),
        f"{done.total_entities} records on {done.branch}{created} as {done.commit.graph_commit_id}",
    )
    for kind, counts in (("node", done.nodes), ("edge", done.edges)):
        for name, count in counts.items():
            print_text(f"  {kind} {name}: {count}")
    if done.edges_without_identity:
        edges = counted(done.edges_without_identity, "edge")
        print_text(f"  {edges} added without an identity: loading the same again adds them again, unless their")
        print_text("  records bring an id or their type says `@key(src, dst)`")
    if done.commit.message:
        print_text(f"  {done.commit.message}")
