"""Every command and every program of every page runs as it is printed, and prints what the page says.

A page runs from top to bottom: one folder, one shell for its commands, one set of names for its programs. Blocks
that are marked `long` run in `make long`, after all blocks before them.
"""

from __future__ import annotations

import contextlib
import io
import re
import shutil
import socket
from pathlib import Path

import pytest
from tests.docs.pages import PAGES, ROOT, Block, alike, blocks_of, steps_of
from tests.docs.scenes import SCENES, Scene
from tests.docs.shell import Shell

OTHERS = {"text", "pg", "gq", "sql", "cypher", "json", "yaml"}
"""What no reader runs; schemas, queries and questions have tests of their own."""
PORT = "8080"
LONG = {page.name for page in PAGES if any(block.is_long for block in blocks_of(page))}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_does_what_it_says(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_page(page, [block for block in blocks_of(page) if not block.is_long], {}, tmp_path, monkeypatch)


@pytest.mark.long
@pytest.mark.parametrize("page", [page for page in PAGES if page.name in LONG], ids=lambda page: page.name)
def test_a_page_does_all_that_it_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    blocks = blocks_of(page)
    environment = {}
    if any("s3://" in block.text for block in blocks):
        environment = request.getfixturevalue("s3_server").store().environment()
    if any(block.language == "python" and "spark" in block.text for block in blocks):
        request.getfixturevalue("spark")  # the session that a program of the page then gets
    run_page(page, blocks, environment, tmp_path, monkeypatch)


def run_page(
    page: Path,
    blocks: list[Block],
    environment: dict[str, str],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = SCENES.get(page.name, Scene())
    place = shutil.copytree(ROOT / "examples", folder / "examples") / scene.folder
    if scene.folder == ".":
        place = place.parent
    monkeypatch.chdir(place)
    monkeypatch.setenv("OMNIGRAPH_HOME", str(place / "home"))
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    scene.prepare(place)
    names: dict[str, object] = {}
    with Shell(place, environment) as shell:
        port = free_port()
        for block in blocks:
            where = f"{page.name}:{block.line}"
            if block.language == "python":
                run_program(block, where, names, place, port)
            elif block.language == "console":
                run_steps(block, where, shell, place, port)
            elif block.language == "sh":
                shell.check(block.text.replace(PORT, port))
            else:
                assert block.language in OTHERS, f"{where}: nothing runs a block of {block.language}"


def run_program(block: Block, where: str, names: dict[str, object], place: Path, port: str) -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block.text.replace(PORT, port), where, "exec"), names)
    if block.said is not None:
        assert alike(block.said, printed.getvalue(), place), f"{where} prints\n{printed.getvalue()}"


def run_steps(block: Block, where: str, shell: Shell, place: Path, port: str) -> None:
    for step in steps_of(block):
        if step.command.startswith("make "):
            assert step.command.removeprefix("make ") in targets()  # CI itself runs them
            continue
        code, printed = shell.run(step.command.replace(PORT, port))
        ended = f"{where}: {step.command}\nended with {code} and printed\n{printed}"
        assert (code != 0) == step.said.startswith("error: "), ended
        if step.said:
            assert alike(step.said, printed.replace(port, PORT), place), ended


def targets() -> set[str]:
    return set(re.findall(r"^(\w+):.*##", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def free_port() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


def test_what_differs_from_run_to_run_is_alike() -> None:
    place = Path("/tmp/place")
    id_, other = "01M7F7SR61QNPAP6GR3195NZPZ", "01M7F7SS4668M337FHB5VE1F9J"
    assert alike(f"committed as {id_}\n", f"committed as {other}\n", place)
    assert alike("committed as ID\n", f"committed as {id_}\n", place)
    assert alike("at 2026-11-15 08:42:46\n", "at 2027-01-01 00:00:00\n", place)
    assert alike("created g.omni\n", "created /tmp/place/g.omni\n", place)
    assert alike("first\n…\nlast\n", "first\nsecond\nthird\nlast\n", place)
    assert not alike("committed 1 record\n", "committed 2 records\n", place)
    assert not alike("first\n…\nlast\n", "first\nlast but one\n", place)


def test_a_block_that_nothing_runs_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text("```bash\necho hello\n```\n")
    with pytest.raises(AssertionError, match="nothing runs a block of bash"):
        run_page(page, blocks_of(page), {}, tmp_path, monkeypatch)


@pytest.mark.parametrize(
    "text",
    [
        "```console\n$ echo hello\nhallo\n```\n",
        "```console\n$ exit_with_an_error\n```\n",
        "```sh\nfalse\ntrue\n```\n",
        "```python\nprint(1)\n```\n\n```text\n2\n```\n",
        "```console\nomnigraph version\n```\n",
    ],
)
def test_a_page_that_is_wrong_is_noticed(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(AssertionError):
        run_page(page, blocks_of(page), {}, tmp_path, monkeypatch)
