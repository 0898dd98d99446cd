"""A graph behind a server: the methods of `Graph` that do not need the store itself."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, BinaryIO, Final, Literal
from urllib.parse import quote

import pyarrow as pa

from omnigraph.arguments import optional_text, text_argument
from omnigraph.bulk.export.job import ExportResult
from omnigraph.bulk.load.inputs import Data, read_data
from omnigraph.bulk.load.options import LoadResult
from omnigraph.errors import (
    ConstraintViolation,
    ErrorGroup,
    ExportRefused,
    InvalidArgument,
    OmniError,
    RecordError,
)
from omnigraph.keywords import At, LoadMode, mode_named, shown_state
from omnigraph.lang.query.lint import LintReport, lint_queries
from omnigraph.manifest.state import MAIN
from omnigraph.messages.values import MEDIA_TYPE as VALUES
from omnigraph.read.result.result import Result, Target
from omnigraph.remote.blobs import RemoteBlobs
from omnigraph.remote.files import written
from omnigraph.remote.handle import refuse_direct
from omnigraph.remote.merging import RemoteMerging
from omnigraph.remote.parameters import json_parameters, sent_parameters
from omnigraph.remote.transport import ABOUT, NDJSON, encoded, request_headers
from omnigraph.remote.versions import RemoteVersions
from omnigraph.write.evolution.apply import SchemaResult
from omnigraph.write.evolution.plan import SchemaPlan
from omnigraph.write.mutations.requests import MutationResult

ARROW: Final = "application/vnd.apache.arrow.stream"
LARGEST_LOAD: Final = 32 << 20
"""Bytes of records that a server takes at once."""


class RemoteGraph(RemoteVersions, RemoteMerging, RemoteBlobs):
    """A graph of a server. Safe to share between threads. The actor of a write is the token's."""

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
        **direct: Any,
    ) -> Result:
        """Run a read query on the newest state of a branch, or ``at`` a commit, tag, manifest version or
        snapshot."""
        refuse_direct(direct)
        body = {
            "query": text_argument("text", text),
            "params": sent_parameters(text, name, params),
            "name": name,
            "exact": exact,
            "timeout": timeout,
            "memory_limit": memory_limit,
            **self._state(branch, at),
        }
        return self._result("/query", body, at)

    def _result(self, path: str, body: Mapping[str, Any], at: At) -> Result:
        """The result of a query, whose rows come as Arrow."""
        headers = {"Accept": ARROW, "Content-Type": "application/json"}
        with self._open.answered("POST", path, encoded(body), headers=headers) as answer:
            about = json.loads(answer.headers[ABOUT])
            read = answer.read(decode_content=True)
        table = pa.ipc.open_stream(io.BytesIO(read)).read_all()
        target = Target(about["target"].get("branch"), None) if at is None else Target(None, shown_state(at))
        return Result(about["query_name"], target, about["graph_commit_id"], table)

    def queries(self) -> list[dict[str, Any]]:
        """The stored queries of the graph: name, parameters, whether it is a mutation, and what it returns."""
        found: list[dict[str, Any]] = self._open.value("GET", "/queries")["queries"]
        return found

    def invoke(
        self, name: str, params: Mapping[str, object] | None = None, *, branch: str | None = None, at: At = None
    ) -> Result:
        """Run a stored query that reads."""
        body = {"params": json_parameters(params), "expect_mutation": False, **self._state(branch, at)}
        return self._result(f"/queries/{quote(text_argument('name', name), safe='')}", body, at)

    def invoke_mutation(
        self,
        name: str,
        params: Mapping[str, object] | None = None,
        *,
        branch: str | None = None,
        if_commit: str | None = None,
        graph_commit_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> MutationResult:
        """Run a stored query that writes."""
        path = f"/queries/{quote(text_argument('name', name), safe='')}"
        body = {"params": json_parameters(params), "expect_mutation": True, "branch": self._named(branch)}
        headers = request_headers(if_commit, graph_commit_id, idempotency_key)
        done: MutationResult = self._open.value("POST", path, body, headers=headers, is_write=True)
        return done

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
        """How a query finds its rows: its steps, and the access path of each."""
        body = {
            "query": text,
            "params": sent_parameters(text, name, params),
            "name": name,
            "exact": exact,
            "analyze": analyze,
            **self._state(branch, at),
        }
        return str(self._open.value("POST", "/explain", body)["plan"])

    def check(self, text: str) -> LintReport:
        """Check every query of a text against the schema. Nothing is run and nothing is raised."""
        return lint_queries(text_argument("text", text), self.catalog, "<query>", self.address)

    def entity(
        self,
        type: str,  # noqa: A002  what it is called
        id: str,  # noqa: A002
        *,
        branch: str | None = None,
        at: At = None,
    ) -> dict[str, Any] | None:
        """One node or edge by its type and id, with all its properties; None if there is none."""
        query = {"type": text_argument("type", type), "id": text_argument("id", id), **self._state(branch, at)}
        found = self._open.value("GET", "/entity", query=query)
        return None if found == {"entity": None} else found

    def mutate(
        self,
        text: str,
        params: Mapping[str, object] | None = None,
        *,
        name: str | None = None,
        branch: str | None = None,
        if_commit: str | None = None,
        graph_commit_id: str | None = None,
        idempotency_key: str | None = None,
        **direct: Any,
    ) -> MutationResult:
        """Run a mutation as one atomic commit: all of it is there afterwards, or nothing.

        The same mutation with the same ``idempotency_key`` is done once, however often it is sent.
        """
        refuse_direct(direct)
        body = {
            "query": text_argument("text", text),
            "params": sent_parameters(text, name, params),
            "name": name,
            "branch": self._named(branch),
        }
        headers = request_headers(if_commit, graph_commit_id, idempotency_key)
        done: MutationResult = self._open.value("POST", "/mutate", body, headers=headers, is_write=True)
        return done

    def load(
        self,
        data: Data | None = None,
        *,
        mode: LoadMode,
        branch: str | None = None,
        from_: str | None = None,
        message: str | None = None,
        max_errors: int | None = None,
        skip_bad: bool = False,
        graph_commit_id: str | None = None,
        idempotency_key: str | None = None,
        **direct: Any,
    ) -> LoadResult:
        """Load records as one atomic commit: JSON Lines (text, bytes, a file of this machine) or dictionaries.

        The same load with the same ``idempotency_key`` is done once, however often it is sent.
        """
        refuse_direct(direct)
        if data is None:
            raise InvalidArgument("data", "there is nothing to load; give records, JSON Lines or a file of them")
        content, source = read_data(data, LARGEST_LOAD)
        query = {
            "mode": mode_named(mode).value,
            "branch": self._named(branch),
            "from": optional_text("from_", from_),
            "message": optional_text("message", message),
            "max_errors": max_errors,
            "skip_bad": True if skip_bad else None,
        }
        headers = {
            "Accept": VALUES,
            "Content-Type": NDJSON,
            **request_headers(None, graph_commit_id, idempotency_key),
        }
        try:
            done: LoadResult = self._open.sent(
                "POST", "/load/ndjson", content, query=query, headers=headers, is_write=True
            )
        except (RecordError, ConstraintViolation) as error:
            raise _located(error, source) from None
        return done

    def ingest(
        self,
        data: Data | None,
        branch: str,
        *,
        from_: str = MAIN,
        mode: LoadMode = "merge",
        **options: Any,
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
        body = self._schema_body(schema, branch, fill, allow_data_loss)
        plan: SchemaPlan = self._open.value("POST", "/schema/plan", body)
        return plan

    def apply_schema(
        self,
        schema: str,
        *,
        branch: str | None = None,
        fill: Mapping[str, object] | None = None,
        allow_data_loss: bool = False,
        message: str | None = None,
        if_commit: str | None = None,
        graph_commit_id: str | None = None,
        idempotency_key: str | None = None,
        **direct: Any,
    ) -> SchemaResult:
        """Give a branch another schema, as one commit; its rows are kept, and older states keep their schema."""
        refuse_direct(direct)
        body = {**self._schema_body(schema, branch, fill, allow_data_loss), "message": message}
        headers = request_headers(if_commit, graph_commit_id, idempotency_key)
        done: SchemaResult = self._open.value("POST", "/schema/apply", body, headers=headers, is_write=True)
        return done

    def _schema_body(
        self, schema: str, branch: str | None, fill: Mapping[str, object] | None, allow_data_loss: bool
    ) -> dict[str, Any]:
        return {
            "schema_source": text_argument("schema", schema),
            "branch": self._named(branch),
            "fill": fill,
            "allow_data_loss": allow_data_loss,
        }

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
        **direct: Any,
    ) -> ExportResult:
        """Write one snapshot, or some types of it, as records that `load` takes back, to a file or a stream."""
        refuse_direct(direct)
        if format != "jsonl":
            raise ExportRefused(str(format), "a server exports JSON Lines; open the graph where it is stored")
        body = {
            "type_names": None if types is None else list(types),
            "ordered": ordered,
            **self._state(branch, at),
        }
        headers = {"Accept": NDJSON, "Content-Type": "application/json"}
        with self._open.answered("POST", "/export", encoded(body), headers=headers) as answer:
            about = json.loads(answer.headers[ABOUT])
            path, size = written(answer, target, force=force)
        nodes, edges = (
            {key.partition(":")[2]: rows for key, rows in about["rows"].items() if key.startswith(kind)}
            for kind in ("node:", "edge:")
        )
        return ExportResult(
            path,
            "jsonl",
            "local",
            ordered,
            about["branch"],
            about["graph_commit_id"],
            about["manifest_version"],
            nodes,
            edges,
            () if path is None else (path,),
            size,
        )


def _located(error: RecordError | ConstraintViolation, source: str) -> OmniError:
    """An error about records that names the source they came from here, as the server cannot."""
    groups = _placed(error.groups, source)
    located: RecordError | ConstraintViolation
    if isinstance(error, RecordError):
        located = RecordError([replace(each, source=source) for each in error.problems], error.total, groups)
    else:
        named = [each if each.source is None else replace(each, source=source) for each in error.violations]
        located = ConstraintViolation(named, error.total, groups)
    located.hint = error.hint
    return located


def _placed(groups: Sequence[ErrorGroup], source: str) -> tuple[ErrorGroup, ...]:
    """A summary that names the source of the records."""
    return tuple(
        replace(
            group,
            first=replace(group.first, source=source) if group.first and group.first.source else group.first,
            ids=_placed(group.ids, source),
        )
        for group in groups
    )
