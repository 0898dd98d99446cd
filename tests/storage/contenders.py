"""What child processes do with control objects. Kept apart so that they start without the test tools."""

from __future__ import annotations

import itertools

from tests.processes import ready, say
from tests.stores import Store

CLAIMS = [f"claim/{number}" for number in range(20)]


def claim(store: Store, me: int) -> None:
    """In a child: claim whatever is free; say what was won."""
    objects = store.objects()
    objects.has("warm-up")
    ready()
    say(" ".join(key for key in CLAIMS if objects.put_if_absent(key, b"%d" % me) is not None))


def count_up(store: Store, times: int) -> None:
    """In a child: add one to the counter, again and again."""
    objects = store.objects()
    objects.has("counter")
    ready()
    for _ in range(times):
        while True:
            found = objects.get("counter")
            assert found is not None
            if objects.put_if_match("counter", b"%d" % (int(found.content) + 1), found.token) is not None:
                break


def rewrite(store: Store) -> None:
    """In a child: write the same object until killed."""
    objects = store.objects()
    ready()
    for number in itertools.cycle(range(10)):
        objects.put("a", b"%d" % number * 50_000)
