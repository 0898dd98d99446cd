"""Bytes from an allowed web server. Redirects are not followed, proxies are not used, and a name that leads into
the own network is refused."""

from __future__ import annotations

import http.client
import ipaddress
import socket
import ssl
import time
from collections.abc import Generator
from typing import Any, Final

from omnigraph.errors import BlobSourceUnavailable

_PIECE: Final = 256 << 10
_OK: Final = 200


def web_pieces(scheme: str, host: str, path: str, seconds: float) -> Generator[bytes | int]:
    """The length of an answer, if it says one, then its bytes, piece by piece, all within some seconds."""
    uri, deadline = f"{scheme}://{host}{path}", time.monotonic() + seconds
    try:
        connection = _connected(scheme, host, seconds)
        try:
            headers = {"Accept": "*/*", "Accept-Encoding": "identity", "User-Agent": "omnigraph"}
            connection.request("GET", path, headers=headers)
            yield from _answered(uri, connection.getresponse(), deadline)
        finally:
            connection.close()
    except (OSError, http.client.HTTPException, UnicodeError) as error:
        raise BlobSourceUnavailable(uri, str(error)[:300] or type(error).__name__) from None


def _answered(uri: str, answer: http.client.HTTPResponse, deadline: float) -> Generator[bytes | int]:
    if answer.status != _OK:
        followed = "; redirects are not followed" if 300 <= answer.status < 400 else ""
        raise BlobSourceUnavailable(uri, f"it answers {answer.status} {answer.reason[:80]}{followed}")
    if answer.getheader("Content-Encoding", "identity").lower() != "identity":
        raise BlobSourceUnavailable(uri, "it answers with compressed bytes, which were not asked for")
    expected, read = answer.length, 0
    if expected is not None:
        yield expected
    while piece := answer.read1(_PIECE):
        read += len(piece)
        yield piece
        if time.monotonic() > deadline:
            raise BlobSourceUnavailable(uri, "it takes too long")
    if expected is not None and read < expected:
        raise BlobSourceUnavailable(uri, f"it ends after {read:,} of {expected:,} bytes")


def _connected(scheme: str, host: str, seconds: float) -> http.client.HTTPConnection:
    """A connection to an address that was looked at, so that no second look-up can lead elsewhere."""
    made: http.client.HTTPConnection
    if scheme == "https":
        made = http.client.HTTPSConnection(host, timeout=seconds, context=ssl.create_default_context())
    else:
        made = http.client.HTTPConnection(host, timeout=seconds)
    address = _address(made.host, made.port)

    def connect(_: Any, timeout: Any = seconds, source: Any = None) -> socket.socket:
        return socket.create_connection(address, timeout, source)

    made._create_connection = connect  # type: ignore[attr-defined]  # TLS still checks the name
    return made


def _address(host: str, port: int) -> tuple[str, int]:
    """Where a host is. A name has to lead to public addresses; an operator who allows others writes the address
    itself, or `localhost`."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [str(each[4][0]) for each in found]
    if host != "localhost" and not _is_literal(host):
        inner = [each for each in addresses if not ipaddress.ip_address(each.partition("%")[0]).is_global]
        if inner:
            raise OSError(f"{host} leads to {inner[0]}, which is no public address")
    return addresses[0], port


def _is_literal(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
