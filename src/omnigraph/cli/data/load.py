"""`omnigraph load` and `omnigraph ingest`: records in, by the file or by the cluster."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from omnigraph.cli.output import Json, counted, print_json, print_text, reports_errors, styled
from omnigraph.cli.progress import watched
from omnigraph.cli.scope.options import said
from omnigraph.cli.spark import Engine, EngineName, Master, Remote
from omnigraph.cli.stores import Actor, Address, Store, agree, open_target, require_consent, resolve_target
from omnigraph.errors import RequestError

if TYPE_CHECKING:
    from omnigraph.bulk.load.options import LoadResult
    from omnigraph.bulk.load.sources.description import Source
    from omnigraph.bulk.load.sources.mapping import LoadMap
    from omnigraph.cli.scope.target import Target
    from omnigraph.graph import Graph

MAIN: Final = "main"


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
        help="A file, directory or glob, on disk or s3://; repeatable. JSON Lines whose records name their types, "
        "or Parquet, CSV and Arrow below nodes/TYPE and edges/TYPE; also .gz and .zst. `-` reads standard input.",
    ),
]
NodeFiles = Annotated[
    list[str] | None,
    typer.Option(
        "--node",
        "--nodes",
        metavar="TYPE=PATH[:PROPERTY=COLUMN,…]",
        help="Files with nodes of one type, as Person=people.csv; repeatable.",
    ),
]
EdgeFiles = Annotated[
    list[str] | None,
    typer.Option(
        "--edge",
        "--edges",
        metavar="TYPE=PATH[:from=COLUMN,to=COLUMN,…]",
        help="Files with edges of one type, as Knows=knows.csv:from=a,to=b; repeatable.",
    ),
]
MapFile = Annotated[
    str | None,
    typer.Option("--map", metavar="FILE", help="A YAML file that says which files and columns are which types."),
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
    map_file: MapFile = None,
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
    sources = _sources(data, nodes, edges, map_file)
    graph = _opened(resolve_target(uri, store), mode, branch, actor)
    done = _load(
        graph,
        sources,
        mode,
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
    map_file: MapFile = None,
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
    sources = _sources(data, nodes, edges, map_file)
    graph = _opened(resolve_target(uri, store), mode, branch, actor)
    done = _load(
        graph,
        sources,
        mode,
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


def _load(graph: Graph, sources: LoadMap, mode: LoadMode, **options: Any) -> LoadResult:
    if sources.nodes or sources.edges:
        sources.check(graph.snapshot(_giver(graph, options)).catalog)
    given = _data(sources)
    nodes, edges = _plain(sources.nodes), _plain(sources.edges)
    with watched() as job:
        return graph.load(given, mode=mode.value, nodes=nodes, edges=edges, **job, **options)


def _giver(graph: Graph, options: dict[str, Any]) -> str:
    """The branch whose schema the records have to fit."""
    known = {branch.name for branch in graph.branches()}
    branch: str = options["branch"]
    return branch if branch in known else options["from_"] or branch


def _sources(
    data: list[str] | None, nodes: list[str] | None, edges: list[str] | None, map_file: str | None
) -> LoadMap:
    """Everything the user named, in whichever way; each type once."""
    from omnigraph.bulk.load.sources.mapping import LoadMap, parse_typed, read_map

    found = LoadMap("<map>") if map_file is None else read_map(map_file)
    typed = {"nodes": dict(found.nodes), "edges": dict(found.edges)}
    lines = dict(found.lines)
    for section, entries in (("nodes", nodes), ("edges", edges)):
        for entry in entries or ():
            try:
                name, source = parse_typed(entry)
            except RequestError as error:
                raise typer.BadParameter(str(error)) from None
            if name in typed[section]:
                raise typer.BadParameter(f"{name} is given twice")
            typed[section][name] = source
            lines[f"{section}.{name}"] = 0
    for path in data or ():
        if path.lower().endswith((".yaml", ".yml")):
            raise typer.BadParameter(f"'{path}' is no data; a mapping file is given as --map {path}")
    everything = LoadMap(found.path, (*found.data, *(data or ())), typed["nodes"], typed["edges"], lines)
    if not everything.data and not everything.nodes and not everything.edges:
        raise typer.BadParameter("give --data PATH, --node TYPE=PATH and --edge TYPE=PATH, or --map FILE")
    return everything


def _plain(sources: Mapping[str, Source]) -> dict[str, Any]:
    """Sources as a load takes them: a path where there is no more to say about it."""
    from omnigraph.bulk.load.sources.description import Source

    return {name: each.data if each == Source(each.data) else each for name, each in sources.items()}


def _data(sources: LoadMap) -> bytes | str | list[str] | None:
    """The records that name their types themselves: standard input, one place, or several."""
    names = list(sources.data)
    if "-" in names:
        if len(names) > 1 or sources.nodes or sources.edges:
            raise typer.BadParameter("`-` is standard input, and cannot be loaded together with files")
        return sys.stdin.buffer.read()
    return None if not names else names[0] if len(names) == 1 else names


def _opened(target: Target, mode: LoadMode, branch: str, actor: str | None) -> Graph:
    """The graph to load into. To overwrite rows of main, or of one that is not on this machine, takes consent."""
    if mode is LoadMode.OVERWRITE:
        require_consent(target, False, "overwrite rows")
    graph = open_target(target, read_only=False, actor=actor)
    if mode is LoadMode.OVERWRITE and target.is_local and branch == MAIN and not said().get("yes"):
        rows = sum(pin.row_count for pin in graph.snapshot(MAIN).tables.values())
        if rows:
            agree(f"main has {counted(rows, 'row')}, and the types that are loaded lose theirs")
    return graph


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
        f"{counted(done.total_entities, 'record')} on {done.branch}{created} as {done.commit.graph_commit_id}",
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
