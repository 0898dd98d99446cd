"""Tokens: where they are read from, and what a caller may not send."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from omnigraph.errors import RequestError, Unauthorized
from omnigraph.server.tokens import parse_tokens, read_tokens


def test_a_token_or_its_hash_names_an_actor(tmp_path: Path) -> None:
    hashed = hashlib.sha256(b"secret of bob").hexdigest()
    file = tmp_path / "tokens.json"
    file.write_text(json.dumps({"ada": "secret", "bob": f"sha256:{hashed}"}))
    tokens = read_tokens(file, {})
    assert tokens is not None
    assert tokens.actor(["Bearer secret"]) == "ada"
    assert tokens.actor(["bearer secret of bob"]) == "bob"
    assert "secret" not in repr(tokens)
    upper = parse_tokens(json.dumps({"bob": f"sha256:{hashed.upper()}"}), "tokens.json")
    assert upper.actor(["Bearer secret of bob"]) == "bob"
    for wrong in (None, "secret", "Bearer secret ", "Bearer sécret", f"Bearer sha256:{hashed}", "Bearer \udcff"):
        with pytest.raises(Unauthorized):
            tokens.actor([] if wrong is None else [wrong])


def test_the_environment_may_have_them_instead(tmp_path: Path) -> None:
    assert read_tokens(None, {}) is None
    one = read_tokens(None, {"OMNIGRAPH_SERVER_BEARER_TOKEN": "x"})
    several = read_tokens(None, {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": '{"ada": "x"}'})
    file = tmp_path / "tokens.json"
    file.write_text('{"bob": "x"}')
    in_file = read_tokens(None, {"OMNIGRAPH_SERVER_BEARER_TOKENS_FILE": str(file)})
    actors = [tokens.actor(["Bearer x"]) for tokens in (one, several, in_file) if tokens is not None]
    assert actors == ["default", "ada", "bob"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not JSON"),
        ("{}", "no tokens"),
        ('["x"]', "no tokens"),
        ('{"ada": ""}', "empty"),
        ('{"ada": 1}', "printable"),
        ('{"ada": "x "}', "printable"),
        ('{"": "x"}', "actor's name"),
        ('{"omnigraph:recovery": "x"}', "actor's name"),
        ('{"ada": "x", "bob": "x"}', "both 'ada' and 'bob'"),
        ('{"ada": "x", "ada": "y"}', "'ada' is given twice"),
        ('{"ada": "sha256:abc"}', "the hash of 'ada' is not 64 hexadecimal digits"),
        ('{"ada": "SHA256:' + "0" * 65 + '"}', "the hash of 'ada'"),
    ],
)
def test_tokens_that_cannot_be_used(text: str, reason: str) -> None:
    with pytest.raises(RequestError, match=reason):
        parse_tokens(text, "tokens.json")


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("OMNIGRAPH_SERVER_BEARER_TOKEN", " padded "),
        ("OMNIGRAPH_SERVER_BEARER_TOKEN", "two\nlines"),
        ("OMNIGRAPH_SERVER_BEARER_TOKENS_AWS_SECRET", "a secret that would be ignored"),
    ],
)
def test_variables_that_cannot_be_used(variable: str, value: str) -> None:
    with pytest.raises(RequestError, match=variable):
        read_tokens(None, {variable: value})


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="cannot be read"):
        read_tokens(tmp_path / "none.json", {})
