"""For how long a lock is kept for the next write follows from how soon the last ones came."""

from __future__ import annotations

import pytest

from omnigraph.storage.locking.pauses import Pauses

MOST = 0.03


class Writes:
    """Writes of a process at times of the test's own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        self.pauses = Pauses()
        monkeypatch.setattr("omnigraph.storage.locking.pauses.time.monotonic", lambda: self.now)

    def after(self, *pauses: float) -> float:
        """How long the lock is kept after writes with these pauses between them."""
        self.pauses.note_end()
        for pause in pauses:
            self.now += pause
            self.pauses.note_begin()
            self.pauses.note_end()
        return self.pauses.worth_waiting(MOST)


@pytest.fixture
def writes(monkeypatch: pytest.MonkeyPatch) -> Writes:
    return Writes(monkeypatch)


def test_nothing_is_known_after_the_first_write(writes: Writes) -> None:
    assert writes.after() == MOST


@pytest.mark.parametrize(
    ("pauses", "kept"),
    [
        pytest.param([0.01], 0.02, id="twice the pause"),
        pytest.param([0.01, 0.002, 0.001], 0.02, id="twice the longest of the last ones"),
        pytest.param([0.01, *[0.004] * 8], 0.008, id="of the last eight only"),
        pytest.param([0.0001], MOST / 6, id="but never next to nothing"),
        pytest.param([0.02], MOST, id="nor longer than asked for"),
        pytest.param([0.01, 0.04], 0.02, id="a pause that was a little too long does not count"),
        pytest.param([0.04], MOST, id="even if there was no other"),
        pytest.param([0.001, 5.0], 0.0, id="not at all if the last one was much too long"),
        pytest.param([5.0, 0.01], 0.02, id="again when it comes again"),
    ],
)
def test_it_is_kept_for(writes: Writes, pauses: list[float], kept: float) -> None:
    assert writes.after(*pauses) == pytest.approx(kept)


def test_threads_that_wait_in_line_meanwhile_begin_no_pause(writes: Writes) -> None:
    writes.after(0.01)
    writes.now += 0.002
    writes.pauses.note_begin()
    writes.now += 9.0
    writes.pauses.note_begin()
    assert writes.pauses.worth_waiting(MOST) == pytest.approx(0.02)
