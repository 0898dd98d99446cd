"""Graph addresses: local paths, `file://`, `s3://` and `memory://`, and the settings that go with them."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from omnigraph.arguments import described, text_argument
from omnigraph.errors import InvalidAddress, InvalidArgument
from omnigraph.records import dataclass


class Scheme(StrEnum):
    """The kinds of stores a graph can live in."""

    LOCAL = "file"
    S3 = "s3"
    MEMORY = "memory"


_LONGEST_REMOTE: Final = 700
"""Keys of object stores have up to 1,024 bytes, and those of a graph are longer than its address."""

_SCHEMES = {scheme.value: scheme for scheme in Scheme}

_ENVIRONMENT = {
    "aws_access_key_id": ("AWS_ACCESS_KEY_ID",),
    "aws_secret_access_key": ("AWS_SECRET_ACCESS_KEY",),
    "aws_session_token": ("AWS_SESSION_TOKEN",),
    "aws_region": ("AWS_REGION", "AWS_DEFAULT_REGION"),
    "aws_endpoint": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    "allow_http": ("AWS_ALLOW_HTTP",),
    "aws_s3_force_path_style": ("AWS_S3_FORCE_PATH_STYLE",),
}

_OTHER_NAMES = {
    "access_key_id": "aws_access_key_id",
    "secret_access_key": "aws_secret_access_key",
    "session_token": "aws_session_token",
    "region": "aws_region",
    "aws_default_region": "aws_region",
    "endpoint": "aws_endpoint",
    "endpoint_url": "aws_endpoint",
    "aws_endpoint_url": "aws_endpoint",
    "aws_endpoint_url_s3": "aws_endpoint",
    "aws_allow_http": "allow_http",
}


@dataclass(frozen=True, slots=True)
class Address:
    """Where a graph is. ``root`` is absolute and has no trailing slash; ``options`` reach every client."""

    scheme: Scheme
    root: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        return self.root

    @property
    def lance_root(self) -> str:
        """The root as Lance spells it."""
        if self.scheme is Scheme.MEMORY:
            return "shared-" + self.root
        return self.root

    @property
    def endpoint(self) -> str | None:
        """The S3 endpoint, where it is not Amazon's own."""
        return self.options.get("aws_endpoint")

    @property
    def bucket(self) -> str:
        return urlsplit(self.root).netloc

    @property
    def prefix(self) -> str:
        """The path below the bucket or the memory store's name."""
        return urlsplit(self.root).path.strip("/")


def parse_address(uri: str | os.PathLike[str], options: Mapping[str, str] | None = None) -> Address:
    """The address a user wrote. For `s3://`, settings come from ``options`` and else from the AWS_* variables."""
    given = uri if isinstance(uri, str) else os.fspath(uri) if isinstance(uri, os.PathLike) else uri
    text = text_argument("uri", given).strip()
    if not text:
        raise InvalidAddress(text, "it is empty")
    if "\0" in text:
        raise InvalidAddress(text, "it has a null character")
    if not isinstance(options, Mapping | None):
        raise InvalidArgument("storage_options", f"they are a mapping of texts, not {described(options)}")
    name, separator, rest = text.partition(":")
    scheme = _SCHEMES.get(name.lower())
    if not rest.startswith("//"):
        if separator and scheme:
            raise InvalidAddress(text, f"write {scheme}:// with two slashes, or ./{text} for a local path")
        return _local(text, text)
    if scheme is None:
        raise InvalidAddress(text, "graphs live on local paths, file://, s3:// and memory://")
    if scheme is Scheme.LOCAL:
        return _local(text, _path_of_url(text))
    root = _remote_root(text, scheme)
    return Address(scheme, root, _s3_options(options or {}) if scheme is Scheme.S3 else {})


def _path_of_url(text: str) -> str:
    parts = urlsplit(text)
    if parts.netloc not in ("", "localhost"):
        raise InvalidAddress(text, "a file:// address names no host")
    if parts.query or parts.fragment:
        raise InvalidAddress(text, "a file:// address has no query and no fragment; write '#' as %23")
    if not parts.path:
        raise InvalidAddress(text, "it names no path")
    return unquote(parts.path)


def _local(text: str, path: str) -> Address:
    if "?" in path:
        raise InvalidAddress(text, "branches cannot be kept below a directory with '?' in its name")
    try:
        resolved = Path(path).expanduser().resolve()
        _require_short(resolved)
        return Address(Scheme.LOCAL, str(resolved))
    except (RuntimeError, ValueError) as error:
        raise InvalidAddress(text, str(error)) from error
    except OSError as error:
        raise InvalidAddress(text, error.strerror or str(error)) from error


def _require_short(path: Path) -> None:
    """Raise the OSError of a path that is too long; any other trouble shows when it is used."""
    try:
        path.lstat()
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise


def _remote_root(text: str, scheme: Scheme) -> str:
    """Bucket and path, spelled so that every client understands the same: nothing quoted, nothing to resolve."""
    name, _, path = text[len(scheme) + 3 :].partition("/")
    path = path.strip("/")
    if not name:
        raise InvalidAddress(text, "it names no bucket" if scheme is Scheme.S3 else "it names no store")
    for unclear in "?#%":
        if unclear in text:
            raise InvalidAddress(text, f"'{unclear}' does not mean the same to every client; choose another name")
    if path and {"", ".", ".."} & set(path.split("/")):
        raise InvalidAddress(text, "its path has an empty or relative segment")
    if len(text.encode()) > _LONGEST_REMOTE:
        raise InvalidAddress(text, f"it has more than {_LONGEST_REMOTE} bytes")
    return f"{scheme}://{name}/{path}".rstrip("/")


def _s3_options(given: Mapping[str, str]) -> dict[str, str]:
    """The settings for S3 clients: what was given, else what the environment says."""
    found: dict[str, str] = {}
    for option, variables in _ENVIRONMENT.items():
        for variable in variables:
            if value := os.environ.get(variable):
                found[option] = value
                break
    for name, value in given.items():
        found[_OTHER_NAMES.get(name.lower(), name.lower())] = str(value)
    path_style = found.pop("aws_s3_force_path_style", "").lower()
    if path_style in ("true", "1"):
        found["aws_virtual_hosted_style_request"] = "false"
    if found.get("aws_endpoint", "").startswith("http://") and "allow_http" not in found:
        found["allow_http"] = "false"
    return found
