"""Providers of embeddings: where vectors are computed, and which variable of the environment has the key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from omnigraph.cluster.configuration.document import Value
from omnigraph.cluster.configuration.fields import Fields
from omnigraph.embed import variables
from omnigraph.errors import EmbeddingUnavailable

if TYPE_CHECKING:
    from omnigraph.embed.client import EmbeddingClient

MOCK: Final = "mock"
_REFERENCE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_KNOWN: Final = ("kind", "provider", "base_url", "model", "api_key")


@dataclass(frozen=True, slots=True)
class ProviderConfig:
    """A provider. ``api_key`` is the name of a variable, never a key."""

    name: str
    kind: str
    base_url: str | None = None
    model: str | None = None
    api_key: str | None = None

    def as_json(self) -> dict[str, Any]:
        """What the ledger keeps: a reference in the place of the secret."""
        key = None if self.api_key is None else f"${{{self.api_key}}}"
        return {"kind": self.kind, "base_url": self.base_url, "model": self.model, "api_key": key}

    def client(self, environment: Mapping[str, str]) -> EmbeddingClient:
        """The client, with the secret of an environment; EmbeddingUnavailable if something is missing or wrong."""
        if self.kind == MOCK:
            from omnigraph.embed.mock import MockClient

            return MockClient(self.model or MOCK)
        from omnigraph.embed.settings import http_client

        own = (variables.BASE_URL, variables.MODEL, variables.PROVIDER)
        given = {name: value for name, value in environment.items() if name not in own}
        if self.api_key is not None:
            given[variables.API_KEY] = environment.get(self.api_key, "")
        if self.base_url is not None:
            given[variables.BASE_URL] = self.base_url
        if self.model is not None:
            given[variables.MODEL] = self.model
        made = http_client(self.kind, given)
        if made is None:
            raise EmbeddingUnavailable(f"'{self.kind}' is not a provider")
        return made


def read_provider(fields: Fields, name: str, given: Value) -> ProviderConfig:
    """A provider as cluster.yaml has it."""
    where = f"providers.embedding.{name}"
    found = fields.mapping(where, given, _KNOWN)
    kind = fields.text(f"{where}.kind", found.get("kind") or found.get("provider"))
    if kind is None and not found.keys() & {"kind", "provider"}:
        fields.refuse("provider_invalid", where, given, "it has no kind")
    if found.keys() >= {"kind", "provider"}:
        fields.refuse("provider_invalid", where, given, "kind and provider are two words for one thing")
    made = ProviderConfig(
        name,
        kind or MOCK,
        fields.text(f"{where}.base_url", found.get("base_url")),
        fields.text(f"{where}.model", found.get("model")),
        _reference(fields, f"{where}.api_key", found.get("api_key")),
    )
    keys = {variables.API_KEY: "key"} if made.api_key is None else {made.api_key: "key"}
    try:
        made.client(keys)
    except EmbeddingUnavailable as error:
        fields.refuse("provider_invalid", where, given, str(error))
    return made


def profile_of(name: str, stored: Mapping[str, Any]) -> ProviderConfig:
    """A provider as the ledger has it."""
    key = _REFERENCE.fullmatch(stored.get("api_key") or "")
    kind = stored.get("kind")
    return ProviderConfig(name, str(kind), stored.get("base_url"), stored.get("model"), key[1] if key else None)


def _reference(fields: Fields, where: str, given: Value | None) -> str | None:
    """The variable that a secret is in; a secret that is written down is a mistake, and is not repeated."""
    if given is None:
        return None
    found = _REFERENCE.fullmatch(given.found) if isinstance(given.found, str) else None
    if found is None:
        fields.refuse("secret_not_reference", where, given, "write ${NAME}, a variable of the environment")
        return None
    return found[1]
