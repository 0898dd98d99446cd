"""The lines with `curl` in the guides, and the commands of the container file: they work as they are printed."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
from pathlib import Path

import pytest
from tests.cli.command import COMMAND

ROOT = Path(__file__).parents[2]
GUIDES = (ROOT / "README.md", ROOT / "docs/server.md")
BLOCK = re.compile(r"```sh\n(.*?)```", re.DOTALL)
PRINTED = [
    block for guide in GUIDES for block in BLOCK.findall(guide.read_text(encoding="utf-8")) if "curl" in block
]


@pytest.mark.long
@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
@pytest.mark.parametrize("block", PRINTED)
def test_lines_with_curl_work_as_printed(block: str, tmp_path: Path) -> None:
    """In a copy of the examples, with a free port in the place of 8080."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = tmp_path / "bin" / "omnigraph"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.join(COMMAND)} "$@"\n')
    program.chmod(0o755)
    ran = subprocess.run(
        ["bash", "-e", "-c", block.replace("8080", str(port))],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert ran.returncode == 0, (ran.stdout, ran.stderr)
    assert '{"status":"ready"}' in ran.stdout
    for said in ('"row_count":2', '"total_entities":', '"commits":['):
        assert said in ran.stdout, ran.stdout


def test_the_container_file_names_what_is_there() -> None:
    """Its commands were run by hand in a fresh environment; here only what can go stale is looked at."""
    text = (ROOT / "Containerfile").read_text(encoding="utf-8")
    for source in re.findall(r"^COPY (.*) \S+$", text, re.MULTILINE):
        for name in source.split():
            assert (ROOT / name).exists(), name
    (entry,) = re.findall(r"^ENTRYPOINT (.*)$", text, re.MULTILINE)
    assert json.loads(entry)[0].endswith("/omnigraph")
    (extras,) = re.findall(r"\.\[([a-z,]+)\]", text)
    known = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for extra in extras.split(","):
        assert f"\n{extra} = [" in known
