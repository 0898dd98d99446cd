"""Bytes of objects of an allowed bucket."""

from __future__ import annotations

from collections.abc import Generator, Mapping

import obstore
from obstore.exceptions import BaseError, NotFoundError

from omnigraph.errors import BlobSourceUnavailable, OmniError
from omnigraph.storage.address import parse_address
from omnigraph.storage.control.remote import s3_store


def object_pieces(bucket: str, key: str, options: Mapping[str, str]) -> Generator[bytes | int]:
    """The size of an object, then its bytes, piece by piece, with the credentials of the graph's own store."""
    uri = f"s3://{bucket}/{key}"
    try:
        found = obstore.get(s3_store(parse_address(f"s3://{bucket}", options)), key)
        yield int(found.meta["size"])
        for piece in found.stream():
            yield bytes(piece)
    except (NotFoundError, FileNotFoundError):
        raise BlobSourceUnavailable(uri, "there is no such object") from None
    except (BaseError, OSError, OmniError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise BlobSourceUnavailable(uri, reason[:300] or type(error).__name__) from None
