"""cluster.yaml: what a cluster is to have. Every mistake is reported, with its line; unknown keys are mistakes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from omnigraph.cluster.codes import is_wrong, problem, refused
from omnigraph.cluster.configuration.document import FILE, Value, at_line, parse_document
from omnigraph.cluster.configuration.fields import Fields
from omnigraph.cluster.configuration.providers import ProviderConfig, read_provider
from omnigraph.cluster.configuration.sources import BlobBase, read_bases
from omnigraph.errors import ClusterProblem, ClusterRefused, InvalidAddress
from omnigraph.storage.address import Scheme, parse_address

VERSION: Final = 1
CLUSTER: Final = "cluster"
"""What a policy about the cluster itself applies to."""
_TOP: Final = ("version", "metadata", "storage", "state", "providers", "graphs", "policies")
_LATER: Final = frozenset({"servers", "environments", "branches", "tokens", "schedules", "replicas"})
"""Keys that mean something in a later release."""


@dataclass(frozen=True, slots=True)
class QueryFile:
    """A file of stored queries, or one query of it."""

    path: Path
    name: str | None
    where: str
    """The place in cluster.yaml that names it."""


@dataclass(frozen=True, slots=True)
class GraphConfig:
    """A graph as it is to be. Paths are absolute."""

    id: str
    schema: Path
    queries: tuple[QueryFile, ...] = ()
    embedding_provider: str | None = None
    external_blobs: tuple[BlobBase, ...] = ()


@dataclass(frozen=True, slots=True)
class PolicyConfig:
    """A policy and what it applies to: graphs, or the cluster itself."""

    name: str
    file: Path
    applies_to: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClusterConfig:
    """Everything that cluster.yaml says. ``root`` is where the cluster keeps its graphs and its ledger."""

    folder: Path
    root: str
    name: str | None = None
    is_locked: bool = True
    graphs: Mapping[str, GraphConfig] = field(default_factory=dict)
    policies: Mapping[str, PolicyConfig] = field(default_factory=dict)
    providers: Mapping[str, ProviderConfig] = field(default_factory=dict)


def read_config(folder: Path) -> tuple[ClusterConfig, list[ClusterProblem]]:
    """The configuration of a folder, and all that is wrong with it; ClusterRefused if it cannot be read at all."""
    top, problems = _document(folder)
    return _Reader(folder.resolve(), problems).config(top), problems


def root_of(folder: Path) -> str:
    """Where the cluster of a configuration is, whatever else is wrong with the configuration."""
    top, _ = _document(folder)
    problems: list[ClusterProblem] = []
    root = _Reader(folder.resolve(), problems).root(top)
    if is_wrong(problems):
        raise ClusterRefused(str(folder), problems)
    return root


def _document(folder: Path) -> tuple[Value, list[ClusterProblem]]:
    try:
        text = (folder / FILE).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        said = f"it cannot be read: {error}; name the folder of a cluster with --config"
        raise refused(str(folder), "cluster_yaml_missing", FILE, said) from None
    top, problems = parse_document(text)
    if top is None:
        raise ClusterRefused(str(folder), problems)
    return top, problems


class _Reader:
    """Makes a configuration of a document, and collects what is wrong with it."""

    def __init__(self, folder: Path, problems: list[ClusterProblem]) -> None:
        self._folder = folder
        self._problems = problems
        self._fields = Fields(problems, _LATER)

    def config(self, top: Value) -> ClusterConfig:
        given = self._fields.mapping("", top, _TOP)
        version = given.get("version")
        if version is None or version.found != VERSION or isinstance(version.found, bool):
            line = top.line if version is None else version.line
            self._wrong("unsupported_version", "version", line, f"version is {VERSION}")
        metadata = self._fields.mapping("metadata", given.get("metadata"), ("name",))
        providers = self._fields.mapping("providers", given.get("providers"), ("embedding",))
        return ClusterConfig(
            self._folder,
            self.root(top),
            self._fields.text("metadata.name", metadata.get("name")),
            self._is_locked(given.get("state")),
            {id_: self._graph(id_, each) for id_, each in self._named("graphs", given.get("graphs"))},
            {name: self._policy(name, each) for name, each in self._named("policies", given.get("policies"))},
            {
                name: read_provider(self._fields, name, each)
                for name, each in self._named("providers.embedding", providers.get("embedding"))
            },
        )

    def root(self, top: Value) -> str:
        """Where the cluster is: its folder, unless `storage` names another place."""
        given = top.found.get("storage") if isinstance(top.found, dict) else None
        storage = self._fields.text("storage", given)
        if storage is None or given is None:
            return str(self._folder)
        try:
            is_path = "://" not in storage
            address = parse_address(self._folder / storage if is_path else storage)
        except InvalidAddress as error:
            self._wrong("storage_invalid", "storage", given.line, str(error))
            return str(self._folder)
        if address.scheme is Scheme.MEMORY:
            self._wrong("storage_invalid", "storage", given.line, "the memory of a process keeps no cluster")
        return str(address)

    def _is_locked(self, given: Value | None) -> bool:
        state = self._fields.mapping("state", given, ("backend", "lock"))
        backend = self._fields.text("state.backend", state.get("backend"))
        if backend not in (None, CLUSTER):
            said = f"the backend is '{CLUSTER}'"
            self._wrong("unsupported_state_backend", "state.backend", state["backend"].line, said)
        lock = state.get("lock")
        if lock is not None and not isinstance(lock.found, bool):
            self._fields.wrong("state.lock", lock, "it is true or false")
        return lock is None or lock.found is not False

    def _named(self, where: str, given: Value | None) -> list[tuple[str, Value]]:
        """The members of a mapping of names, without those whose names cannot be."""
        return self._fields.named(where, given)

    def _graph(self, id_: str, given: Value) -> GraphConfig:
        where = f"graphs.{id_}"
        known = ("schema", "queries", "embedding_provider", "external_blobs")
        found = self._fields.mapping(where, given, known)
        schema = self._fields.text(f"{where}.schema", found.get("schema"))
        if schema is None and "schema" not in found:
            self._fields.wrong(where, given, "it has no schema")
        blobs = self._fields.mapping(f"{where}.external_blobs", found.get("external_blobs"), ("allow",))
        return GraphConfig(
            id_,
            self._folder / (schema or ""),
            tuple(self._queries(f"{where}.queries", found.get("queries"))),
            self._fields.text(f"{where}.embedding_provider", found.get("embedding_provider")),
            read_bases(self._fields, f"{where}.external_blobs.allow", blobs.get("allow")),
        )

    def _queries(self, where: str, given: Value | None) -> list[QueryFile]:
        """Stored queries as a folder, a list of files, or files by the names of queries."""
        if given is None:
            return []
        if isinstance(given.found, str):
            return self._query_folder(where, given)
        if isinstance(given.found, list):
            files = self._fields.texts(where, given)
            return [QueryFile(self._folder / each, None, where) for each in files]
        made = []
        for name, each in self._fields.mapping(where, given, None).items():
            file = self._fields.mapping(f"{where}.{name}", each, ("file",)).get("file")
            path = self._fields.text(f"{where}.{name}.file", file)
            if path is None:
                self._fields.wrong(f"{where}.{name}", each, "it names no file")
            else:
                made.append(QueryFile(self._folder / path, name, f"{where}.{name}"))
        return made

    def _query_folder(self, where: str, given: Value) -> list[QueryFile]:
        place = self._folder / given.found
        if place.is_file():
            return [QueryFile(place, None, where)]
        if not place.is_dir():
            self._wrong("file_missing", where, given.line, f"there is no folder {given.found}")
            return []
        return [QueryFile(path, None, where) for path in sorted(place.glob("*.gq"))]

    def _policy(self, name: str, given: Value) -> PolicyConfig:
        where = f"policies.{name}"
        found = self._fields.mapping(where, given, ("file", "applies_to"))
        file = self._fields.text(f"{where}.file", found.get("file"))
        if file is None and "file" not in found:
            self._fields.wrong(where, given, "it names no file")
        bound = found.get("applies_to")
        names = () if bound is None else self._fields.texts(f"{where}.applies_to", bound)
        if not names:
            said = f"applies_to names graphs, or is [{CLUSTER}]"
            self._wrong("policy_bindings_missing", f"{where}.applies_to", given.line, said)
        return PolicyConfig(name, self._folder / (file or ""), tuple(dict.fromkeys(names)))

    def _wrong(self, code: str, path: str, line: int, message: str) -> None:
        self._problems.append(problem(code, path, at_line(line, message)))
