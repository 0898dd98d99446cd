"""Server-sent events: the changes of a branch as they are made."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Final

from omnigraph.errors import OmniError
from omnigraph.history.feed.pages import ChangePage
from omnigraph.messages.failures import failure_body

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
    which connects again goes on behind the last one that it got. If there is no next page, since the branch was
    deleted or its history cleaned up, the last event is an error."""
    page, last = first, time.monotonic()
    yield _event(page)
    while not is_over():
        has_more = page.next_page_token is not None
        try:
            if has_more:
                page = await poll({"page_token": page.next_page_token})
            else:
                if page.caught_up:
                    await asyncio.sleep(_PAUSE)
                page = await poll({"cursor": page.cursor})
        except OmniError as error:
            yield _failure(error)
            return
        if has_more or page.blocks:
            last = time.monotonic()
            yield _event(page)
        elif time.monotonic() - last > _HEARTBEAT:
            last = time.monotonic()
            yield b": nothing new\n\n"


def _event(page: ChangePage) -> bytes:
    """One page as an event; JSON has no line breaks."""
    data = _encoded(page.as_json())
    known = "" if page.cursor is None else f"id: {page.cursor}\n"
    return f"{known}event: changes\ndata: {data}\n\n".encode()


def _failure(error: OmniError) -> bytes:
    """Why there are no more events, as the body of an answer has it."""
    return f"event: error\ndata: {_encoded(failure_body(error))}\n\n".encode()


def _encoded(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
