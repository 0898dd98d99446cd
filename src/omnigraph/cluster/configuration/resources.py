"""What a configuration amounts to: resources, each with the digest of its content, all of them checked.

The digest of a schema is that of its meaning, by which a graph knows its own: a comment is no change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from omnigraph.cluster.codes import is_wrong, problem
from omnigraph.cluster.configuration.bindings import check_bindings, check_policy
from omnigraph.cluster.configuration.config import ClusterConfig, GraphConfig, QueryFile, read_config
from omnigraph.cluster.configuration.document import FILE
from omnigraph.cluster.resource import Applied, Resource, digest_bytes, digest_of
from omnigraph.errors import ClusterProblem, ClusterRefused, LanguageError
from omnigraph.lang.query.compile import compile_query, parse_query_file
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.identity import first_identities
from omnigraph.lang.schema.resolve import CompiledSchema, compile_schema


@dataclass(frozen=True, slots=True)
class Desired:
    """All resources of a configuration. ``digest`` is that of all of them together."""

    config: ClusterConfig
    resources: Mapping[str, Resource]
    schemas: Mapping[str, CompiledSchema]
    """The schema of each graph."""
    problems: tuple[ClusterProblem, ...] = ()
    digest: str = ""


def load_desired(folder: Path) -> Desired:
    """The resources of the configuration in a folder; ClusterRefused lists everything that is wrong."""
    desired = check_configuration(folder)
    if is_wrong(desired.problems):
        raise ClusterRefused(str(folder), desired.problems)
    return desired


def check_configuration(folder: Path) -> Desired:
    """The resources of the configuration in a folder as far as they can be used, and all that is wrong."""
    config, problems = read_config(folder)
    builder = _Builder(config, problems)
    for graph in config.graphs.values():
        builder.add_graph(graph)
    for provider in config.providers.values():
        profile = provider.as_json()
        address = f"provider.embedding.{provider.name}"
        builder.add(Resource(address, Applied(digest_of(profile), embedding_profile=profile)))
    builder.add_policies()
    if not config.graphs and not is_wrong(problems):
        problems.append(problem("cluster_empty", "graphs", "the cluster has no graphs"))
    listed = {address: _identity(each.applied) for address, each in sorted(builder.resources.items())}
    return Desired(config, builder.resources, builder.schemas, tuple(problems), digest_of(listed))


def _identity(applied: Applied) -> list[object]:
    return [applied.digest, list(applied.applies_to or ())]


class _Builder:
    """Reads the files of a configuration, and makes resources of them."""

    def __init__(self, config: ClusterConfig, problems: list[ClusterProblem]) -> None:
        self._config = config
        self._problems = problems
        self.resources: dict[str, Resource] = {}
        self.schemas: dict[str, CompiledSchema] = {}

    def add(self, resource: Resource) -> None:
        self.resources[resource.address] = resource

    def add_graph(self, graph: GraphConfig) -> None:
        """The resources of a graph: itself, its schema and its stored queries."""
        where, own = f"graphs.{graph.id}", f"graph.{graph.id}"
        needs: tuple[str, ...] = ()
        if graph.embedding_provider is not None:
            needs = (f"provider.embedding.{graph.embedding_provider}",)
            if graph.embedding_provider not in self._config.providers:
                known = ", ".join(sorted(self._config.providers)) or "none"
                said = f"there is no provider '{graph.embedding_provider}'; there are {known}"
                self._note("provider_unknown", f"{where}.embedding_provider", said)
        allowed = [each.as_json() for each in graph.external_blobs]
        policy = {"digest": digest_of(allowed), "allow": allowed} if allowed else None
        digest = digest_of({"id": graph.id, "embedding_provider": graph.embedding_provider, "blobs": allowed})
        applied = Applied(digest, None, graph.embedding_provider, None, policy)
        self.add(Resource(own, applied, needs=needs))
        schema = self._schema(graph)
        if schema is not None:
            self.schemas[graph.id] = schema
            self.add(Resource(f"schema.{graph.id}", Applied(schema.shape.hash), needs=(own,)))
            catalog = Catalog(first_identities(schema))
            for file in graph.queries:
                self._add_queries(graph.id, file, catalog)

    def _schema(self, graph: GraphConfig) -> CompiledSchema | None:
        path = f"graphs.{graph.id}.schema"
        text = self._text(graph.schema, path)
        if text is None:
            return None
        try:
            return compile_schema(text.decode("utf-8"), self._shown(graph.schema))
        except UnicodeDecodeError as error:
            self._note("schema_invalid", path, f"{self._shown(graph.schema)} is not UTF-8: {error}")
        except LanguageError as error:
            self._note_language("schema_invalid", path, error)
        return None

    def _add_queries(self, graph: str, file: QueryFile, catalog: Catalog) -> None:
        content = self._text(file.path, file.where)
        if content is None:
            return
        shown = self._shown(file.path)
        try:
            text = content.decode("utf-8")
            names = [each.name.text for each in parse_query_file(text, shown).queries]
        except UnicodeDecodeError as error:
            self._note("query_invalid", file.where, f"{shown} is not UTF-8: {error}")
            return
        except LanguageError as error:
            self._note_language("query_invalid", file.where, error)
            return
        if file.name is not None and file.name not in names:
            self._note("query_not_found", file.where, f"{shown} has {', '.join(names) or 'no query'}")
            return
        for name in names if file.name is None else [file.name]:
            address = f"query.{graph}.{name}"
            if address in self.resources:
                self._note("duplicate_query", file.where, f"{shown}: there is another query '{name}'")
                continue
            try:
                compile_query(text, catalog, name, shown)
            except LanguageError as error:
                self._note_language("query_invalid", file.where, error)
            applied = Applied(digest_bytes(content))
            self.add(Resource(address, applied, content, (f"schema.{graph}",)))

    def add_policies(self) -> None:
        """The resources of policies, whose files and bindings are checked."""
        for policy in self._config.policies.values():
            path = f"policies.{policy.name}"
            content = self._text(policy.file, f"{path}.file")
            if content is None:
                continue
            self._problems += check_policy(policy, content, path, self._shown(policy.file))
            applied = Applied(digest_bytes(content), tuple(sorted(policy.applies_to)))
            self.add(Resource(f"policy.{policy.name}", applied, content))
        self._problems += check_bindings(self._config)

    def _text(self, path: Path, where: str) -> bytes | None:
        try:
            return path.read_bytes()
        except OSError as error:
            if path != self._config.folder:  # a file that is not named at all has been reported
                self._note("file_missing", where, f"{self._shown(path)} cannot be read: {error.strerror or error}")
            return None

    def _shown(self, path: Path) -> str:
        folder = self._config.folder
        return str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path)

    def _note(self, code: str, path: str, message: str) -> None:
        self._problems.append(problem(code, path or FILE, message))

    def _note_language(self, code: str, path: str, error: LanguageError) -> None:
        for each in error.diagnostics:
            place = f"{each.source}:{each.line}:{each.column}"
            remedy = f"; {each.help}" if each.help else ""
            self._note(code, path, f"{place}: {each.code}: {each.message}{remedy}")
