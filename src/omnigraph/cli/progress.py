"""How far a job is, on the terminal, and what Ctrl-C does to it.

Showing progress never decides how a command ends: whatever goes wrong with it is a warning, once. In a pipe, and
with `--quiet`, nothing is shown.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import IO, TYPE_CHECKING, Final, TypedDict

import typer

from omnigraph.cli.output import live, print_note, print_warning
from omnigraph.cli.scope.options import said

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from omnigraph.bulk.runner import JobEvent
    from omnigraph.maintenance.copying.transfer import CopyEvent
    from omnigraph.read.limits import Cancellation

INTERRUPTED: Final = 130
"""The exit code of a command that Ctrl-C ended."""
_STEADY: Final = 0.1
"""How many seconds the bar stays as it is at least."""
_PAUSE: Final = 0.5
"""After how many seconds at most the time of a step is drawn again."""


class Watched(TypedDict):
    """The keywords with which a job is watched and can be stopped."""

    listener: Callable[[JobEvent], None] | None
    cancellation: Cancellation


@contextmanager
def watched() -> Iterator[Watched]:
    """Show how far a job is, and let Ctrl-C stop it: once to end it in order, twice to end it at once."""
    from omnigraph.read.limits import Cancellation

    cancellation = Cancellation()
    with ExitStack() as stack:
        bar = stack.enter_context(_shown_bar()) if is_shown() else None
        answer = _say_that_it_stops if is_shown() else None
        stack.enter_context(_stopped_by_interrupt(cancellation, answer))
        try:
            yield {"listener": None if bar is None else bar.listen, "cancellation": cancellation}
        except KeyboardInterrupt:
            stack.close()
            sys.stderr.write(
                "interrupted at once: `omnigraph log` shows whether the commit was made, and "
                "`omnigraph jobs --clean` removes what the job left behind\n"
            )
            raise typer.Exit(INTERRUPTED) from None


def is_shown() -> bool:
    """Is there a terminal to show progress on, and does the user want it?"""
    try:
        return sys.stderr.isatty() and not said().get("quiet")
    except (AttributeError, ValueError):
        return False


def _say_that_it_stops() -> None:
    with suppress(Exception):  # whatever it is, the job is cancelled
        print_note("stopping in order; Ctrl-C once more stops at once")


@contextmanager
def _stopped_by_interrupt(cancellation: Cancellation, answer: Callable[[], None] | None) -> Iterator[None]:
    """Let the first Ctrl-C cancel, and the next one raise KeyboardInterrupt. Only a main thread has signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)

    def cancel(*_: object) -> None:
        cancellation.cancel()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if answer is not None:
            answer()

    signal.signal(signal.SIGINT, cancel)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class Bar:
    """A bar for each step of a job. One that cannot be drawn any more is given up, with a warning."""

    def __init__(self, progress: Progress) -> None:
        self._progress: Progress | None = progress
        self._steps: dict[str, TaskID] = {}
        self._drawn = 0.0

    def tick(self) -> None:
        """Show how long the step takes, although nothing else is known of it."""
        self._guarded(lambda progress: progress.refresh())

    def listen(self, event: JobEvent) -> None:
        """Show how far a job is."""
        share = event.share if event.share is not None else event.done / event.tasks if event.tasks else None
        self._show(event.step, share, amounts(event))

    def copied(self, event: CopyEvent) -> None:
        """Show how much is copied."""
        share = event.bytes / event.total_bytes if event.total_bytes else None
        files = f"{event.done:,} file{'' if event.done == 1 else 's'}"
        self._show(event.step, share, f"{event.bytes / 1e6:,.1f} of {event.total_bytes / 1e6:,.1f} MB, {files}")

    def _show(self, step: str, share: float | None, done: str) -> None:
        self._guarded(lambda progress: self._draw(progress, step, share, done))

    def _guarded(self, draw: Callable[[Progress], None]) -> None:
        if self._progress is None:
            return
        try:
            draw(self._progress)
        except Exception as error:  # noqa: BLE001  whatever it is, it is not the job that failed
            _end(self._progress, error)
            self._progress = None

    def _draw(self, progress: Progress, step: str, share: float | None, done: str) -> None:
        is_new = step not in self._steps
        if is_new:
            self._steps[step] = progress.add_task(step, total=None, amounts="")
        total, completed = (None, 0.0) if share is None else (1.0, min(share, 1.0))
        progress.update(self._steps[step], total=total, completed=completed, amounts=done)
        if is_new or completed == total or time.monotonic() - self._drawn > _STEADY:
            self._drawn = time.monotonic()
            progress.refresh()


@contextmanager
def copying() -> Iterator[Callable[[CopyEvent], None] | None]:
    """A listener that shows on the terminal how much is copied; None where there is no terminal."""
    if not is_shown():
        yield None
        return
    with _shown_bar() as bar:
        yield None if bar is None else bar.copied


@contextmanager
def _shown_bar() -> Iterator[Bar | None]:
    """A bar on standard error for as long as the job runs; None, and a warning, if it cannot be drawn."""
    with _terminal() as terminal:
        yield from _drawn_bar(terminal)


@contextmanager
def _terminal() -> Iterator[IO[str]]:
    """The terminal behind standard error, as a file of its own: while Java starts, that goes elsewhere."""
    try:
        own = os.dup(sys.stderr.fileno())
    except (OSError, ValueError):
        yield sys.stderr
        return
    with open(own, "w", encoding=sys.stderr.encoding, errors="replace") as terminal:  # noqa: PTH123  a descriptor
        yield terminal


def _drawn_bar(terminal: IO[str]) -> Iterator[Bar | None]:
    progress = None
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[amounts]}"),
            TimeElapsedColumn(),
        )
        progress = Progress(*columns, console=Console(file=terminal), transient=True, auto_refresh=False)
        progress.start()
        live(progress.console)
    except Exception as error:  # noqa: BLE001  the job has not begun, and runs as well without a bar
        _end(progress, error)
        progress = None
    if progress is None:
        yield None
        return
    bar = Bar(progress)
    try:
        with _ticking(bar):
            yield bar
    finally:
        _end(progress, None)


@contextmanager
def _ticking(bar: Bar) -> Iterator[None]:
    """Draw a bar now and then, also while the job says nothing, so that its time goes on."""
    is_over = threading.Event()

    def tick() -> None:
        while not is_over.wait(_PAUSE):
            bar.tick()

    thread = threading.Thread(target=tick, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join(_PAUSE)


def _end(progress: Progress | None, error: Exception | None) -> None:
    """Take the bar away, and say what went wrong with it."""
    live(None)
    try:
        if progress is not None:
            progress.stop()
        if error is not None:
            print_warning(f"progress cannot be shown: {error}")
    except (OSError, ValueError):
        return  # the terminal is gone, so there is no place to say so


def amounts(event: JobEvent) -> str:
    """The rows and bytes that a step has done, and how fast."""
    if not event.rows and not event.bytes:
        return ""
    seconds = max(event.seconds, 0.001)
    if not event.rows:
        return f"{event.bytes / 1e6:,.1f} MB, {event.bytes / 1e6 / seconds:,.1f} MB/s"
    size = f"{event.bytes / 1e6:,.1f} MB, " if event.bytes else ""
    rows = f"{event.rows:,} row{'' if event.rows == 1 else 's'}"
    return f"{size}{rows}, {event.rows / seconds:,.0f} rows/s"
