"""Graphs on the disk that are made once per process, and copied for each test that needs one.

A copy is a graph of its own: opening it gives its branches their new addresses, as of any graph that was moved.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import omnigraph
from omnigraph import Graph


@dataclass(frozen=True)
class Copies:
    """The graphs that were made so far, in a folder of theirs."""

    folder: Path
    made: dict[Callable[[Path], object], Path] = field(default_factory=dict)

    def graph(self, make: Callable[[Path], object], place: Path) -> Graph:
        """The graph that `make` makes, at a place where none is yet."""
        if make not in self.made:
            self.made[make] = self.folder / str(len(self.made))
            make(self.made[make])
        shutil.copytree(self.made[make], place)
        return omnigraph.open(place)
