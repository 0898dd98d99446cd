"""A power cut takes what was not synced, and nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.faults.disk import heard_from, watched
from tests.faults.power import Names, power_cut
from tests.processes import say


def synced(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def nothing_synced(root: Path) -> None:
    (root / "new").write_text("new")


def file_synced(root: Path) -> None:
    (root / "new").write_text("new")
    synced(root / "new")


def folder_synced(root: Path) -> None:
    (root / "new").write_text("new")
    synced(root)


def both_synced(root: Path) -> None:
    (root / "new").write_text("new")
    synced(root / "new")
    synced(root)


def written_after_sync(root: Path) -> None:
    both_synced(root)
    with (root / "new").open("a") as file:
        file.write("er")


def replaced(root: Path) -> None:
    file_synced(root)
    (root / "new").rename(root / "old")


def replaced_and_synced(root: Path) -> None:
    replaced(root)
    synced(root)


def replaced_twice(root: Path) -> None:
    replaced_and_synced(root)
    (root / "newer").write_text("newer")
    (root / "newer").rename(root / "old")


def removed(root: Path) -> None:
    (root / "old").unlink()


def removed_and_synced(root: Path) -> None:
    removed(root)
    synced(root)


def made_and_removed(root: Path) -> None:
    both_synced(root)
    (root / "new").unlink()


def linked(root: Path) -> None:
    both_synced(root)
    (root / "also").hardlink_to(root / "new")


def linked_and_synced(root: Path) -> None:
    linked(root)
    (root / "new").unlink()
    synced(root)


def new_folder(root: Path) -> None:
    (root / "folder").mkdir()
    both_synced(root / "folder")


def new_folder_synced(root: Path) -> None:
    new_folder(root)
    synced(root)


def folder_removed(root: Path) -> None:
    new_folder_synced(root)
    (root / "folder" / "new").unlink()
    (root / "folder").rmdir()


OLD = {"old": "old"}
"""What is there at the beginning."""

LEFT: list[tuple[Callable[[Path], None], dict[str, str]]] = [
    (nothing_synced, OLD),
    (file_synced, OLD),
    (folder_synced, {**OLD, "new": ""}),
    (both_synced, {**OLD, "new": "new"}),
    (written_after_sync, {**OLD, "new": ""}),
    (replaced, OLD),
    (replaced_and_synced, {"old": "new"}),
    (replaced_twice, {"old": "new"}),
    (removed, OLD),
    (removed_and_synced, {}),
    (made_and_removed, {**OLD, "new": "new"}),
    (linked, {**OLD, "new": "new"}),
    (linked_and_synced, {**OLD, "also": "new"}),
    (new_folder, OLD),
    (new_folder_synced, {**OLD, "folder/new": "new"}),
    (folder_removed, {**OLD, "folder/new": "new"}),
]


def cut_after(folder: Path, work: Callable[[Path], None], kept: float, names: Names) -> None:
    root, graves = folder / "root", folder / "graves"
    root.mkdir()
    graves.mkdir()
    (root / "old").write_text("old")
    with watched(root, folder / "journal", graves) as disk:
        work(root)
        journal = disk.journal()
    power_cut(root, journal, graves, kept, names)
    say({str(path.relative_to(root)): path.read_text() for path in sorted(root.rglob("*")) if path.is_file()})


@pytest.mark.parametrize(("work", "left"), LEFT, ids=lambda value: getattr(value, "__name__", ""))
def test_what_is_left(tmp_path: Path, work: Callable[[Path], None], left: dict[str, str]) -> None:
    assert heard_from(cut_after, tmp_path, work, 0.0, "lost") == [str(dict(sorted(left.items())))]


def test_a_part_of_the_bytes_may_be_left(tmp_path: Path) -> None:
    assert heard_from(cut_after, tmp_path, written_after_sync, 0.5, "lost") == ["{'new': 'ne', 'old': 'old'}"]


def test_names_may_be_left_whose_bytes_are_lost(tmp_path: Path) -> None:
    assert heard_from(cut_after, tmp_path, nothing_synced, 0.0, "kept") == ["{'new': '', 'old': 'old'}"]
