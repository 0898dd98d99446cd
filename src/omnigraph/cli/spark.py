"""What commands that can run on Spark have in common: where to run, and how far they are."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from omnigraph.bulk.runner import JobEvent


class EngineName(StrEnum):
    """Who does the work."""

    AUTO = "auto"
    LOCAL = "local"
    SPARK = "spark"


Engine = Annotated[EngineName, typer.Option("--engine", help="auto decides by size: this process, or Spark.")]
Master = Annotated[
    str | None,
    typer.Option("--master", help="A Spark master, as spark://host:port. Default: local[*].", show_default=False),
]
Remote = Annotated[
    str | None, typer.Option("--remote", help="A Spark Connect address: sc://host:port.", show_default=False)
]


@contextmanager
def progress() -> Iterator[Callable[[JobEvent], None] | None]:
    """A listener that shows step, share, rows, bytes and rate on the terminal; None where there is none."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        TextColumn("{task.fields[done]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        steps: dict[str, TaskID] = {}

        def listen(event: JobEvent) -> None:
            if event.step not in steps:
                steps[event.step] = bar.add_task(event.step, total=event.tasks or None, done="")
            bar.update(steps[event.step], completed=event.done, total=event.tasks or None, done=amounts(event))

        yield listen


def amounts(event: JobEvent) -> str:
    """The rows and bytes that a step has done, and how fast."""
    if not event.rows and not event.bytes:
        return ""
    seconds = max(event.seconds, 0.001)
    size = f", {event.bytes / 1e6:,.0f} MB" if event.bytes else ""
    return f"{event.rows:,} rows{size}, {event.rows / seconds:,.0f} rows/s"
