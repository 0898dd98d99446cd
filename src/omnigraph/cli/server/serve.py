"""`omnigraph serve`: graphs for programs that speak HTTP."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.output import reports_errors
from omnigraph.cli.scope.config import read_config
from omnigraph.cli.scope.options import said
from omnigraph.cli.stores import Store, resolve_store
from omnigraph.errors import MissingExtra, RequestError

if TYPE_CHECKING:
    from omnigraph.cluster.state.places import ClusterPlace

UNAUTHENTICATED = "OMNIGRAPH_UNAUTHENTICATED"


@reports_errors
def serve(
    place: Annotated[
        str | None, typer.Argument(help="The graph, or a directory of *.omni graphs.", show_default=False)
    ] = None,
    store: Store = None,
    host: Annotated[str, typer.Option("--host", help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; 0 takes a free one.")] = 8080,
    bind: Annotated[
        str | None,
        typer.Option("--bind", metavar="HOST:PORT", help="Both in one; takes the place of --host and --port."),
    ] = None,
    graph: Annotated[
        str | None, typer.Option("--graph", help="The name of a single graph. Default: default.")
    ] = None,
    tokens_file: Annotated[
        Path | None,
        typer.Option("--tokens-file", help='JSON with a token for each actor, or its hash: {"ada": "sha256:…"}.'),
    ] = None,
    unauthenticated: Annotated[
        bool,
        typer.Option("--unauthenticated", help="Take requests without tokens: every caller may do all."),
    ] = False,
    queries: Annotated[
        Path | None,
        typer.Option("--queries", help="A folder of *.gq files with stored queries, invoked by their names."),
    ] = None,
    policy: Annotated[
        Path | None,
        typer.Option("--policy", help="A policy.yaml that says who may do what, or a folder of them for graphs."),
    ] = None,
    blob_sources: Annotated[
        list[str] | None,
        typer.Option(
            "--blob-source",
            help="Where blobs may be copied from, as s3://bucket/prefix/ or file:///data/; repeatable.",
        ),
    ] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Refuse writes.")] = False,
    require_all_graphs: Annotated[
        bool, typer.Option("--require-all-graphs", help="Do not start if a graph of the directory is damaged.")
    ] = False,
    workers: Annotated[
        int, typer.Option("--workers", min=1, max=64, help="How many processes serve, behind one address.")
    ] = 1,
    tls_cert: Annotated[
        Path | None, typer.Option("--tls-cert", help="The file of the certificate, to speak HTTPS.")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option("--tls-key", help="The file of the certificate's key.")] = None,
    writes_per_actor: Annotated[
        int,
        typer.Option(
            "--writes-per-actor",
            min=1,
            envvar="OMNIGRAPH_PER_ACTOR_INFLIGHT_MAX",
            help="Writes of one actor at a time; more get a 429.",
        ),
    ] = 16,
    bytes_per_actor: Annotated[
        int,
        typer.Option(
            "--bytes-per-actor",
            min=1,
            envvar="OMNIGRAPH_PER_ACTOR_BYTES_MAX",
            help="Bytes in the writes of one actor at a time; more get a 429.",
        ),
    ] = 4 << 30,
    load_bytes: Annotated[
        int, typer.Option("--load-bytes", min=1, help="How many bytes of records one load may have.")
    ] = 32 << 20,
    shutdown_seconds: Annotated[
        float, typer.Option("--shutdown-seconds", min=0, help="How long to wait for requests when it stops.")
    ] = 30,
) -> None:
    """Serve a graph, all graphs of a directory, or with --cluster those of a cluster, over HTTP.

    Prints where it listens once it does. SIGINT and SIGTERM stop it: it finishes the writes that it has begun.
    SIGHUP makes it read the stored queries and the policy again, or the ledger of the cluster.
    """
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingExtra(error.name or "starlette", "server", "the server") from None
    from omnigraph.cluster.serving import read_servable
    from omnigraph.server.answers.stored import read_stored
    from omnigraph.server.application import Server
    from omnigraph.server.clusters import ClusterFiles, open_cluster
    from omnigraph.server.graphs import addresses, open_graphs
    from omnigraph.server.observing.logs import note_decision, write_log
    from omnigraph.server.observing.traces import configured_traces
    from omnigraph.server.policies import read_policies
    from omnigraph.server.reloading import OperatorFiles, Reloaded
    from omnigraph.server.run import Listening, host_and_port, run_server, run_workers
    from omnigraph.server.settings import ServerSettings
    from omnigraph.server.tokens import read_tokens
    from omnigraph.server.workers import inherited_socket
    from omnigraph.settings import BlobSettings, Settings

    if (tls_cert is None) != (tls_key is None):
        raise typer.BadParameter("--tls-cert and --tls-key belong together")
    tokens = read_tokens(tokens_file, os.environ)
    if tokens is None and not unauthenticated and os.environ.get(UNAUTHENTICATED) != "1":
        raise RequestError(
            "a server without tokens would let everybody read and write; give --tokens-file FILE, or say "
            "--unauthenticated"
        )
    if policy is not None and tokens is None:
        raise RequestError("a policy has to know who calls; give --tokens-file FILE, or leave out --policy")
    listening = Listening(*((host, port) if bind is None else host_and_port(bind)), tls_cert, tls_key)
    inherited = inherited_socket()
    if workers > 1 and inherited is None:
        run_workers(listening, workers, sys.argv[1:])
        return
    settings = ServerSettings(
        actor_writes=writes_per_actor,
        actor_bytes=bytes_per_actor,
        load_bytes=load_bytes,
        shutdown_seconds=shutdown_seconds,
    )
    traces = configured_traces(os.environ)
    cluster = _cluster_named(place, store, graph)
    files: Reloaded
    if cluster is not None:
        if queries is not None or policy is not None or blob_sources is not None:
            raise typer.BadParameter("the cluster itself says what --queries, --policy and --blob-source say")
        found = read_servable(cluster, os.environ, graph)
        if found.has_policies and tokens is None:
            raise RequestError("the cluster has a policy, which has to know who calls; give --tokens-file FILE")
        opened = open_cluster(found, note_decision, read_only=read_only, require_all=require_all_graphs)
        served, rules = opened.served, opened.policies
        files = ClusterFiles(cluster, note_decision, rules, graph)
        server = Server(
            served, tokens, settings, stored=opened.stored, policies=rules, traces=traces, is_managed=True
        )
    else:
        named = addresses(resolve_store(place, store), graph)
        rules = None if policy is None else read_policies(policy, named.keys(), note_decision)
        own = None if rules is None else rules.graphs
        engine = Settings() if blob_sources is None else Settings(blobs=BlobSettings(allow=tuple(blob_sources)))
        served = open_graphs(
            named, read_only=read_only, require_all=require_all_graphs, policies=own, settings=engine
        )
        stored = {} if queries is None else read_stored(queries, served.graphs)
        files = OperatorFiles(queries, policy, rules)
        server = Server(served, tokens, settings, stored=stored, policies=rules, traces=traces)
    for name, reason in served.unusable.items():
        write_log("graph_not_served", graph=name, reason=str(reason))
    run_server(server, listening, inherited, files)


def _cluster_named(place: str | None, store: str | None, graph: str | None) -> ClusterPlace | None:
    """The cluster that is to be served; None if a graph is, or a folder of graphs that no cluster manages."""
    from omnigraph.cluster.state.ledger import require_ledger
    from omnigraph.cluster.state.places import is_cluster, place_named

    named = said().get("cluster")
    if named is None:
        is_one = place is not None and store is None and "://" not in place and is_cluster(place)
        return place_named(place) if is_one and place is not None else None
    if place is not None or store is not None:
        return None  # two graphs are named, which is told as for every other verb
    root = read_config().clusters.get(named, named.rstrip("/"))
    if is_cluster(root):
        return place_named(root)
    if graph is None and not list(Path(root.removeprefix("file://")).glob("*.omni")):
        require_ledger(place_named(root))
    return None
