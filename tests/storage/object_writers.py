"""What child processes do in the middle of writing an object. Kept apart to start without the test tools."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable
from typing import Any

from tests.processes import hear, say
from tests.stores import Store, present

from omnigraph.errors import StorageUnavailable


def before_sync(action: Callable[[], None]) -> None:
    """Do something whenever this process is about to sync a file."""
    sync = os.fsync

    def act_and_sync(fd: Any) -> None:
        action()
        sync(fd)

    os.fsync = act_and_sync


def stop_while(store: Store, operation: str) -> None:
    """In a child: freeze in the middle of an operation."""
    objects = store.objects()
    token = objects.put("a", b"before")

    def freeze() -> None:
        say("frozen")
        os.kill(os.getpid(), signal.SIGSTOP)

    before_sync(freeze)
    if operation == "put_if_match":
        objects.put_if_match("a", b"after", token)
    else:
        objects.put("a", b"after")


def die_while_putting(store: Store) -> None:
    """In a child: be killed with half of a put done."""
    objects = store.objects()
    before_sync(lambda: os.kill(os.getpid(), signal.SIGKILL))
    objects.put("folder/a", b"after")


def write_too_much(store: Store, limit: int) -> None:
    """In a child that may write only so many bytes to a file: try to put more, then say what came of it."""
    objects = store.objects()
    objects.put("folder/a", b"before")
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    for operation in (objects.put, objects.put_if_absent):
        try:
            operation("folder/a" if operation == objects.put else "folder/b", b"x" * (limit + 100))
        except StorageUnavailable as error:
            say(error)
        else:
            say("accepted")
    say(present(objects, "folder/a").content.decode())
    hear()
