"""Bearer tokens: who a caller is. Only hashes are kept, and a token is compared with all of them."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from omnigraph.arguments import LONGEST_ACTOR, unique_members
from omnigraph.errors import RequestError, Unauthorized

TOKENS_FILE: Final = "OMNIGRAPH_SERVER_BEARER_TOKENS_FILE"
TOKENS_JSON: Final = "OMNIGRAPH_SERVER_BEARER_TOKENS_JSON"
TOKEN: Final = "OMNIGRAPH_SERVER_BEARER_TOKEN"  # noqa: S105  the name of a variable
AWS_SECRET: Final = "OMNIGRAPH_SERVER_BEARER_TOKENS_AWS_SECRET"  # noqa: S105  the name of a variable
DEFAULT_ACTOR: Final = "default"
_RESERVED: Final = "omnigraph:"
_HASH: Final = re.compile(r"sha256:(.*)", re.IGNORECASE)
_DIGITS: Final = re.compile(r"[0-9a-fA-F]{64}")
_SCHEME: Final = "bearer "


@dataclass(frozen=True, slots=True)
class Tokens:
    """The hashes of a server's tokens, and the actor of each."""

    actors: Mapping[bytes, str]

    def actor(self, headers: Sequence[str]) -> str:
        """The actor of a request, by its `Authorization` headers. Every hash is compared, so that the time does
        not tell which one was near."""
        if not headers:
            raise Unauthorized("the request has no token")
        if len(headers) > 1:
            raise Unauthorized("the request has more than one Authorization")
        (authorization,) = headers
        if authorization[: len(_SCHEME)].lower() != _SCHEME:
            raise Unauthorized("the request's Authorization is not a bearer token")
        given = _hashed(authorization[len(_SCHEME) :])
        found: str | None = None
        for known, actor in self.actors.items():
            if hmac.compare_digest(known, given):
                found = actor
        if found is None:
            raise Unauthorized("the token is unknown")
        return found


def read_tokens(file: Path | None, environment: Mapping[str, str]) -> Tokens | None:
    """The tokens of a file, or of the environment; None if there are none."""
    if environment.get(AWS_SECRET):
        raise RequestError(
            f"{AWS_SECRET} cannot be used: this server reads no secrets of AWS; write them to a file"
        )
    named = file or (Path(environment[TOKENS_FILE]) if environment.get(TOKENS_FILE) else None)
    if named is not None:
        try:
            return parse_tokens(named.read_text(encoding="utf-8"), str(named))
        except (OSError, UnicodeDecodeError) as error:
            raise RequestError(f"the tokens file {named} cannot be read: {error}") from None
    if environment.get(TOKENS_JSON):
        return parse_tokens(environment[TOKENS_JSON], TOKENS_JSON)
    if environment.get(TOKEN):
        return _tokens({DEFAULT_ACTOR: environment[TOKEN]}, TOKEN)
    return None


def parse_tokens(text: str, source: str) -> Tokens:
    """Tokens that are written as `{"actor": "token"}`, where `sha256:…` stands for a token by its hash."""
    try:
        given = json.loads(text, object_pairs_hook=unique_members)
    except ValueError as error:
        raise RequestError(f"{source} is not JSON: {error}") from None
    if not isinstance(given, dict) or not given:
        raise RequestError(f'{source} has no tokens; write {{"ACTOR": "TOKEN"}}')
    return _tokens(given, source)


def _tokens(given: Mapping[str, object], source: str) -> Tokens:
    actors: dict[bytes, str] = {}
    for actor, written in given.items():
        token = _checked(actor, written, source)
        hashes = _HASH.fullmatch(token)
        if hashes and not _DIGITS.fullmatch(hashes[1]):
            raise RequestError(f"{source}: the hash of '{actor}' is not 64 hexadecimal digits")
        hashed = bytes.fromhex(hashes[1]) if hashes else _hashed(token)
        if hashed in actors:
            raise RequestError(f"{source} has one token for both '{actors[hashed]}' and '{actor}'")
        actors[hashed] = actor
    return Tokens(actors)


def _checked(actor: str, token: object, source: str) -> str:
    """A token that can be sent in a header; RequestError for any other, and for a name that no actor can have."""
    if not actor.strip() or len(actor) > LONGEST_ACTOR or actor.startswith(_RESERVED) or not actor.isprintable():
        raise RequestError(f"{source}: '{actor[:40]}' cannot be an actor's name")
    if not isinstance(token, str) or not token.isascii() or not token.isprintable() or token != token.strip():
        raise RequestError(f"{source}: the token of '{actor}' is not a text of printable ASCII characters")
    if not token:
        raise RequestError(f"{source}: the token of '{actor}' is empty")
    return token


def _hashed(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogateescape")).digest()
