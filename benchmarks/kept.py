"""Graphs that benchmarks keep between runs: how they are loaded, and where they lie."""

from __future__ import annotations

import multiprocessing as mp
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Final, TypeVar

Made = TypeVar("Made")
_SLICE: Final = 24 << 20


def slices(lines: Iterable[str]) -> Iterator[str]:
    """Records as text in pieces small enough for a load in this process."""
    piece: list[str] = []
    size = 0
    for line in lines:
        piece.append(line)
        size += len(line) + 1
        if size > _SLICE:
            yield "\n".join(piece)
            piece, size = [], 0
    if piece:
        yield "\n".join(piece)


def apart(work: Callable[..., Made], *arguments: object) -> Made:
    """Do some work in a fresh process. This one stays small, because its highest memory counts as the other's."""
    with ProcessPoolExecutor(1, mp_context=mp.get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


def kept_graph(name: str, build: Callable[[Path, int, int], None], nodes: int, edges: int, rebuild: bool) -> Path:
    """The graph of that name and size, built first if it is not there; half a build does not count."""
    home = Path(tempfile.gettempdir()) / f"omnigraph-bench-{name}-{nodes}-{edges}-1.omni"
    if rebuild:
        shutil.rmtree(home, ignore_errors=True)
    if not home.exists():
        part = home.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        start = time.perf_counter()
        apart(build, part, nodes, edges)
        part.rename(home)
        print(f"Built {nodes:,} nodes and {edges:,} edges in {time.perf_counter() - start:.0f} s")
    return home
