"""Which graph a command works on: flags, environment and configuration, in their order; and tokens."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
import typer
from tests.cli.command import omnigraph

from omnigraph.cli.output import table_lines
from omnigraph.cli.scope import config, credentials
from omnigraph.cli.scope.capabilities import CAPABILITIES
from omnigraph.cli.scope.target import Given, Target, resolve, server_of
from omnigraph.cli.verbs import VERBS
from omnigraph.errors import ConfigInvalid

CONFIG = """
operator: {actor: act-x}
servers:
  prod: {url: "https://graphs.example/"}
  eu: {url: "https://graphs.example/eu"}
clusters:
  brain: {root: s3://bucket/brain/}
defaults: {server: prod, default_graph: main-graph, output: json}
profiles:
  staging: {store: ./staging.omni}
  live: {server: eu, default_graph: live}
  both: {server: eu, store: x.omni}
  none: {}
  mind: {cluster: brain, default_graph: ideas}
aliases:
  triage: {server: prod, query: open_tickets, args: [team], params: {limit: 5}, format: csv}
"""


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """An environment with a configuration, in a directory with one graph."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here.omni").mkdir()
    (tmp_path / "config.yaml").write_text(CONFIG)
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path))
    return {"OMNIGRAPH_HOME": str(tmp_path)}


@pytest.mark.parametrize(
    ("given", "variables", "expected"),
    [
        (Given(["a.omni"], profile="staging"), {"OMNIGRAPH_STORE": "b.omni"}, "a.omni"),
        (Given(server="eu", profile="staging"), {}, "https://graphs.example/eu"),
        (Given(server="http://localhost:1", graph="g"), {}, "http://localhost:1/graphs/g"),
        (Given(profile="staging"), {"OMNIGRAPH_STORE": "b.omni"}, "./staging.omni"),
        (Given(cluster="brain", graph="ideas"), {}, "s3://bucket/brain/ideas.omni"),
        (Given(cluster="."), {}, "./here.omni"),
        (Given(profile="mind"), {}, "s3://bucket/brain/ideas.omni"),
        (Given(profile="mind", graph="plans"), {}, "s3://bucket/brain/plans.omni"),
        (Given(profile="live"), {}, "https://graphs.example/eu/graphs/live"),
        (Given(profile="live", graph="other"), {}, "https://graphs.example/eu/graphs/other"),
        (Given(), {"OMNIGRAPH_STORE": "b.omni", "OMNIGRAPH_PROFILE": "live"}, "b.omni"),
        (Given(), {"OMNIGRAPH_PROFILE": "live"}, "https://graphs.example/eu/graphs/live"),
        (Given(), {}, "https://graphs.example/graphs/main-graph"),
        (Given(), {"OMNIGRAPH_HOME": "nowhere"}, "here.omni"),
    ],
)
def test_the_first_word_that_says_something_decides(
    environment: dict[str, str], given: Given, variables: dict[str, str], expected: str
) -> None:
    assert str(resolve(given, environment | variables)) == expected


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (Given(["a.omni", "b.omni"]), "two graphs are named"),
        (Given(["a.omni"], server="eu"), "two graphs are named"),
        (Given(["http://localhost:1"]), "name it with --server"),
        (Given(["a.omni"], graph="g"), "--graph chooses among those of a server"),
        (Given(["a.omni"], cluster="brain"), "two graphs are named"),
        (Given(server="eu", cluster="brain"), "two graphs are named"),
        (Given(cluster="brain"), "which graph of s3://bucket/brain"),
        (Given(cluster="nowhere"), "which graph of nowhere"),
        (Given(server="us"), "there is no server 'us'"),
        (Given(profile="us"), "there is no profile 'us'"),
    ],
)
def test_contradictions_are_refused(environment: dict[str, str], given: Given, said: str) -> None:
    with pytest.raises(typer.BadParameter, match=said):
        resolve(given, environment)


@pytest.mark.parametrize("name", ["both", "none"])
def test_a_profile_names_one_thing(environment: dict[str, str], name: str) -> None:
    with pytest.raises(ConfigInvalid, match=f"profiles.{name} names exactly one"):
        resolve(Given(profile=name), environment)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("servers: [1]", "servers is a mapping"),
        ("servers: {x: {url: ftp://x}}", "http:// or https://"),
        ("defaults: {server: a, store: b}", "both server and store"),
        ("defaults: {store: b, default_graph: g}", "is a graph of a server"),
        ("defaults: {output: pdf}", "there are table"),
        ("aliases: {a: {args: [x]}}", "names no query"),
        ("a: b: c", "it is not YAML"),
        ("defaults: {store: a.omni}\ndefaults: {output: json}", "'defaults' is given twice"),
        ("[]", "is a mapping"),
    ],
)
def test_a_malformed_configuration_is_an_error(environment: dict[str, str], text: str, said: str) -> None:
    (Path(environment["OMNIGRAPH_HOME"]) / "config.yaml").write_text(text)
    with pytest.raises(ConfigInvalid, match=said):
        config.read_config(environment)


