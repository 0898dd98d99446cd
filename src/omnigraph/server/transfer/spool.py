"""Bodies that are too large for memory: they are written to a file as they arrive, which the load then reads."""

from __future__ import annotations

import asyncio
import mmap
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from tempfile import TemporaryFile
from typing import BinaryIO, Final

import pyarrow as pa
from starlette.types import Receive

from omnigraph.errors import MediaUnsupported, RequestError, ResourceLimit
from omnigraph.server.transfer.bodies import CODECS, body_pieces
from omnigraph.server.transfer.heads import Head

_PIECE: Final = 1 << 20
"""So many bytes are held in memory before they are written."""
Content = bytes | mmap.mmap
"""A body: in memory, or in a file."""


@asynccontextmanager
async def spooled_body(head: Head, receive: Receive, limit: int, seconds: float) -> AsyncIterator[Content]:
    """The body of a request, unpacked, in a file that is gone afterwards. The caller is read from no faster than
    the file is written."""
    with TemporaryFile(prefix="omnigraph-") as file:
        held = bytearray()
        async for piece in body_pieces(receive, limit, seconds):
            held += piece
            if len(held) >= _PIECE:
                await asyncio.to_thread(file.write, bytes(held))
                held.clear()
        file.write(held)
        name = (head.get("content-encoding") or "identity").strip().lower()
        if name == "identity":
            yield _mapped(file)
            return
        if name not in CODECS:
            raise MediaUnsupported(name[:80], CODECS)
        with TemporaryFile(prefix="omnigraph-") as whole:
            await asyncio.to_thread(partial(_unpack, file, name, whole, limit))
            yield _mapped(whole)


def _unpack(packed: BinaryIO, codec: str, target: BinaryIO, limit: int) -> None:
    """Write what is packed in a file to another one, up to a limit, however much it is."""
    packed.seek(0)
    size = 0
    try:
        with pa.CompressedInputStream(pa.PythonFile(packed, "r"), codec) as stream:
            while piece := stream.read(_PIECE):
                size += len(piece)
                if size > limit:
                    raise ResourceLimit("bytes of a request's body", limit, size)
                target.write(piece)
    except (OSError, pa.ArrowInvalid) as error:
        raise RequestError(f"the body is not {codec}: {error}") from None


def _mapped(file: BinaryIO) -> Content:
    file.flush()
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if file.tell() else b""
