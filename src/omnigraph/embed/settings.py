"""The embedding client that the environment configures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from omnigraph.embed import variables
from omnigraph.embed.batches import BatchLimits
from omnigraph.embed.http import HttpClient
from omnigraph.embed.providers import PROVIDERS, Provider
from omnigraph.embed.transport import RetryPolicy
from omnigraph.errors import EmbeddingUnavailable

_DEFAULT_PROVIDER: Final = "openai-compatible"


def http_client(provider: str, environment: Mapping[str, str]) -> HttpClient | None:
    """The client for a provider, or for OMNIGRAPH_EMBED_BASE_URL; None if neither is set."""
    settings = _Settings(environment)
    base_url = settings.text(variables.BASE_URL)
    if not provider:
        if base_url is None:
            return None
        provider = _DEFAULT_PROVIDER
    api = PROVIDERS.get(provider)
    if api is None:
        raise EmbeddingUnavailable(
            f"{variables.PROVIDER}={provider} is not a provider; there are {', '.join(PROVIDERS)} and mock"
        )
    return HttpClient(
        provider,
        settings.text(variables.MODEL) or api.model,
        _checked_url(base_url) if base_url else api.base_url,
        _api_key(api, settings, required=base_url is None),
        BatchLimits(
            settings.number(variables.BATCH, 64, 1), settings.number(variables.BATCH_CHARACTERS, 100_000, 1)
        ),
        RetryPolicy(
            settings.number(variables.TIMEOUT, 30_000, 1) / 1000,
            settings.number(variables.DEADLINE, 60_000, 0) / 1000,
            settings.number(variables.ATTEMPTS, 4, 1),
            settings.number(variables.BACKOFF, 200, 0) / 1000,
        ),
        settings.number(variables.CONCURRENCY, 4, 1),
        sends_dimension=(settings.text(variables.DIMENSIONS) or "on").lower() not in ("off", "0", "false"),
    )


class _Settings:
    """Reads environment variables. One that is empty or blank counts as not set."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def text(self, name: str) -> str | None:
        return self._environment.get(name, "").strip() or None

    def number(self, name: str, default: int, minimum: int) -> int:
        value = self.text(name)
        if value is None:
            return default
        if not (value.isascii() and value.isdigit()) or int(value) < minimum:
            raise EmbeddingUnavailable(f"{name}={value} is not a whole number from {minimum}")
        return int(value)


def _api_key(provider: Provider, settings: _Settings, *, required: bool) -> str | None:
    """The API key, from the first variable that is set. A server that the user runs may need none."""
    names = (variables.API_KEY, *provider.keys)
    name = next((name for name in names if settings.text(name) is not None), None)
    found = None if name is None else settings.text(name)
    if found is None and required:
        raise EmbeddingUnavailable(f"{provider.name} wants a key; set {' or '.join(names)}")
    if found is not None and not (found.isascii() and found.isprintable()):
        raise EmbeddingUnavailable(f"{name} has characters that no key has; copy the key again")
    return found


def _checked_url(text: str) -> str:
    """The base URL without a slash at its end, refused if it has more than a scheme, a host, a port and a path."""
    try:
        parts = urlsplit(text)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address or not text.isprintable() or " " in text:
        raise EmbeddingUnavailable(
            f"{variables.BASE_URL} is not an http:// or https:// address; give one like http://localhost:11434/v1"
        )
    if parts.username is not None or parts.query or parts.fragment:
        raise EmbeddingUnavailable(
            f"{variables.BASE_URL} has a user, a query or a fragment; give the key in {variables.API_KEY}"
        )
    return text.rstrip("/")