def test_unknown_keys_are_warned_about_once(
    environment: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    (Path(environment["OMNIGRAPH_HOME"]) / "config.yaml").write_text(
        "{colour: red, servers: {x: {url: 'http://x', a: 1}}}"
    )
    for _ in range(2):
        assert config.read_config(environment).unknown == ("colour", "servers.x.a")
    assert capsys.readouterr().err.count("warning:") == 2


def test_a_token_goes_to_its_own_server_only() -> None:
    servers = {"prod": "https://a.example", "eu": "https://a.example/eu"}
    assert server_of("https://a.example/eu/graphs/g", servers) == "eu"
    assert server_of("https://a.example/europe", servers) == "prod"
    assert server_of("https://a.example.evil.org", servers) is None


def test_the_order_of_tokens(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credentials, "_put_in_keyring", lambda _, __: False)
    assert credentials.token_of("my-prod", environment) is None
    with_fallback = environment | {"OMNIGRAPH_BEARER_TOKEN": "fallback"}
    assert credentials.token_of("my-prod", with_fallback) == "fallback"
    credentials.store_token("my-prod", "stored", environment)
    assert credentials.token_of("my-prod", with_fallback) == "stored"
    assert credentials.token_of("my-prod", with_fallback | {"OMNIGRAPH_TOKEN_MY_PROD": "own"}) == "own"
    assert credentials.token_of(None, environment) is None
    assert credentials.forget_token("my-prod", environment)
    assert not credentials.forget_token("my-prod", environment)


def test_credentials_that_others_can_read_are_refused(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials, "_put_in_keyring", lambda _, __: False)
    path = Path(credentials.store_token("prod", "t0k3n", environment))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o640)
    with pytest.raises(ConfigInvalid, match="others can read it"):
        credentials.token_of("prod", environment)


def test_login_reads_the_token_from_standard_input(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials, "_put_in_keyring", lambda _, __: False)
    done = omnigraph("login", "prod", "--json", stdin=b"secret-1\n")
    assert (done.code, "secret-1" in done.out) == (0, False)
    assert Target("https://graphs.example", True, server="prod").token() == "secret-1"
    assert omnigraph("logout", "prod").out == "logged out of prod\n"
    assert omnigraph("logout", "prod").out == "there is no token for prod\n"
    assert omnigraph("login", "prod", stdin=b"two words \x01\n").code == 1
    assert not list(Path(environment["OMNIGRAPH_HOME"]).glob("credentials.*"))


def test_profiles_are_shown(environment: dict[str, str]) -> None:
    listed = omnigraph("profile", "list").out.splitlines()
    assert listed[2] == "live\teu\t\t\tlive"
    assert "mind\t\tbrain\t\tideas" in listed
    assert omnigraph("profile", "show", "live", "--json").json["url"] == "https://graphs.example/eu"
    assert omnigraph("profile", "show", "us").code == 1
    assert environment


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("optimize", "--server", "prod"), "takes no --server"),
        (("optimize", "here.omni", "--graph", "g"), "here.omni is one graph"),
        (("fmt", "--cluster", ".", "x.gq"), "takes no --cluster"),
        (("fmt", "--profile", "live", "x.gq"), "takes no --profile"),
        (("graphs", "list", "--graph", "g"), "takes no --graph"),
        (("branch", "delete", "dev", "--server", "prod"), "not local: delete a branch there; add"),
        (
            ("load", "--mode", "overwrite", "--data", "-", "--server", "prod"),
            "not local: overwrite rows there; add",
        ),
        (
            ("cleanup", "s3://bucket/g.omni", "--keep", "1", "--confirm"),
            "not local: remove states there; add",
        ),
        (("mutate", "-e", "x", "--as", "me", "--server", "prod"), "--as is for graphs of this machine"),
    ],
)
def test_wrong_words_are_usage_errors(environment: dict[str, str], words: tuple[str, ...], said: str) -> None:
    ran = omnigraph(*words, cwd=Path(environment["OMNIGRAPH_HOME"]))
    assert (ran.code, said in " ".join(ran.err.replace("│", " ").split())) == (2, True), ran.err


def test_words_about_the_graph_may_stand_before_the_verb(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "s.pg").write_text("node Person { name: String @key }")
    assert omnigraph("--quiet", "init", "--schema", "s.pg", "new.omni", cwd=tmp_path).code == 0
    for words in (("--store", "new.omni", "--json"), ("--json", "--store=new.omni")):
        ran = omnigraph(*words, "branch", "list", cwd=tmp_path)
        assert (ran.code, [each["name"] for each in ran.json["branches"]]) == (0, ["main"])
    refused = omnigraph("--server", "prod", "optimize", cwd=tmp_path)
    assert (refused.code, "takes no --server" in refused.err) == (2, True)
    actor = ("--as", "eve", "--store", "new.omni", "mutate", "-e", 'query q() { insert Person { name: "a" } }')
    assert omnigraph(*actor, "--json", cwd=tmp_path).json["actor_id"] == "eve"


