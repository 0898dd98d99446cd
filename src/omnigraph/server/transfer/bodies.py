"""Bodies: requests are read up to a limit and unpacked; answers are packed if the caller takes them so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final

import pyarrow as pa
from starlette.types import Receive

from omnigraph.errors import MediaUnsupported, RequestError, RequestIncomplete, ResourceLimit
from omnigraph.server.transfer.heads import Head

_PACKED_FROM: Final = 1_024
"""Smaller answers are not worth the work of packing them."""
CODECS: Final = ("zstd", "gzip")
"""How bodies may be packed, the best first."""


def media_type(header: str | None) -> str:
    """The media type of a header, without its parameters."""
    return (header or "").partition(";")[0].strip().lower()


def accepted(header: str | None, gives: Sequence[str]) -> str:
    """The form of an answer that a caller prefers among those of a route; the first one if it takes any."""
    if header is None or not header.strip():
        return gives[0]
    wanted = []
    for part in header.split(","):
        name, *options = (piece.strip() for piece in part.split(";"))
        wanted.append((-_quality(options), name.lower()))
    for refused, name in sorted(wanted, key=lambda each: each[0]):
        if refused == 0:
            continue
        for form in gives:
            if name in (form, "*/*", f"{form.partition('/')[0]}/*"):
                return form
    raise MediaUnsupported(header[:80], gives)


def codec_for(header: str | None) -> str | None:
    """How an answer may be packed, by the caller's `Accept-Encoding`."""
    taken = set()
    for part in (header or "").split(","):
        name, *options = (piece.strip() for piece in part.split(";"))
        if _quality(options) > 0:
            taken.add(name.lower())
    return next((codec for codec in CODECS if codec in taken), None)


def _quality(options: Sequence[str]) -> float:
    for option in options:
        if option.startswith("q="):
            try:
                return float(option[2:])
            except ValueError:
                return 0.0
    return 1.0


def announced(head: Head, limit: int) -> int:
    """How many bytes a body has by its header, or may have without one; ResourceLimit if that is too much."""
    given = head.get("content-length")
    if given is None:
        return limit if "transfer-encoding" in head.headers else 0
    size = int(given) if given.isascii() and given.isdecimal() else limit + 1
    if size > limit:
        raise ResourceLimit("bytes of a request's body", limit, size)
    return size


async def read_body(receive: Receive, limit: int, seconds: float) -> bytes:
    """The bytes of a body; never more than the limit is held."""
    return b"".join([piece async for piece in body_pieces(receive, limit, seconds)])


async def body_pieces(receive: Receive, limit: int, seconds: float) -> AsyncIterator[bytes]:
    """The pieces of a body as they arrive. RequestIncomplete if it takes too long, RequestError if its end never
    comes, ResourceLimit if there are more bytes than the limit."""
    size, deadline = 0, asyncio.get_running_loop().time() + seconds
    while True:
        try:
            async with asyncio.timeout_at(deadline):
                message = await receive()
        except TimeoutError:
            raise RequestIncomplete(size, seconds) from None
        if message["type"] == "http.disconnect":
            raise RequestError("the caller went away before the body had arrived")
        piece: bytes = message.get("body", b"")
        size += len(piece)
        if size > limit:
            raise ResourceLimit("bytes of a request's body", limit, size)
        yield piece
        if not message.get("more_body", False):
            return


def unpacked(content: bytes, encoding: str | None, limit: int) -> bytes:
    """A body without its `Content-Encoding`. It is unpacked up to the limit, however much is packed in it."""
    name = (encoding or "identity").strip().lower()
    if name == "identity":
        return content
    if name not in CODECS:
        raise MediaUnsupported(name[:80], CODECS)
    try:
        with pa.CompressedInputStream(pa.BufferReader(content), name) as stream:
            found: bytes = stream.read(limit + 1)
    except (OSError, pa.ArrowInvalid) as error:
        raise RequestError(f"the body is not {name}: {error}") from None
    if len(found) > limit:
        raise ResourceLimit("bytes of a request's body", limit, len(found))
    return found


def packed(content: bytes, codec: str | None) -> tuple[bytes, Mapping[str, str]]:
    """An answer as the caller takes it, and the headers that say so."""
    if codec is None or len(content) < _PACKED_FROM:
        return content, {}
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(content)
    return sink.getvalue().to_pybytes(), {"Content-Encoding": codec, "Vary": "Accept-Encoding"}
