"""The one table of what a server can be asked. Routing, checking, policy, metrics and OpenAPI are made of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from omnigraph.policy.actions import Action
from omnigraph.server.answers import blobs, invoking, reading, writing
from omnigraph.server.answers.calls import ARROW, BYTES, JSON, NDJSON, Answer, Call
from omnigraph.server.routes.parameters import Kind, Parameter, Place
from omnigraph.server.routes.route import IDEMPOTENCY_KEY, PREFIX, Access, Route
from omnigraph.server.transfer.events import MEDIA_TYPE as EVENTS


def _path(name: str, help: str) -> Parameter:  # noqa: A002  what it is called
    return Parameter(name, Kind.TEXT, Place.PATH, help, required=True)


def _header(name: str, help: str, *, required: bool = False) -> Parameter:  # noqa: A002
    return Parameter(name, Kind.TEXT, Place.HEADER, help, required, filled=True)


def _query(name: str, kind: Kind, help: str, *choices: str, required: bool = False) -> Parameter:  # noqa: A002
    return Parameter(name, kind, Place.QUERY, help, required, choices)


def _body(name: str, kind: Kind, help: str, *choices: str, required: bool = False) -> Parameter:  # noqa: A002
    return Parameter(name, kind, Place.BODY, help, required, choices)


_GRAPH: Final = _path("graph", "The name of the graph.")
_MODES: Final = ("overwrite", "append", "merge")
_BRANCH_HELP: Final = "The branch. Default: main."
_STATE_HELP: Final = (
    "An older state: a commit id or a tag, without a branch; or a manifest version or a time of the branch."
)
_BRANCH: Final = _query("branch", Kind.TEXT, _BRANCH_HELP)
_STATE: Final = _query("snapshot", Kind.STATE, _STATE_HELP)
_BODY_BRANCH: Final = _body("branch", Kind.TEXT, _BRANCH_HELP)
_BODY_STATE: Final = _body("snapshot", Kind.STATE, _STATE_HELP)
_COMMIT: Final = _path("commit", "The id of a commit, or a tag.")
_MESSAGE: Final = _body("message", Kind.TEXT, "Kept with the commit.")
_KEY: Final = _header(
    IDEMPOTENCY_KEY,
    "A text of the caller's choice. The same write with the same key is done once, however often it is sent.",
)
_COMMIT_ID: Final = _header(
    "Omnigraph-Graph-Commit-Id",
    "The id that the commit gets, a ULID of the caller's choice. If there is such a commit: 409.",
)
_IF_COMMIT: Final = _header("Omnigraph-If-Graph-Commit", "Only if the branch is at this commit; else 412.")
_REQUIRED_COMMIT: Final = _header(_IF_COMMIT.name, _IF_COMMIT.help, required=True)
_QUERY: Final = (
    _body("query", Kind.TEXT, "The text of one or more queries.", required=True),
    _body("name", Kind.TEXT, "Which query of the text. Default: its only one."),
    _body("params", Kind.OBJECT, "Values of the query's parameters, by name."),
    _BODY_BRANCH,
)
_EXACT: Final = _body("exact", Kind.FLAG, "Compare all vectors, where an index would find nearly all the nearest.")
_FILTERS: Final = (
    ("kind", "Only changes of these kinds.", ("node", "edge")),
    ("type", "Only changes of these types.", ()),
    ("op", "Only these operations.", ("insert", "update", "delete")),
)
_ENTITY: Final = (
    _query("type", Kind.TEXT, "The type of the node or edge.", required=True),
    _query("id", Kind.TEXT, "Its id.", required=True),
)
_BLOB: Final = (
    _query(
        "entity",
        Kind.TEXT,
        "What the type is of, if there is a node and an edge type of its name.",
        "node",
        "edge",
    ),
    *_ENTITY,
    _query("property", Kind.TEXT, "The property that is a Blob.", required=True),
)
_IF_TAGS: Final = (
    Parameter("If-Match", Kind.TEXT, Place.HEADER, "Only if the blob has one of these ETags; else 412."),
    Parameter("If-None-Match", Kind.TEXT, Place.HEADER, "Only if the blob has none of these ETags; else 304."),
)
_RANGES: Final = (
    Parameter("Range", Kind.TEXT, Place.HEADER, "One range of bytes, as `bytes=0-99`; answered with 206."),
    Parameter("If-Range", Kind.TEXT, Place.HEADER, "Only a range of the blob with this ETag; else all bytes."),
)
_PUT: Final = (
    _BRANCH,
    _query("message", Kind.TEXT, "Kept with the commit."),
    Parameter("If-Match", Kind.TEXT, Place.HEADER, "Only if the blob has this ETag; else 412."),
    _IF_COMMIT,
    _COMMIT_ID,
    _KEY,
)
_LOG: Final = (
    _query("limit", Kind.NUMBER, "How many commits at most. Default: 50."),
    _query("after", Kind.TEXT, "Go on behind this commit of an earlier page."),
    _query("actor", Kind.TEXT, "Only commits of this actor."),
    _query("kind", Kind.TEXT, "Only commits of this kind."),
    _query("since", Kind.TEXT, "Only commits from this time on."),
    _query("until", Kind.TEXT, "Only commits up to this time."),
)
_CHANGE_FILTERS: Final = tuple(_query(name, Kind.TEXTS, text, *choices) for name, text, choices in _FILTERS)
_BODY_FILTERS: Final = tuple(_body(name, Kind.TEXTS, text, *choices) for name, text, choices in _FILTERS)
_PAGE: Final = (
    _query("limit", Kind.NUMBER, "How many changes at most."),
    _query("page_token", Kind.TEXT, "The `next_page_token` of the page before."),
    _query("limit_bytes", Kind.NUMBER, "About how many bytes of changes at most."),
)
_SCHEMA: Final = (
    _body("schema_source", Kind.TEXT, "The schema.", required=True),
    _BODY_BRANCH,
    _body("fill", Kind.OBJECT, "Values for existing rows, by Type.property."),
    _body("allow_data_loss", Kind.FLAG, "Remove the rows and values of what is dropped."),
)
_DECISIONS: Final = (
    _body("strict", Kind.FLAG, "Two changes of one entity conflict, also of different properties."),
    _body("resolve", Kind.TEXT, "Decide all conflicts for one side.", "ours", "theirs"),
    _body("choices", Kind.OBJECTS, "Decide single conflicts: each has a table_key, an id and a side."),
    _body("message", Kind.TEXT, "Kept with the commit."),
)
_MERGE: Final = (
    _body("source", Kind.TEXT, "The branch to merge.", required=True),
    _body("target", Kind.TEXT, "The branch that gets the changes. Default: main."),
    _body("squash", Kind.FLAG, "Leave out the second parent."),
    *_DECISIONS,
)
_STORED: Final = (
    _GRAPH,
    _path("query", "The name of the stored query."),
    _body("params", Kind.OBJECT, "Values of the query's parameters, by name."),
    _BODY_BRANCH,
)
_EXPECTED: Final = _body("expect_mutation", Kind.FLAG, "Refuse a query that writes, or one that does not.")
_BODY_COMMIT: Final = _body("commit", Kind.TEXT, "The id of a commit, or a tag.", required=True)
_SKIP_BAD: Final = "Leave bad records out; the commit says how many."
_LOAD: Final = (
    ("mode", "What happens to rows that are there. Default: merge.", _MODES),
    ("branch", _BRANCH_HELP, ()),
    ("from", "Fork the branch from this one if it is missing.", ()),
    ("message", "Kept with the commit.", ()),
)


def _read(name: str, path: str, run: Callable[[Call], Answer], *parameters: Parameter) -> Route:
    return Route("GET", PREFIX + path, name, run, Access.READ, Action.READ, name, (_GRAPH, *parameters))


def _ask(
    name: str,
    path: str,
    run: Callable[[Call], Answer],
    *parameters: Parameter,
    action: Action = Action.READ,
    answer: str | None = None,
    gives: Sequence[str] = (JSON,),
) -> Route:
    """A route that reads, though its request has a body."""
    known = (_GRAPH, *parameters)
    return Route("POST", PREFIX + path, name, run, Access.READ, action, answer or name, known, JSON, gives)


def _write(
    method: str,
    name: str,
    path: str,
    run: Callable[[Call], Answer],
    *parameters: Parameter,
    action: Action = Action.CHANGE,
    answer: str | None = None,
    takes: str | None = JSON,
    is_large: bool = False,
) -> Route:
    known, called = (_GRAPH, *parameters), answer or name
    return Route(method, PREFIX + path, name, run, Access.WRITE, action, called, known, takes, is_large=is_large)


ROUTES: Final[Sequence[Route]] = (
    Route("GET", "/healthz", "health", reading.health, Access.OPEN, None, "health"),
    Route("GET", "/readyz", "readiness", reading.readiness, Access.OPEN, None, "readiness", looks_at_graphs=True),
    Route("GET", "/openapi.json", "openapi", reading.openapi, Access.OPEN, None, "object"),
    Route("GET", "/metrics", "metrics", reading.metrics, Access.READ, None, "text", gives=("text/plain",)),
    Route("GET", "/graphs", "graphs", reading.graphs, Access.READ, Action.GRAPH_LIST, "graphs"),
    _read("snapshot", "/snapshot", reading.snapshot, _BRANCH, _STATE),
    _read("schema", "/schema", reading.schema, _BRANCH, _STATE),
    _ask(
        "query",
        "/query",
        reading.query,
        *_QUERY,
        _BODY_STATE,
        _EXACT,
        _body("timeout", Kind.SECONDS, "Stop the query after so many seconds."),
        _body("memory_limit", Kind.NUMBER, "Stop the query before it uses more bytes of memory."),
        answer="result",
        gives=(JSON, NDJSON, ARROW),
    ),
    _ask(
        "explain",
        "/explain",
        reading.explain,
        *_QUERY,
        _BODY_STATE,
        _EXACT,
        _body("analyze", Kind.FLAG, "Run it, and show the rows and the time of each step."),
    ),
    _read("entity", "/entity", reading.entity, *_ENTITY, _BRANCH, _STATE),
    Route(
        "HEAD",
        PREFIX + "/blob",
        "stat_blob",
        blobs.stat_blob,
        Access.READ,
        Action.READ,
        "bytes",
        (_GRAPH, *_BLOB, _BRANCH, _STATE, *_IF_TAGS),
        gives=(BYTES,),
    ),
    Route(
        "GET",
        PREFIX + "/blob",
        "get_blob",
        blobs.get_blob,
        Access.READ,
        Action.READ,
        "bytes",
        (_GRAPH, *_BLOB, _BRANCH, _STATE, *_IF_TAGS, *_RANGES),
        gives=(BYTES,),
    ),
    _write(
        "PUT",
        "put_blob",
        "/blob",
        blobs.put_blob,
        *_BLOB,
        *_PUT,
        answer="mutation",
        takes=BYTES,
        is_large=True,
    ),
    _write("DELETE", "clear_blob", "/blob", blobs.clear_blob, *_BLOB, *_PUT, answer="mutation", takes=None),
    _read("branches", "/branches", reading.branches),
    _read("damaged", "/damaged", reading.damaged),
    _read("tags", "/tags", reading.tags),
    _read("commits", "/commits", reading.commits, _BRANCH, *_LOG),
    _read(
        "log",
        "/log",
        reading.log,
        _BRANCH,
        _query("type", Kind.TEXT, "With an id: only commits that changed one entity of this type."),
        _query("id", Kind.TEXT, "The id of the entity."),
        _query("stat", Kind.FLAG, "Count the entities that each commit changed."),
        *_LOG,
    ),
    _read("blame", "/blame", reading.blame, *_ENTITY, _BRANCH, _STATE),
    _read("schema_history", "/schema/history", reading.schema_history, _BRANCH),
    _read(
        "commit_changes", "/commits/{commit}/changes", reading.commit_changes, _COMMIT, *_CHANGE_FILTERS, *_PAGE
    ),
    _read("commit", "/commits/{commit}", reading.commit, _COMMIT),
    _read(
        "changes",
        "/changes",
        reading.changes,
        _BRANCH,
        _query("start", Kind.TEXT, "Where to begin: now, beginning or after:COMMIT."),
        _query("cursor", Kind.TEXT, "The cursor of an earlier poll, to go on behind it."),
        _query("limit_commits", Kind.NUMBER, "How many commits a poll walks through at most."),
        *_CHANGE_FILTERS,
        *_PAGE,
    ),
    Route(
        "GET",
        PREFIX + "/changes/events",
        "follow",
        reading.follow,
        Access.READ,
        Action.READ,
        "text",
        (
            _GRAPH,
            _BRANCH,
            _query("start", Kind.TEXT, "Where to begin: now, beginning or after:COMMIT."),
            _query("cursor", Kind.TEXT, "The cursor of an earlier poll, to go on behind it."),
            Parameter("Last-Event-ID", Kind.TEXT, Place.HEADER, "The id of the last event that the caller got."),
            *_CHANGE_FILTERS,
            *(each for each in _PAGE if each.name != "page_token"),
        ),
        gives=(EVENTS,),
    ),
    _read("recoveries", "/recoveries", reading.recoveries),
    _ask(
        "export",
        "/export",
        reading.export,
        _BODY_BRANCH,
        _BODY_STATE,
        _body("type_names", Kind.TEXTS, "Only these types."),
        _body("ordered", Kind.FLAG, "Sort each type by id."),
        action=Action.EXPORT,
        answer="records",
        gives=(NDJSON,),
    ),
    _ask(
        "baseline",
        "/changes/baseline",
        reading.baseline,
        _BODY_BRANCH,
        *_BODY_FILTERS,
        action=Action.EXPORT,
        answer="records",
        gives=(NDJSON,),
    ),
    Route(
        "GET",
        PREFIX + "/queries",
        "queries",
        invoking.queries,
        Access.READ,
        Action.INVOKE_QUERY,
        "queries",
        (_GRAPH,),
    ),
    Route(
        "POST",
        PREFIX + "/queries/{query}",
        "invoke",
        invoking.invoke,
        Access.INVOKE,
        Action.INVOKE_QUERY,
        "object",
        (*_STORED, _BODY_STATE, _EXPECTED, _IF_COMMIT, _COMMIT_ID, _KEY),
        JSON,
        (JSON, NDJSON, ARROW),
    ),
    Route(
        "POST",
        PREFIX + "/queries/{query}/if-graph-commit",
        "invoke_if_graph_commit",
        invoking.invoke_mutation,
        Access.INVOKE,
        Action.INVOKE_QUERY,
        "mutation",
        (*_STORED, _REQUIRED_COMMIT, _COMMIT_ID, _KEY),
        JSON,
    ),
    _write("POST", "mutate", "/mutate", writing.mutate, *_QUERY, _IF_COMMIT, _COMMIT_ID, _KEY, answer="mutation"),
    _write(
        "POST",
        "mutate_if_graph_commit",
        "/mutate/if-graph-commit",
        writing.mutate,
        *_QUERY,
        _REQUIRED_COMMIT,
        _COMMIT_ID,
        _KEY,
        answer="mutation",
    ),
    _write(
        "POST",
        "load",
        "/load",
        writing.load,
        _body("data", Kind.TEXT, "The records, as JSON Lines.", required=True),
        *(_body(name, Kind.TEXT, text, *choices) for name, text, choices in _LOAD),
        _body("max_errors", Kind.NUMBER, "Stop after so many bad records."),
        _body("skip_bad", Kind.FLAG, _SKIP_BAD),
        _KEY,
        is_large=True,
    ),
    _write(
        "POST",
        "load_records",
        "/load/ndjson",
        writing.load_records,
        *(_query(name, Kind.TEXT, text, *choices) for name, text, choices in _LOAD),
        _query("max_errors", Kind.NUMBER, "Stop after so many bad records."),
        _query("skip_bad", Kind.FLAG, _SKIP_BAD),
        _COMMIT_ID,
        _KEY,
        answer="load",
        takes=NDJSON,
        is_large=True,
    ),
    _write(
        "POST",
        "create_branch",
        "/branches",
        writing.create_branch,
        _body("name", Kind.TEXT, "The name of the new branch.", required=True),
        _body("from", Kind.TEXT, "The branch to fork from. Default: main."),
        _KEY,
        action=Action.BRANCH_CREATE,
        answer="branch",
    ),
    _write(
        "POST",
        "merge",
        "/branches/merge",
        writing.merge,
        *_MERGE,
        _body("delete_branch", Kind.FLAG, "Delete the source when it is merged."),
        _IF_COMMIT,
        _COMMIT_ID,
        _KEY,
        action=Action.BRANCH_MERGE,
    ),
    _ask("preview_merge", "/branches/merge/preview", writing.preview_merge, *_MERGE, answer="merge_plan"),
    _write(
        "POST",
        "revert",
        "/revert",
        writing.revert,
        _body("commits", Kind.TEXTS, "The commits to undo.", required=True),
        _BODY_BRANCH,
        *_DECISIONS,
        _IF_COMMIT,
        _COMMIT_ID,
        _KEY,
        answer="undo",
    ),
    _write(
        "POST",
        "cherry_pick",
        "/cherry-pick",
        writing.cherry_pick,
        _BODY_COMMIT,
        _BODY_BRANCH,
        *_DECISIONS,
        _IF_COMMIT,
        _COMMIT_ID,
        _KEY,
        answer="undo",
    ),
    _write(
        "POST",
        "reset",
        "/reset",
        writing.reset,
        _BODY_COMMIT,
        _BODY_BRANCH,
        *_DECISIONS,
        _IF_COMMIT,
        _COMMIT_ID,
        _KEY,
        answer="undo",
    ),
    _write(
        "DELETE",
        "delete_branch",
        "/branches/{branch}",
        writing.delete_branch,
        _path("branch", "The name of the branch."),
        action=Action.BRANCH_DELETE,
        answer="branch",
        takes=None,
    ),
    _write(
        "POST",
        "create_tag",
        "/tags",
        writing.create_tag,
        _body("name", Kind.TEXT, "The name of the new tag.", required=True),
        _body("at", Kind.STATE, "A commit, another tag, a branch or a manifest version. Default: main."),
        _KEY,
        answer="tag",
    ),
    _write(
        "DELETE",
        "delete_tag",
        "/tags/{tag}",
        writing.delete_tag,
        _path("tag", "The name of the tag."),
        answer="name",
        takes=None,
    ),
    _ask("plan_schema", "/schema/plan", writing.plan_schema, *_SCHEMA, answer="schema_plan"),
    _write(
        "POST",
        "apply_schema",
        "/schema/apply",
        writing.apply_schema,
        *_SCHEMA,
        _MESSAGE,
        _IF_COMMIT,
        _COMMIT_ID,
        _KEY,
        action=Action.SCHEMA_APPLY,
        answer="schema_result",
    ),
)