def test_help_ends_with_what_each_verb_works_on() -> None:
    said = " ".join(omnigraph("--help").out.split())
    for each in CAPABILITIES:
        assert each in said.partition("A graph in its storage")[2]


def test_every_verb_has_a_capability() -> None:
    assert CAPABILITIES.keys() == VERBS.keys()


def test_the_operator_is_the_actor_of_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And a write to a graph that only the configuration names says where it goes."""
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path))
    (tmp_path / "schema.pg").write_text("node Person { name: String @key }")
    (tmp_path / "config.yaml").write_text("{operator: {actor: act-x}, defaults: {store: g.omni}}")
    assert omnigraph("init", "g.omni", "--schema", "schema.pg", cwd=tmp_path).code == 0
    add = ("mutate", "-e", 'query a() { insert Person { name: "ada" } }', "--json")
    done = omnigraph(*add, cwd=tmp_path)
    assert done.json["actor_id"] == "act-x"
    assert done.err.startswith("writing to g.omni (defaults of ")
    assert omnigraph(*add, "--quiet", "--as", "other", cwd=tmp_path).err == ""


def test_policies_are_checked_tested_and_asked(tmp_path: Path) -> None:
    rule = "{id: r, allow: {actors: {actor: a}, actions: [read], branches: [main]}}"
    (tmp_path / "policy.yaml").write_text(f"{{version: 1, rules: [{rule}]}}")
    (tmp_path / "wrong.yaml").write_text("{version: 1}")
    case = "{id: c, actor: a, action: read, branch: dev, expect: %s}"
    (tmp_path / "good.yaml").write_text(f"{{version: 1, cases: [{case % 'deny'}]}}")
    (tmp_path / "bad.yaml").write_text(f"{{version: 1, cases: [{case % 'allow'}]}}")

    def policy(*words: str) -> tuple[int, str]:
        ran = omnigraph("policy", *words, cwd=tmp_path)
        return ran.code, ran.out + ran.err

    assert policy("validate", "policy.yaml") == (0, "policy.yaml: ok, 1 rule, 0 groups, 1 actor\n")
    assert policy("validate", "wrong.yaml") == (1, "error: wrong.yaml cannot be used: rules is missing\n")
    assert policy("test", "policy.yaml", "--tests", "good.yaml") == (0, "1 of 1 cases are as expected\n")
    assert policy("test", "policy.yaml", "--tests", "bad.yaml")[0] == 1
    asked = ("explain", "policy.yaml", "--actor", "a", "--action", "read")
    assert policy(*asked, "--branch", "main") == (0, "allowed: rule 'r' allows 'a' to read on branch 'main'\n")
    assert policy(*asked, "--branch", "dev") == (0, "denied: no rule allows 'a' to read on branch 'dev'\n")
    assert policy("explain", "policy.yaml", "--actor", "a", "--action", "fly")[0] == 1
    found = omnigraph("policy", *asked, "--branch", "main", "--json", cwd=tmp_path).json
    assert (found["allowed"], found["matched_rule_id"]) == (True, "r")


@pytest.mark.parametrize(
    ("defaults", "lines"),
    [
        ("{}", ["abcdefghij | 12", "abcdefghij | 1234567890"]),
        ("{table_max_column_width: 6}", ["abcde… | 12", "abcde… | 12345…"]),
        (
            "{table_max_column_width: 6, table_cell_layout: wrap}",
            ["abcdef | 12", "ghij   |", "abcdef | 123456", "ghij   | 7890"],
        ),
    ],
)
def test_cells_of_tables_are_as_wide_as_the_configuration_says(
    environment: dict[str, str], tmp_path: Path, defaults: str, lines: list[str]
) -> None:
    (tmp_path / "config.yaml").write_text(f"defaults: {defaults}")
    columns = [["abcdefghij", "abcdefghij"], ["12", "1234567890"]]
    header, rule, *rows = table_lines(["a", "b"], columns)
    assert (header.split(), set(rule)) == (["a", "|", "b"], {"-", "+"})
    assert rows == lines
    assert len(list(table_lines(["a", "b"], [[], []]))) == 2


@pytest.mark.parametrize(
    "wrong", ["table_max_column_width: 3", "table_max_column_width: wide", "table_cell_layout: x"]
)
def test_a_look_that_there_is_not_is_refused(environment: dict[str, str], tmp_path: Path, wrong: str) -> None:
    (tmp_path / "config.yaml").write_text(f"defaults: {{{wrong}}}")
    with pytest.raises(ConfigInvalid, match="table_"):
        config.read_config(environment)
