"""How the checks of a load are shared among tasks: no more tasks for the ends of edges than run at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.bulk.loading import InlineRunner, Task, Value, edge, load_by_tasks, node, small_slices, write

import omnigraph
from omnigraph.bulk.load.checking.checks import Check
from omnigraph.bulk.runner import TaskResult
from omnigraph.settings import Settings

SCHEMA = "node Person { name: String @key } edge Knows: Person -> Person"


@pytest.mark.parametrize("edges", [1, 7, 60, 85, 100, 131])
def test_files_of_any_size_are_checked_by_as_many_tasks_as_run_at_a_time(
    edges: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks: list[tuple[Check, ...]] = []

    def noted(
        self: InlineRunner, step: str, work: Callable[[Task], TaskResult[Value]], given: Sequence[Task]
    ) -> list[Value]:
        tasks.extend(task for task in given if step == "checking keys and ends" and isinstance(task, tuple))
        return run(self, step, work, given)

    run = InlineRunner.run
    monkeypatch.setattr(InlineRunner, "run", noted)
    graph = omnigraph.init(tmp_path / "g", SCHEMA, settings=Settings(bulk=small_slices(700, rows_per_file=7)))
    people = [node("Person", name=f"p{number}") for number in range(10)]
    knows = [edge("Knows", f"p{number % 10}", "p0") for number in range(edges)]
    assert (
        load_by_tasks(graph, write(tmp_path / "data.jsonl", people + knows), mode="append").edges["Knows"] == edges
    )
    assert 1 <= len(tasks) <= InlineRunner.cores
    for side in ("src", "dst"):
        checked = [
            file for checks in tasks for check in checks if check.columns == (side,) for file in check.files
        ]
        assert sum(file.rows for file in checked) == edges
        assert len({file.name for file in checked}) == len(checked)
        assert [file.slice for file in checked] == sorted(file.slice for file in checked)
