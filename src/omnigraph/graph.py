"""The graph: what a program holds in its hand."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, Unpack

from omnigraph.arguments import (
    LONGEST_MESSAGE,
    number_argument,
    optional_text,
    seconds_argument,
    text_argument,
)
from omnigraph.blobs import GraphWithBlobs
from omnigraph.bulk.engines import Engine
from omnigraph.keywords import (
    At,
    EngineName,
    LoadKeywords,
    LoadMode,
    commit_id_argument,
    engine_named,
    mode_named,
    shown_state,
)
from omnigraph.lang.query.compile import CompiledMutation, compile_mutation, compile_query, compile_read
from omnigraph.lang.schema.lookup import table_keys
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.refs.tags import Tag
from omnigraph.manifest.state import MAIN
from omnigraph.policy.actions import Action
from omnigraph.read.limits import Cancellation, Limits
from omnigraph.read.result.result import Result, Target
from omnigraph.upkeep import MaintainedGraph

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from omnigraph.bulk.embed.requests import EmbedResult
    from omnigraph.bulk.export.job import ExportResult
    from omnigraph.bulk.load.inputs import Data
    from omnigraph.bulk.load.options import LoadResult
    from omnigraph.bulk.load.sources.description import Location, Rows
    from omnigraph.bulk.load.sources.finding import Sources
    from omnigraph.bulk.load.staging.held import BegunRows
    from omnigraph.bulk.runner import Listener
    from omnigraph.lang.query.lint import LintReport
    from omnigraph.read.requests import Reader
    from omnigraph.spark.graph import SparkGraph
    from omnigraph.write.evolution.apply import SchemaResult
    from omnigraph.write.evolution.plan import SchemaPlan, SchemaRequest
    from omnigraph.write.mutations.requests import MutationResult
    from omnigraph.write.reservations import Reservations


class Graph(MaintainedGraph, GraphWithBlobs):
    """A typed property graph with branches and history. Safe to share between threads."""

    def query(
        self,
        text: str,
        params: Mapping[str, object] | None = None,
        *,
        name: str | None = None,
        branch: str | None = None,
        at: At = None,
        exact: bool = False,
        timeout: float | None = None,
        memory_limit: int | None = None,
        cancellation: Cancellation | None = None,
        engine: EngineName = "auto",
        spark: SparkSession | str | None = None,
    ) -> Result:
        """Run a read query on the newest state of a branch, or ``at`` a commit, tag, manifest version,
        moment or snapshot.

        ``exact`` compares all vectors where an index of a large table would find nearly all of the nearest ones.
        ``timeout`` in seconds and ``memory_limit`` in bytes stop a query that takes more; a ``cancellation`` stops
        it from another thread. On Spark, which a session or an address chooses as well as the engine's name, it
        gives the same rows, also of graphs that one machine cannot hold.
        """
        if timeout is not None:
            seconds_argument("timeout", timeout)
        if memory_limit is not None:
            number_argument("memory_limit", memory_limit)
        state = self.snapshot(branch, at=at)
        compiled = compile_read(text_argument("text", text), state.catalog, optional_text("name", name))
        self._allow_tables(Action.READ, state.branch, compiled.operation.reads)
        chosen = engine_named(engine)
        if chosen is Engine.SPARK or (chosen is Engine.AUTO and spark is not None):
            from omnigraph.spark.queries.requests import Allowed, query_on_spark

            allowed = Allowed(timeout, memory_limit, cancellation)
            rows_per_task = self._settings.bulk.rows_per_task
            table = query_on_spark(state, compiled, params, allowed, self._embedder, spark, rows_per_task)
        else:
            limits = Limits(compiled.name, timeout, memory_limit, cancellation)
            table, _ = self._reading(exact).run(compiled, params, state, limits)
        target = Target(state.branch, None) if at is None else Target(None, shown_state(at))
        return Result(compiled.name, target, state.graph_commit_id, table)

    def entity(
        self,
        type: str,  # noqa: A002  what it is called
        id: str,  # noqa: A002
        *,
        branch: str | None = None,
        at: At = None,
    ) -> dict[str, Any] | None:
        """One node or edge by its type and id, with all its properties; None if there is none.

        The id of a node whose type has a key is the value of that key. `node:T` and `edge:T` tell apart types of
        the same name.
        """
        from omnigraph.read.entities import entity_key, find_entity

        state = self.snapshot(branch, at=at)
        table_key = entity_key(state.catalog, text_argument("type", type))
        self._allow(Action.READ, state.branch, types=[table_key])
        return find_entity(self._repository.tables, state, table_key, text_argument("id", id))

    def check(self, text: str) -> LintReport:
        """Check every query of a text against the schema: what is wrong, with places and remedies, and what is
        doubtful. Nothing is run and nothing is raised."""
        from omnigraph.lang.query.lint import lint_queries

        return lint_queries(text_argument("text", text), self.catalog, "<query>", self.address)

    def explain(
        self,
        text: str,
        params: Mapping[str, object] | None = None,
        *,
        name: str | None = None,
        branch: str | None = None,
        at: At = None,
        exact: bool = False,
        analyze: bool = False,
    ) -> str:
        """How a query finds its rows: its steps, and the access path of each. Analysed, it is run, and the rows
        and the time of each step are shown. Without values for its parameters, and for a mutation, they are those
        of the language."""
        from omnigraph.lang.query.explain import explain_ir
        from omnigraph.read.requests import shown_plan

        state = self.snapshot(branch, at=at)
        compiled = compile_query(text_argument("text", text), state.catalog, optional_text("name", name))
        self._allow_tables(Action.READ, state.branch, compiled.operation.reads)
        unbound = params is None and any(not kind.nullable for kind in compiled.params.values())
        if isinstance(compiled, CompiledMutation) or (unbound and not analyze):
            return explain_ir(compiled.ir)
        if not analyze:
            trace = self._reading(exact).plan(compiled, params, state)
            return shown_plan(compiled.ir, trace, analyze=False)
        _, trace = self._reading(exact).run(compiled, params, state, Limits(compiled.name))
        return shown_plan(compiled.ir, trace, analyze=True)

    def _allow_tables(
        self, action: Action, branch: str, tables: Iterable[tuple[str, str]], actor: str | None = None
    ) -> None:
        """Ask the policy about the tables that a compiled query reads or writes."""
        if self._guard is not None:
            self._allow(action, branch, types=[f"{kind}:{name}" for kind, name in tables], actor=actor)

    def _reading(self, exact: bool) -> Reader:
        """The reader of this graph, or the same one with exact searches."""
        return self._reader.exact() if exact else self._reader

    def mutate(
        self,
        text: str,
        params: Mapping[str, object] | None = None,
        *,
        name: str | None = None,
        branch: str | None = None,
        actor: str | None = None,
        if_commit: str | None = None,
        graph_commit_id: str | None = None,
    ) -> MutationResult:
        """Run a mutation as one atomic commit: all of it is there afterwards, or nothing.

        ``if_commit`` makes it conditional on the branch being at that commit. ``graph_commit_id`` is the id that
        the commit gets: a repeated mutation with the same id raises CommitDone.
        """
        self._repository.require_process()  # first: a forked child may wait for an import of its parent for ever
        from omnigraph.lang.parameters import bind_parameters
        from omnigraph.write.committing.entry import enter
        from omnigraph.write.mutations.blobs import copied_blobs
        from omnigraph.write.mutations.requests import mutate
        from omnigraph.write.protocol import repeated_if_schema_changed

        self._allow(Action.CHANGE, self._named(branch), actor=actor)

        def run() -> MutationResult:
            repository = self._repository
            entry = enter(repository, repository.branches.find(self._named(branch)))
            catalog = entry.snapshot.catalog
            query = compile_mutation(text_argument("text", text), catalog, optional_text("name", name))
            self._allow_tables(Action.CHANGE, entry.branch.name, query.operation.writes, actor)
            values = bind_parameters(query.name, query.params, params)
            repository.require_writable()
            copied = copied_blobs(query.ir, values, catalog, self._blob_sources)
            return mutate(
                repository,
                entry,
                query,
                values,
                actor=self._who(actor),
                if_commit=optional_text("if_commit", if_commit),
                graph_commit_id=commit_id_argument(graph_commit_id),
                embedder=self._embedder(),
                settings=self._settings.write,
                copied=copied,
            )

        return repeated_if_schema_changed(run)

    def load(
        self,
        data: Data | Sequence[Location] | None = None,
        *,
        mode: LoadMode,
        nodes: Mapping[str, Rows] | None = None,
        edges: Mapping[str, Rows] | None = None,
        branch: str | None = None,
        from_: str | None = None,
        actor: str | None = None,
        message: str | None = None,
        engine: EngineName = "auto",
        spark: SparkSession | str | None = None,
        max_errors: int | None = None,
        bad_records: str | os.PathLike[str] | None = None,
        skip_bad: bool = False,
        graph_commit_id: str | None = None,
        listener: Listener | None = None,
        cancellation: Cancellation | None = None,
    ) -> LoadResult:
        """Load records as one atomic commit.

        ``data`` is JSON Lines (text, bytes), dictionaries, or files, directories and globs on disk or `s3://`;
        ``nodes`` and ``edges`` have rows by type: files of JSON Lines, CSV, Parquet or Arrow, tables, DataFrames,
        dictionaries, or a `Source`, which says more about them. Up to 256 MiB of files, and what this process
        holds, are loaded in it, larger files and Spark DataFrames on Spark; ``engine`` and ``spark`` override it.
        ``from_`` names the branch to fork from if the target is missing. ``max_errors`` stops after so many bad
        records, ``bad_records`` names a file for them, and ``skip_bad`` loads the rest. ``graph_commit_id`` is the
        id that the commit gets: a repeated load with the same id raises CommitDone.
        """
        repository = self._repository  # first: a forked child may wait for an import of its parent for ever
        from omnigraph.bulk.load.local import LoadData, load
        from omnigraph.bulk.load.options import LoadOptions
        from omnigraph.bulk.runner import LocalRunner

        self._allow_load(self._named(branch), optional_text("from_", from_), actor)
        repository.require_writable()
        options = LoadOptions(
            mode_named(mode),
            self._named(branch),
            optional_text("from_", from_),
            self._who(actor),
            optional_text("message", message, LONGEST_MESSAGE),
            max_errors,
            None if bad_records is None else os.fspath(bad_records),
            skip_bad,
            graph_commit_id=commit_id_argument(graph_commit_id),
            settings=self._settings.bulk,
            blobs=self._blob_sources,
        )

        def on_spark(sources: Sources, held: Sequence[BegunRows]) -> LoadResult:
            from omnigraph.spark.choice import SparkChoice
            from omnigraph.spark.loads.requests import load_on_spark

            choice = SparkChoice(spark, listener, cancellation)
            return load_on_spark(repository, sources, held, options, self._embedder(), choice)

        given = LoadData(data, nodes or {}, edges or {}, engine_named(engine), spark is not None)
        start = partial(LocalRunner, listener, cancellation)
        return load(repository, given, options, self._embedder(), start, on_spark)

    def _allow_load(self, branch: str, parent: str | None, actor: str | None) -> None:
        """Ask the policy about a load: which types it changes is known when its records are read."""
        if self._guard is None:
            return
        self._allow(Action.CHANGE, branch, actor=actor)
        if parent is not None and branch.strip() not in self._repository.branches.names():
            self._allow(Action.BRANCH_CREATE, parent, branch, actor=actor)
            self._allow(Action.READ, parent, actor=actor)

    def ingest(
        self,
        /,
        data: Data | Sequence[Location] | None,
        branch: str,
        *,
        from_: str = MAIN,
        mode: LoadMode = "merge",
        **options: Unpack[LoadKeywords],
    ) -> LoadResult:
        """Load records into a branch that is forked if it does not exist; the options are those of `load`."""
        return self.load(data, mode=mode, branch=branch, from_=from_, **options)

    def plan_schema(
        self,
        schema: str,
        *,
        branch: str | None = None,
        fill: Mapping[str, object] | None = None,
        allow_data_loss: bool = False,
    ) -> SchemaPlan:
        """What it takes to give a branch another schema: its steps, and the work on each table."""
        from omnigraph.write.evolution.plan import plan_schema

        self._allow(Action.READ, self._named(branch))
        request = self._schema_request(schema, branch, fill, allow_data_loss)
        return plan_schema(self._repository, request)

    def apply_schema(
        self,
        schema: str,
        *,
        branch: str | None = None,
        fill: Mapping[str, object] | None = None,
        allow_data_loss: bool = False,
        actor: str | None = None,
        message: str | None = None,
        if_commit: str | None = None,
        graph_commit_id: str | None = None,
        engine: EngineName = "auto",
        spark: SparkSession | str | None = None,
        listener: Listener | None = None,
        cancellation: Cancellation | None = None,
    ) -> SchemaResult:
        """Give a branch another schema, as one commit; its rows are kept, and older states keep their schema.

        ``fill`` has values for existing rows, by `Type.property`, where a property is new or becomes required; a
        text that begins with `$` names another property. Rows that break a new rule are listed in a
        ConstraintViolation, and steps that are not possible in a MigrationError.

        Columns that have to be computed, of up to 128 MiB a table, are computed in the calling thread, larger ones
        by tasks, on Spark if there is one; ``engine`` overrides that.
        """
        from omnigraph.bulk.evolution.job import apply_large_schema
        from omnigraph.spark.choice import SparkChoice
        from omnigraph.write.evolution.branches import finish_intent

        self._allow(Action.SCHEMA_APPLY, None, self._named(branch), actor=actor)
        self._repository.require_writable()
        finish_intent(self._repository)
        request = self._schema_request(schema, branch, fill, allow_data_loss)
        request = replace(
            request,
            actor=self._who(actor),
            message=optional_text("message", message, LONGEST_MESSAGE),
            if_commit=optional_text("if_commit", if_commit),
            graph_commit_id=commit_id_argument(graph_commit_id),
        )
        runners = SparkChoice(spark, listener, cancellation).or_local(engine_named(engine))
        return apply_large_schema(self._repository, request, runners, self._settings.bulk)

    def apply_schema_to_all(
        self,
        schema: str,
        *,
        fill: Mapping[str, object] | None = None,
        allow_data_loss: bool = False,
        actor: str | None = None,
        message: str | None = None,
    ) -> list[SchemaResult]:
        """Give every branch another schema: all of them get it, each by a commit of its own, or none does.

        No other write is committed meanwhile. If a branch cannot follow, SchemaRefused names it.
        """
        from omnigraph.write.evolution.branches import apply_to_all

        if self._guard is not None:
            for name in self._repository.branches.names():
                self._allow(Action.SCHEMA_APPLY, None, name, actor=actor)
        self._repository.require_writable()
        request = replace(
            self._schema_request(schema, None, fill, allow_data_loss),
            actor=self._who(actor),
            message=optional_text("message", message, LONGEST_MESSAGE),
        )
        return apply_to_all(self._repository, request, fill or {})

    def _schema_request(
        self, schema: str, branch: str | None, fill: Mapping[str, object] | None, allow_data_loss: bool
    ) -> SchemaRequest:
        from omnigraph.lang.schema.resolve import compile_schema
        from omnigraph.write.evolution.fills import parse_fills
        from omnigraph.write.evolution.plan import SchemaRequest

        return SchemaRequest(
            self._repository.branches.find(self._named(branch)),
            compile_schema(text_argument("schema", schema), "<schema>"),
            parse_fills(fill or {}),
            allow_data_loss,
        )

    def export(
        self,
        target: str | os.PathLike[str] | BinaryIO,
        *,
        format: Literal["jsonl", "parquet"] = "jsonl",  # noqa: A002  what it is called
        branch: str | None = None,
        at: At = None,
        types: Iterable[str] | None = None,
        ordered: bool = False,
        force: bool = False,
        engine: EngineName = "auto",
        spark: SparkSession | str | None = None,
        storage_options: Mapping[str, str] | None = None,
        listener: Listener | None = None,
        cancellation: Cancellation | None = None,
    ) -> ExportResult:
        """Write one snapshot, or some types of it, as records that `load` takes back.

        The target is a file, a binary stream, or, if it ends in `/`, a directory of parts; Parquet is always a
        directory. ``ordered`` sorts each type by id, so that equal graphs give equal bytes; ``force`` replaces an
        earlier export. ``storage_options`` are those of a target on S3.
        """
        from omnigraph.bulk.export import job as exports
        from omnigraph.formats.format import export_format
        from omnigraph.spark.choice import SparkChoice

        state = self._state(Action.EXPORT, branch, at)
        keys = table_keys(state.catalog, types)
        self._allow(Action.EXPORT, state.branch, types=keys)
        request = exports.ExportRequest(
            state,
            keys,
            export_format(format),
            ordered,
            SparkChoice(spark, listener, cancellation).or_local(engine_named(engine)),
            force,
            storage_options,
            self._settings.bulk,
        )
        return exports.export(request, target)

    def spark(
        self, spark: SparkSession | str | None = None, *, branch: str | None = None, at: At = None
    ) -> SparkGraph:
        """One snapshot as Spark DataFrames, in the session or at the address given, or in the active session."""
        from omnigraph.bulk.pieces import require_shared
        from omnigraph.spark.graph import SparkGraph
        from omnigraph.spark.sessions import spark_session

        state = self._state(Action.EXPORT, branch, at)
        self._allow(Action.EXPORT, state.branch, types=table_keys(state.catalog))
        require_shared(state.address)
        return SparkGraph(spark_session(spark), state, self._embedder, self._settings.bulk)

    def stream(
        self,
        frame: DataFrame,
        *,
        name: str,
        checkpoint: str | os.PathLike[str],
        type: str | None = None,  # noqa: A002  what it is called
        edge: str | None = None,
        records: bool = False,
        mode: Literal["merge", "append"] = "merge",
        branch: str | None = None,
        available_now: bool = False,
        processing_time: str | None = None,
        actor: str | None = None,
    ) -> StreamingQuery:
        """Start to write a streaming DataFrame to a branch, each micro-batch as one commit, exactly once.

        Its rows are nodes of ``type``, edges of type ``edge``, or, with ``records``, JSON records in a column
        `value`. Started again with the same name and checkpoint, it goes on where it stopped.
        """
        from omnigraph.spark.streaming.stream import stream

        self._allow_stream(self._named(branch), type, edge, actor)
        return stream(
            self._repository,
            frame,
            name=name,
            checkpoint=checkpoint,
            type=type,
            edge=edge,
            records=records,
            mode=mode,
            branch=self._named(branch),
            available_now=available_now,
            processing_time=processing_time,
            actor=self._who(actor),
            embedder=self._embedder(),
            settings=self._settings,
        )

    def _allow_stream(self, branch: str, node: str | None, edge: str | None, actor: str | None) -> None:
        """Ask the policy about a stream once, before it starts: records could be of any type."""
        if self._guard is None:
            return
        self._allow(Action.CHANGE, branch, actor=actor)
        catalog = self._repository.snapshot(self._repository.branches.find(branch)).catalog
        named = [name for name in (node, edge) if name is not None]
        self._allow(Action.CHANGE, branch, types=table_keys(catalog, named or None), actor=actor)

    def embed(
        self,
        *,
        branch: str | None = None,
        types: Iterable[str] | None = None,
        properties: Iterable[str] | None = None,
        reembed: bool = False,
        actor: str | None = None,
        engine: EngineName = "auto",
        spark: SparkSession | str | None = None,
        listener: Listener | None = None,
        cancellation: Cancellation | None = None,
    ) -> EmbedResult:
        """Compute the `@embed` vectors that rows lack though they have the text, as one commit.

        ``reembed`` computes also those that are there, for another model. Up to 20,000 rows are filled in this
        process, more on Spark; ``engine`` overrides that.
        """
        from omnigraph.bulk.embed.job import embed
        from omnigraph.bulk.embed.requests import EmbedRequest, embed_targets, required_client
        from omnigraph.spark.choice import SparkChoice

        self._allow(Action.CHANGE, self._named(branch), actor=actor)
        self._repository.require_writable()
        found = self._repository.branches.find(self._named(branch))
        state = self._repository.snapshot(found)
        targets = embed_targets(state.catalog, types, properties, recompute=reembed)
        self._allow(Action.CHANGE, found.name, types=[each.node.table_key for each in targets], actor=actor)
        client = required_client(self._embedder(), targets)
        runners = SparkChoice(spark, listener, cancellation).or_local(engine_named(engine))
        request = EmbedRequest(found, state, targets, self._who(actor), self._settings.bulk)
        return embed(self._repository, request, client, runners)


def reservations(graph: Graph) -> Reservations:
    """The ids that writes with idempotency keys have reserved for their commits, for a server of the graph."""
    from omnigraph.write.reservations import Reservations

    return Reservations(graph._repository)


def create_branch_for(
    graph: Graph, request: str | None, name: str, from_: str | None, actor: str | None
) -> Branch:
    """`Graph.create_branch` of a server, for the id that its caller has reserved."""
    return graph._create_branch(name, from_, actor, request)


def tag_for(graph: Graph, request: str | None, name: str, at: At, actor: str | None) -> Tag:
    """`Graph.tag` of a server, for the id that its caller has reserved."""
    return graph._tag(name, at, actor, request)


def with_instead(graph: Graph, instead: Mapping[Action, Action | None]) -> Graph:
    """The same graph, whose policy is asked about other actions than those that are done, for a server."""
    guard = graph._guard
    return graph if guard is None else graph._view(graph._branch, graph._actor, replace(guard, instead=instead))
