"""Where a graph can live, and how its address and settings are written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.stores import S3Server, Store

from omnigraph.errors import InvalidAddress, StorageUnavailable
from omnigraph.storage.address import Scheme, parse_address
from omnigraph.storage.objects import open_objects


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine's own AWS settings must not decide these tests."""
    for variable in os.environ:
        if variable.startswith("AWS_"):
            monkeypatch.delenv(variable)


class TestLocal:
    def test_an_absolute_path_is_its_own_root(self, tmp_path: Path) -> None:
        address = parse_address(tmp_path / "social.omni")
        assert address.scheme is Scheme.LOCAL
        assert address.root == str(tmp_path / "social.omni")
        assert str(address) == address.lance_root == address.root
        assert address.options == {}
        assert address.endpoint is None

    def test_a_relative_path_becomes_absolute(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        for text in ("social.omni", "./social.omni", "social.omni/", "x/../social.omni", " social.omni "):
            assert parse_address(text).root == str(tmp_path / "social.omni")

    def test_a_tilde_is_the_home_directory(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", str(tmp_path))
        assert parse_address("~/social.omni").root == str(tmp_path / "social.omni")

    def test_links_are_followed_because_branches_remember_where_their_parent_is(self, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        (tmp_path / "link").symlink_to(tmp_path / "real")
        assert parse_address(tmp_path / "link" / "g").root == str(tmp_path / "real" / "g")

    @pytest.mark.parametrize("form", ["file://{}", "file://localhost{}", "FILE://{}"])
    def test_a_file_url_is_the_same_place(self, tmp_path: Path, form: str) -> None:
        assert parse_address(form.format(tmp_path)) == parse_address(tmp_path)

    def test_a_file_url_may_quote(self, tmp_path: Path) -> None:
        assert parse_address(f"file://{tmp_path}/a%20b%23c").root == str(tmp_path / "a b#c")

    def test_a_path_says_what_it_says(self, tmp_path: Path) -> None:
        for name in ("a b", "a%20b", "über", "a#b", "a:b", "a+b&c=d"):
            assert parse_address(tmp_path / name).root == str(tmp_path / name)

    def test_aws_settings_do_not_reach_a_local_graph(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://elsewhere")
        assert parse_address(tmp_path, {"aws_region": "eu-west-1"}).options == {}


class TestMemory:
    def test_a_store_has_a_name_and_perhaps_a_path(self) -> None:
        address = parse_address("memory://scratch/a/b/")
        assert (address.scheme, address.root) == (Scheme.MEMORY, "memory://scratch/a/b")
        assert (address.bucket, address.prefix) == ("scratch", "a/b")
        assert address.lance_root == "shared-memory://scratch/a/b"
        assert parse_address("memory://scratch/").root == "memory://scratch"


class TestS3:
    def test_a_bucket_and_a_prefix(self) -> None:
        address = parse_address("s3://bucket/graphs/social/")
        assert (address.scheme, address.root) == (Scheme.S3, "s3://bucket/graphs/social")
        assert (address.bucket, address.prefix) == ("bucket", "graphs/social")
        assert address.lance_root == address.root
        assert address.endpoint is None

    def test_a_bucket_alone(self) -> None:
        address = parse_address("S3://bucket/")
        assert (address.root, address.prefix) == ("s3://bucket", "")

    def test_settings_come_from_the_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        variables = {
            "AWS_ACCESS_KEY_ID": "who",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_SESSION_TOKEN": "session",
            "AWS_DEFAULT_REGION": "eu-west-1",
            "AWS_ENDPOINT_URL": "https://minio.example",
            "AWS_ALLOW_HTTP": "true",
        }
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        assert parse_address("s3://bucket/g").options == {
            "aws_access_key_id": "who",
            "aws_secret_access_key": "secret",
            "aws_session_token": "session",
            "aws_region": "eu-west-1",
            "aws_endpoint": "https://minio.example",
            "allow_http": "true",
        }

    @pytest.mark.parametrize("names", [["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"]])
    def test_the_more_specific_endpoint_wins(self, monkeypatch: pytest.MonkeyPatch, names: list[str]) -> None:
        for name in reversed(names):
            monkeypatch.setenv(name, f"https://{name.lower()}")
            assert parse_address("s3://bucket/g").endpoint == f"https://{name.lower()}"

    def test_the_region_before_the_default_region(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AWS_DEFAULT_REGION", "default")
        monkeypatch.setenv("AWS_REGION", "own")
        assert parse_address("s3://bucket/g").options["aws_region"] == "own"

    def test_an_empty_variable_is_none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "")
        monkeypatch.setenv("AWS_ENDPOINT_URL", "https://general")
        assert parse_address("s3://bucket/g").endpoint == "https://general"

    def test_given_options_win(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "https://environment")
        monkeypatch.setenv("AWS_REGION", "environment")
        options = {"AWS_ENDPOINT": "https://given", "aws_region": "given"}
        found = parse_address("s3://bucket/g", options)
        assert (found.endpoint, found.options["aws_region"]) == ("https://given", "given")

    @pytest.mark.parametrize("name", ["aws_endpoint", "endpoint", "aws_endpoint_url", "endpoint_url"])
    def test_an_option_may_have_its_short_name(self, name: str) -> None:
        assert parse_address("s3://bucket/g", {name: "https://given"}).options == {"aws_endpoint": "https://given"}

    def test_path_style_is_asked_for_by_its_usual_name(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AWS_S3_FORCE_PATH_STYLE", "true")
        assert parse_address("s3://bucket/g").options == {"aws_virtual_hosted_style_request": "false"}
        monkeypatch.setenv("AWS_S3_FORCE_PATH_STYLE", "false")
        assert parse_address("s3://bucket/g").options == {}

    def test_plain_http_must_be_allowed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://minio.example")
        assert parse_address("s3://bucket/g").options["allow_http"] == "false"
        assert parse_address("s3://bucket/g", {"allow_http": "true"}).options["allow_http"] == "true"

    def test_short_names_and_variables_reach_the_server(
        self, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        given = s3_server.options()
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", given["aws_endpoint"])
        monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
        monkeypatch.setenv("AWS_S3_FORCE_PATH_STYLE", "1")
        short = {"access_key_id": "test", "secret_access_key": "test", "region": "us-east-1"}
        place = Store(s3_server.store().uri, short)
        place.objects().put("here", b"x")
        assert place.tables().newest("nowhere") is None
        assert Store(place.uri, given).objects().has("here")

    def test_options_a_client_cannot_use_are_the_operators_problem(self) -> None:
        for options in ({"aws_access_key_id": "half"}, {"aws_no_such_option": "x"}):
            address = parse_address("s3://bucket/g", options)
            with pytest.raises(StorageUnavailable, match="s3://bucket/g"):
                open_objects(address)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("  ", "empty"),
        ("gs://bucket/g", "local paths, file://, s3:// and memory://"),
        ("http://host/g", "local paths, file://, s3:// and memory://"),
        ("s3://", "no bucket"),
        ("s3:///g", "no bucket"),
        ("memory://", "no store"),
        ("s3:/bucket/g", "s3://"),
        ("s3:bucket", "s3://"),
        ("file:g", "file://"),
        ("file://", "no path"),
        ("file://localhost", "no path"),
        ("file://host/g", "no host"),
        ("file:///g?x=1", "query"),
        ("file:///g#x", "query"),
        ("s3://bucket/g?versionId=1", "'?'"),
        ("s3://bucket/g#x", "'#'"),
        ("s3://bucket/a%20b", "'%'"),
        ("memory://m/a%20b", "'%'"),
        ("s3://bucket/a//b", "segment"),
        ("s3://bucket/a/../b", "segment"),
        ("s3://bucket/./b", "segment"),
        ("what?/g", "'?'"),
        ("nul\0/g", "null"),
        ("~nobody-of-that-name/g", "home"),
    ],
)
def test_what_is_no_address(text: str, reason: str) -> None:
    with pytest.raises(InvalidAddress) as caught:
        parse_address(text)
    assert caught.value.address == text.strip()
    assert reason in str(caught.value)


def test_settings_stay_out_of_sight() -> None:
    """An address is printed in messages and logs; what it was opened with is not."""
    address = parse_address("s3://bucket/g", {"aws_secret_access_key": "very secret"})
    assert "very secret" not in str(address)
    assert "very secret" not in repr(address)
