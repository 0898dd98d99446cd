"""`omnigraph serve`: graphs for programs that speak HTTP."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from omnigraph.cli.output import print_warning, reports_errors
from omnigraph.cli.stores import Store, resolve_store
from omnigraph.errors import MissingExtra, RequestError

UNAUTHENTICATED = "OMNIGRAPH_UNAUTHENTICATED"


@reports_errors
def serve(
    place: Annotated[
        str | None, typer.Argument(help="The graph, or a directory of *.omni graphs.", show_default=False)
    ] = None,
    store: Store = None,
    host: Annotated[str, typer.Option("--host", help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; 0 takes a free one.")] = 8080,
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
        int, typer.Option("--writes-per-actor", min=1, help="Writes of one actor at a time; more get a 429.")
    ] = 16,
    load_bytes: Annotated[
        int, typer.Option("--load-bytes", min=1, help="How many bytes of records one load may have.")
    ] = 32 << 20,
    shutdown_seconds: Annotated[
        float, typer.Option("--shutdown-seconds", min=0, help="How long to wait for requests when it stops.")
    ] = 30,
) -> None:
    """Serve a graph, or all graphs of a directory, over HTTP.

    Prints where it listens once it does. SIGINT and SIGTERM stop it: it finishes the writes that it has begun.
    SIGHUP makes it read the stored queries and the policy again.
    """
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingExtra(error.name or "starlette", "server", "the server") from None
    from omnigraph.server.answers.stored import read_stored
    from omnigraph.server.application import Server
    from omnigraph.server.graphs import addresses, open_graphs
    from omnigraph.server.observing.logs import note_decision
    from omnigraph.server.observing.traces import configured_traces
    from omnigraph.server.policies import read_policies
    from omnigraph.server.reloading import OperatorFiles
    from omnigraph.server.run import Listening, run_server, run_workers
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
    listening, inherited = Listening(host, port, tls_cert, tls_key), inherited_socket()
    if workers > 1 and inherited is None:
        run_workers(listening, workers, sys.argv[1:])
        return
    found = addresses(resolve_store(place, store), graph)
    rules = None if policy is None else read_policies(policy, found.keys(), note_decision)
    own = None if rules is None else rules.graphs
    engine = Settings() if blob_sources is None else Settings(blobs=BlobSettings(allow=tuple(blob_sources)))
    served = open_graphs(found, read_only=read_only, require_all=require_all_graphs, policies=own, settings=engine)
    for name, reason in served.unusable.items():
        print_warning(f"graph '{name}' is not served: {reason}")
    stored = {} if queries is None else read_stored(queries, served.graphs)
    settings = ServerSettings(
        actor_writes=writes_per_actor, load_bytes=load_bytes, shutdown_seconds=shutdown_seconds
    )
    server = Server(served, tokens, settings, stored=stored, policies=rules, traces=configured_traces(os.environ))
    run_server(server, listening, inherited, OperatorFiles(queries, policy, rules))
