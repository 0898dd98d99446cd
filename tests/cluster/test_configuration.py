"""cluster.yaml and the files it names: every mistake has a code, a place and a line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.cluster.clusters import LISTS, MORE, QUERIES, READS, SCHEMA, Cluster, new_cluster

from omnigraph.cluster.configuration.resources import check_configuration, load_desired
from omnigraph.errors import ClusterProblem, ClusterRefused

GRAPH = {"schema": "g.pg"}

MISTAKES: dict[str, tuple[dict[str, Any], dict[str, str], str, str]] = {
    "unknown_key": ({"graphs": {"g": GRAPH | {"schemma": 1}}}, {}, "graphs.g.schemma", "line 5: 'schemma' means"),
    "future_phase_field": ({"servers": {}}, {}, "servers", "later release"),
    "unsupported_version": ({"version": 2}, {}, "version", "version is 1"),
    "unsupported_state_backend": ({"state": {"backend": "postgres"}}, {}, "state.backend", "is 'cluster'"),
    "storage_invalid": ({"storage": "memory://x"}, {}, "storage", "keeps no cluster"),
    "graph_id_invalid": ({"graphs": {"a_b": GRAPH}}, {}, "graphs.a_b", "cannot be the id"),
    "resource_name_invalid": ({"policies": {"a.b": {}}}, {}, "policies.a.b", "cannot be a name"),
    "file_missing": ({"graphs": {"g": {"schema": "no.pg"}}}, {}, "graphs.g.schema", "no.pg cannot be read"),
    "schema_invalid": ({}, {"g.pg": "node Person { name: Strin @key }"}, "graphs.g.schema", "g.pg:1:21: "),
    "query_invalid": ({}, {"queries/all.gq": MORE}, "graphs.g.queries", "queries/all.gq:1:"),
    "query_not_found": (
        {"graphs": {"g": GRAPH | {"queries": {"nobody": {"file": "queries/all.gq"}}}}},
        {},
        "graphs.g.queries.nobody",
        "queries/all.gq has names",
    ),
    "duplicate_query": ({}, {"queries/b.gq": QUERIES}, "graphs.g.queries", "another query 'names'"),
    "policy_invalid": (
        {"policies": {"p": {"file": "reads.yaml", "applies_to": ["g"]}}},
        {"reads.yaml": "{version: 1, rules: [], more: 1}"},
        "policies.p.file",
        "unknown field 'more'",
    ),
    "policy_bindings_missing": ({"policies": {"p": {"file": "reads.yaml"}}}, {}, "policies.p.applies_to", "line"),
    "policy_binding_unknown": (
        {"policies": {"p": {"file": "reads.yaml", "applies_to": ["h"]}}},
        {},
        "policies.p.applies_to",
        "no graph 'h'",
    ),
    "policy_kind_mixed": (
        {"policies": {"p": {"file": "reads.yaml", "applies_to": ["g", "cluster"]}}},
        {},
        "policies.p.applies_to",
        "not both",
    ),
    "duplicate_policy_binding": (
        {"policies": {name: {"file": "reads.yaml", "applies_to": ["g"]} for name in ("p", "q")}},
        {},
        "policies.q.applies_to",
        "'p' applies to g already",
    ),
    "graph_without_policy": (
        {"graphs": {"g": GRAPH, "h": GRAPH}, "policies": {"p": {"file": "reads.yaml", "applies_to": ["g"]}}},
        {},
        "graphs.h",
        "nothing would be decided",
    ),
    "provider_invalid": (
        {"providers": {"embedding": {"e": {"kind": "openai", "base_url": "ftp://x"}}}},
        {},
        "providers.embedding.e",
        "not an http://",
    ),
    "provider_unknown": (
        {"graphs": {"g": GRAPH | {"embedding_provider": "e"}}},
        {},
        "graphs.g.embedding_provider",
        "no provider 'e'",
    ),
    "secret_not_reference": (
        {"providers": {"embedding": {"e": {"kind": "openai", "api_key": "sk-123"}}}},
        {},
        "providers.embedding.e.api_key",
        "write ${NAME}",
    ),
    "external_blobs_invalid": (
        {"graphs": {"g": GRAPH | {"external_blobs": {"allow": [{"base": "file:///x/", "scope": "server_safe"}]}}}},
        {},
        "graphs.g.external_blobs.allow[0]",
        "embedded_only",
    ),
    "cluster_empty": ({"graphs": {}}, {}, "graphs", "has no graphs"),
    "cluster_yaml_invalid": ({"state": {"lock": "often"}}, {}, "state.lock", "it is true or false"),
}
"""For each code: keys of cluster.yaml, files, and the place and the words of the problem."""


def checked(cluster: Cluster) -> list[ClusterProblem]:
    return list(check_configuration(cluster.folder).problems)


@pytest.mark.parametrize("code", MISTAKES)
def test_a_mistake_has_a_code_and_a_place(code: str, tmp_path: Path) -> None:
    keys, files, path, message = MISTAKES[code]
    cluster = new_cluster(tmp_path, **keys).write(files)
    found = [each for each in checked(cluster) if each.code == code]
    assert [each.path for each in found] == [path]
    assert message in found[0].message
    is_error = found[0].severity == "error"
    assert cluster.run("validate").code == int(is_error)
    if is_error:
        with pytest.raises(ClusterRefused, match=code):
            load_desired(tmp_path)


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    cluster = new_cluster(tmp_path, version=2, more=1, graphs={"g": GRAPH, "h_": GRAPH})
    assert cluster.codes("validate", code=1) == ["unknown_key", "unsupported_version", "graph_id_invalid"]
    shown = cluster.run("validate")
    assert "error: unknown_key: more: line 6: 'more' means nothing" in shown.out
    assert "3 errors" in shown.out


def test_a_secret_is_never_repeated(tmp_path: Path) -> None:
    keys = {"embedding": {"e": {"kind": "openai", "api_key": "sk-123"}}}
    ran = new_cluster(tmp_path, providers=keys).run("validate", "--json")
    assert "sk-123" not in ran.out + ran.err


def test_a_key_that_is_given_twice(tmp_path: Path) -> None:
    cluster = new_cluster(tmp_path)
    cluster.write({"cluster.yaml": "version: 1\ngraphs:\n  g: {schema: g.pg}\n  g: {schema: g.pg}\n"})
    (found,) = checked(cluster)
    assert (found.code, found.path, found.message) == ("duplicate_key", "graphs.g", "line 4: 'g' is given twice")


@pytest.mark.parametrize("text", ["{", "a: &a [*a]\n", "[1]", "2: 3\n", "a: !!python/name:os.system\n", "\x00"])
def test_a_file_that_is_no_configuration(text: str, tmp_path: Path) -> None:
    cluster = new_cluster(tmp_path).write({"cluster.yaml": text})
    assert "cluster_yaml_invalid" in cluster.run("validate").out + cluster.run("validate").err


def test_a_document_without_an_end_is_refused(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    cluster = new_cluster(tmp_path).write({"cluster.yaml": "\n".join(lines)})
    assert "it has no end" in cluster.run("validate").err


def test_a_folder_without_a_configuration(tmp_path: Path) -> None:
    with pytest.raises(ClusterRefused) as refused:
        check_configuration(tmp_path)
    assert refused.value.code == "cluster_yaml_missing"


def test_queries_as_a_folder_a_list_and_by_names(tmp_path: Path) -> None:
    two = QUERIES + QUERIES.replace("names", "again")
    cluster = new_cluster(tmp_path).write({"queries/all.gq": two, "more/b.gq": QUERIES.replace("names", "b")})
    both = {"query.g.again", "query.g.names"}
    named = {"again": {"file": "queries/all.gq"}}
    for queries, expected in (
        ("queries/", both),
        ("queries/all.gq", both),
        (["queries/all.gq", "more/b.gq"], both | {"query.g.b"}),
        (named, {"query.g.again"}),
    ):
        cluster.edit(graphs={"g": GRAPH | {"queries": queries}})
        found = load_desired(tmp_path).resources
        assert {each for each in found if each.startswith("query.")} == expected


def test_a_file_of_several_queries_is_one_content(tmp_path: Path) -> None:
    cluster = new_cluster(tmp_path).write({"queries/all.gq": QUERIES + QUERIES.replace("names", "again")})
    before = load_desired(tmp_path).resources
    cluster.write({"queries/all.gq": QUERIES + QUERIES.replace("names", "again") + "// said\n"})
    after = load_desired(tmp_path).resources
    changed = {name for name in before if before[name].applied != after[name].applied}
    assert changed == {"query.g.again", "query.g.names"}


def test_a_comment_is_no_change_of_a_schema(tmp_path: Path) -> None:
    before = load_desired(new_cluster(tmp_path).folder)
    after = load_desired(new_cluster(tmp_path).write({"g.pg": f"// people\n{SCHEMA}"}).folder)
    assert after.resources["schema.g"].applied == before.resources["schema.g"].applied


def test_policies_of_graphs_and_of_the_cluster(tmp_path: Path) -> None:
    policies = {
        "a": {"file": "reads.yaml", "applies_to": ["g"]},
        "b": {"file": "lists.yaml", "applies_to": ["cluster"]},
    }
    cluster = new_cluster(tmp_path, policies=policies)
    assert not checked(cluster)
    cluster.write({"reads.yaml": LISTS, "lists.yaml": READS})
    assert {(each.code, each.path) for each in checked(cluster)} == {
        ("policy_kind_mixed", "policies.a.file"),
        ("policy_kind_mixed", "policies.b.file"),
    }


def test_an_allow_list_does_not_overlap(tmp_path: Path) -> None:
    bases = [{"base": base, "scope": "server_safe"} for base in ("s3://b/x/y", "s3://b/x", "s3://c")]
    cluster = new_cluster(tmp_path, graphs={"g": GRAPH | {"external_blobs": {"allow": bases}}})
    (found,) = checked(cluster)
    assert "s3://b/x/y/ lies below s3://b/x/" in found.message
