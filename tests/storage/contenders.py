"""What child processes do in storage tests. Kept apart so that a child starts without the test tools."""

from __future__ import annotations

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
