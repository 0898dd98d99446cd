"""Options that take plain values as they are do what Typer's own do, and leave all mistakes to Typer."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from omnigraph.cli.quick import take_plain_values
from omnigraph.cli.verbs import VERBS, VerbGroup


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


def shown(
    place: Annotated[str, typer.Argument()],
    other: Annotated[str | None, typer.Argument()] = None,
    text: Annotated[str | None, typer.Option("--text")] = None,
    file: Annotated[Path | None, typer.Option("--file", exists=True, dir_okay=False, readable=True)] = None,
    out: Annotated[Path | None, typer.Option("--out", dir_okay=False, writable=True)] = None,
    folder: Annotated[Path | None, typer.Option("--folder", exists=True, file_okay=False)] = None,
    colour: Annotated[Colour, typer.Option("--colour")] = Colour.RED,
    size: Annotated[int, typer.Option("--size", min=1)] = 5,
    share: Annotated[float | None, typer.Option("--share", parser=lambda given: float(given) / 100)] = None,
    name: Annotated[list[str] | None, typer.Option("--name")] = None,
    loud: Annotated[bool, typer.Option("--loud/--quiet")] = False,
) -> None:
    typer.echo(repr((place, other, text, file, out, folder, colour, size, share, name, loud)))


GIVEN = [
    ["here"],
    [],
    ["here", "there", "--text", ""],
    ["here", "--text", "ä 漢字"],
    ["here", "--text"],
    ["here", "--file", "is.txt"],
    ["here", "--file", "missing.txt"],
    ["here", "--file", "folder"],
    ["here", "--out", "new.txt"],
    ["here", "--out", "folder"],
    ["here", "--folder", "folder"],
    ["here", "--folder", "is.txt"],
    ["here", "--colour", "blue"],
    ["here", "--colour", "BLUE"],
    ["here", "--colour", "green"],
    ["here", "--size", "7", "--share", "50"],
    ["here", "--size", "0"],
    ["here", "--size", "many"],
    ["here", "--name", "a", "--name", "b", "--loud"],
    ["here", "--unknown"],
]


def command() -> Any:
    app = typer.Typer(add_completion=False)
    app.command()(shown)
    return typer.main.get_command(app)


@pytest.mark.parametrize("words", GIVEN, ids=" ".join)
def test_plain_values_mean_what_they_mean_to_typer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "is.txt").touch()
    (tmp_path / "folder").mkdir()
    quick = command()
    take_plain_values(quick)
    ours, theirs = _ran(quick, words), _ran(command(), words)
    assert ours[0] == theirs[0]
    assert _bare(ours[1]) == _bare(theirs[1]).replace("Value error, ", "")


def _bare(text: str) -> str:
    """A text without the box around it, which is as wide as it is long."""
    return " ".join(re.sub("[─│╭╮╰╯]", " ", text).split())


def _ran(found: Any, words: list[str]) -> tuple[int, str]:
    app = typer.Typer(add_completion=False)

    class Group(VerbGroup):
        def __init__(self, **attributes: Any) -> None:
            super().__init__(**attributes)
            self.commands = {"shown": found}

    app.info.cls = Group
    app.callback()(lambda: None)
    done = CliRunner().invoke(app, ["shown", *words])
    return done.exit_code, done.output


def test_every_verb_can_be_imported() -> None:
    commands = VerbGroup(name="omnigraph").commands
    assert {name: command.name for name, command in commands.items()} == {name: name for name in VERBS}
