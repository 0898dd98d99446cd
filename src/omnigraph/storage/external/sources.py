"""The allow list of addresses from which blobs may be copied, and one write's reading of them."""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping
from contextlib import closing
from dataclasses import field
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from omnigraph.errors import BadValue, InvalidArgument, ResourceLimit
from omnigraph.records import dataclass
from omnigraph.settings import BlobSettings

SCHEMES: Final = ("file", "s3", "https", "http")
_LONGEST: Final = 64 << 10
_DISALLOWED: Final = "external blobs are not allowed here; give the bytes as `base64:…`"
_HIDDEN: Final = re.compile(r"%(2f|5c|2e|00|25)", re.IGNORECASE)
"""A slash, a backslash, a dot, a null or a percent sign that is written as an escape."""
_UNPRINTED: Final = re.compile(r"[\x00-\x20\x7f\\]")


@dataclass(frozen=True, slots=True)
class Place:
    """An address in its parts. ``path`` is decoded, begins with a slash, and has no empty segment and no dots."""

    scheme: str
    host: str
    path: str

    def __str__(self) -> str:
        return f"{self.scheme}://{self.host}{self.path}"


def place_of(text: str) -> Place:
    """The parts of an address; ValueError says what about it is not taken."""
    if len(text) > _LONGEST:
        raise ValueError(f"an address has up to {_LONGEST:,} characters")
    if _UNPRINTED.search(text):
        raise ValueError("an address has no blanks, control characters or backslashes")
    parts = urlsplit(text)
    if parts.scheme not in SCHEMES:
        raise ValueError(f"an address begins with {', '.join(f'{scheme}://' for scheme in SCHEMES)}")
    if "?" in text or "#" in text:
        raise ValueError("an address has no query and no fragment")
    if "@" in parts.netloc:
        raise ValueError("an address names no user and no password")
    if _HIDDEN.search(parts.path):
        raise ValueError("an address has no escaped slashes, dots, nulls or percent signs")
    host = _host(parts)
    try:
        path = unquote(parts.path, errors="strict")
    except UnicodeDecodeError:
        raise ValueError("the escapes of an address are UTF-8") from None
    if (
        _UNPRINTED.search(path.replace(" ", ""))
        or any(part in (".", "..") for part in path.split("/"))
        or "//" in path
    ):
        raise ValueError("an address has no empty segments, dots or control characters in its path")
    return Place(parts.scheme, host, path or "/")


def _host(parts: SplitResult) -> str:
    host = parts.netloc.lower()
    try:
        port = parts.port
    except ValueError:
        raise ValueError("the port of an address is a number") from None
    if parts.scheme == "file":
        if host not in ("", "localhost"):
            raise ValueError("a file:// address names no host")
        return ""
    if not parts.hostname:
        raise ValueError("an address names a host or a bucket")
    standard = {"http": 80, "https": 443}.get(parts.scheme)
    if port is not None and (parts.scheme == "s3" or port == standard):
        host = host.rpartition(":")[0]
    return host


def allowed_place(text: str) -> Place:
    """An entry of the allow list: everything below it may be read. InvalidArgument if it is none."""
    try:
        found = place_of(text)
    except ValueError as error:
        raise InvalidArgument("blobs.allow", f"'{text[:200]}' cannot be allowed: {error}") from None
    if found.scheme == "file" and found.path == "/":
        raise InvalidArgument("blobs.allow", "name a directory; all files of a machine cannot be allowed at once")
    return Place(found.scheme, found.host, found.path.rstrip("/") + "/")


@dataclass(frozen=True, slots=True)
class BlobSources:
    """Where blobs may be copied from, and how much. ``options`` are those of the graph's store, for buckets."""

    allowed: tuple[Place, ...] = ()
    settings: BlobSettings = field(default_factory=lambda: BlobSettings(allow=()))
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, settings: BlobSettings, options: Mapping[str, str]) -> BlobSources:
        """The sources that an operator has allowed."""
        return cls(tuple(allowed_place(each) for each in settings.allow), settings, options)

    def refusal(self, uri: str) -> str | None:
        """Why an address may not be read; None if it may. Nothing is looked up."""
        if not self.allowed:
            return _DISALLOWED
        try:
            place = place_of(uri)
        except ValueError as error:
            return f"{error}; give the bytes as `base64:…`"
        if self.base_of(place) is None or place.path.endswith("/"):
            return f"'{str(place)[:200]}' is not below an address that blobs may be copied from"
        return None

    def base_of(self, place: Place) -> Place | None:
        """The entry of the list that an address lies below; the longest, if there are several."""
        matching = (
            base
            for base in self.allowed
            if (base.scheme, base.host) == (place.scheme, place.host) and place.path.startswith(base.path)
        )
        return max(matching, key=lambda base: len(base.path), default=None)

    def reading(self) -> Reading:
        """A new count of the bytes of one write."""
        return Reading(self)


class Reading:
    """Copies blobs for one write, each address once, and counts their bytes."""

    def __init__(self, sources: BlobSources) -> None:
        self._sources = sources
        self._kept: dict[str, bytes] = {}
        self.bytes = 0

    def fetch(self, name: str, uri: str) -> bytes:
        """The bytes at an address, for the property of that name.

        BadValue if it may not be read, BlobSourceUnavailable if it cannot, ResourceLimit if it has too many bytes.
        """
        reason = self._sources.refusal(uri)
        if reason is not None:
            raise BadValue(f"{name}: {reason}")
        if uri not in self._kept:
            self._kept[uri] = self._read(uri)
        content = self._kept[uri]
        self.bytes += len(content)
        require_room(self._sources.settings, self.bytes)
        return content

    def forget(self) -> None:
        """Let go of the bytes; they stay counted."""
        self._kept.clear()

    def _read(self, uri: str) -> bytes:
        sources, place = self._sources, place_of(uri)
        base = sources.base_of(place)
        assert base is not None  # noqa: S101  it was allowed
        limit = min(sources.settings.largest, sources.settings.total - self.bytes)
        content = bytearray()
        with closing(self._pieces(uri, place, base)) as found:
            for piece in found:
                size = piece if isinstance(piece, int) else len(content) + len(piece)
                if size > limit:
                    self._refuse(size)
                if not isinstance(piece, int):
                    content += piece
        return bytes(content)

    def _pieces(self, uri: str, place: Place, base: Place) -> Generator[bytes | int]:
        """The size of what is there, if it is known before, and its bytes, piece by piece."""
        if place.scheme == "file":
            from omnigraph.storage.external.files import file_pieces

            return file_pieces(base.path, place.path)
        if place.scheme == "s3":
            from omnigraph.storage.external.buckets import object_pieces

            return object_pieces(place.host, place.path.removeprefix("/"), self._sources.options)
        from omnigraph.storage.external.web import web_pieces

        return web_pieces(place.scheme, place.host, urlsplit(uri).path, self._sources.settings.seconds)

    def _refuse(self, size: int) -> None:
        settings = self._sources.settings
        if size > settings.largest:
            raise ResourceLimit("bytes of one external blob", settings.largest, size)
        require_room(settings, self.bytes + size)


def require_room(settings: BlobSettings, size: int) -> None:
    """Raise ResourceLimit if one write copies more bytes than it may."""
    if size > settings.total:
        raise ResourceLimit("bytes of external blobs of one write", settings.total, size)
