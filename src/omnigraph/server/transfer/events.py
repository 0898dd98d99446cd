"""Server-sent events: the changes of a branch as they are made."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Final

from omnigraph.history.feed.pages import ChangePage

MEDIA_TYPE: Final = "text/event-stream"
_PAUSE: Final = 0.5
"""How long a follower that has caught up waits before it looks again, in seconds."""
_HEARTBEAT: Final = 15.0
"""After so many seconds without changes a comment is sent, by which both sides see that the other is there."""

Poll = Callable[[Mapping[str, Any]], ChangePage]
"""A page of changes, from a `cursor` or a `page_token`."""


async def events(
    first: ChangePage, poll: Callable[[Mapping[str, Any]], Awaitable[ChangePage]], is_over: Callable[[], bool]
) -> AsyncIterator[bytes]:
    """The pages after the first, forever. Each page with a cursor has it as the id of its event, so that a caller
    which connects again goes on behind the last one that it got."""
    page, last = first, time.monotonic()
    yield _event(page)
    while not is_over():
        if page.next_page_token is not None:
            page = await poll({"page_token": page.next_page_token})
        else:
            if page.caught_up:
                await asyncio.sleep(_PAUSE)
            page = await poll({"cursor": page.cursor})
            if not page.blocks:
                if time.monotonic() - last > _HEARTBEAT:
                    last = time.monotonic()
                    yield b": nothing new\n\n"
                continue
        last = time.monotonic()
        yield _event(page)


def _event(page: ChangePage) -> bytes:
    """One page as an event; JSON has no line breaks."""
    data = json.dumps(page.as_json(), ensure_ascii=False, separators=(",", ":"))
    known = "" if page.cursor is None else f"id: {page.cursor}\n"
    return f"{known}event: changes\ndata: {data}\n\n".encode()
