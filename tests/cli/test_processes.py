"""The command as a process of its own: the same output and exit codes as the rest of these tests see."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.command import COMMAND, EXAMPLES, omnigraph, omnigraph_process

SCHEMA = str(EXAMPLES / "schema.pg")
QUERIES = str(EXAMPLES / "queries.gq")
INSTALLED = Path(sys.executable).with_name("omnigraph")
RETIRE = ("mutate", "retire", "--query", QUERIES, "--params", '{"call": "cob"}')


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with one empty graph."""
    path = tmp_path_factory.mktemp("processes")
    assert omnigraph("init", "--schema", SCHEMA, "g.omni", cwd=path).code == 0
    return path


@pytest.mark.parametrize(
    ("code", "args", "stdin"),
    [
        pytest.param(0, ("snapshot", "--json"), b"", marks=pytest.mark.long),
        (0, ("fmt", "-", "--language", "pg"), "node A{} // é".encode()),
        (1, ("lint", "--schema", SCHEMA, "--query", str(EXAMPLES / "mistakes.gq")), b""),
        pytest.param(1, ("branch", "delete", "M\udcfcller"), b"", marks=pytest.mark.long),
        (1, ("load", "--data", "-", "--mode", "merge", "--json"), b"nonsense\n"),
        pytest.param(2, ("lint", "--schema", "nowhere.pg"), b"", marks=pytest.mark.long),
        (2, ("no-such-command",), b""),
        (4, (*RETIRE, "--if-commit", "01ARZ3NDEKTSV4RRFFQ69G5FAV"), b""),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else None,
)
def test_a_process_gives_what_the_other_tests_see(
    folder: Path, code: int, args: tuple[str, ...], stdin: bytes
) -> None:
    ran = omnigraph_process(*args, stdin=stdin, cwd=folder)
    assert ran == omnigraph(*args, stdin=stdin, cwd=folder)
    assert ran.code == code


def test_the_installed_command() -> None:
    assert omnigraph_process("version", command=[str(INSTALLED)]) == omnigraph("version")


@pytest.mark.parametrize(("given", "found"), [(None, "20"), ("26", "26")])
def test_idle_threads_of_numpy_soon_stop_to_look_for_work(
    monkeypatch: pytest.MonkeyPatch, given: str | None, found: str
) -> None:
    name = "OPENBLAS_THREAD_TIMEOUT"
    monkeypatch.delenv(name, raising=False)
    if given is not None:
        monkeypatch.setenv(name, given)
    code = (
        "import atexit, os, sys\n"
        f"atexit.register(lambda: print(os.environ[{name!r}], 'numpy' in sys.modules))\n"
        "from omnigraph.cli.main import main\n"
        "assert 'numpy' not in sys.modules\n"
        "sys.argv = ['omnigraph', 'snapshot', 'nowhere.omni']\n"
        "main()\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.stdout.split()[-2:] == [found, "True"]


THREADED = """
import sys, time
import pyarrow as pa, pyarrow.csv


class Slow:
    closed = False
    reads = 0

    def read(self, count=-1):
        self.reads += 1
        time.sleep(0.3 if self.reads > 2 else 0)
        return b"a,b\\n" * 200_000

    def readable(self):
        return True

    def seekable(self):
        return False

    def close(self):
        pass


reader = pa.csv.open_csv(pa.PythonFile(Slow(), mode="r"), pa.csv.ReadOptions(block_size=1 << 20))
reader.read_next_batch()
sys.argv = ["omnigraph", "version"]
from omnigraph.cli.main import main

main()
"""
"""A program in which a thread of Arrow wants Python's lock for as long as the process lives."""


def test_a_thread_of_arrow_does_not_decide_how_a_command_ends() -> None:
    ran = omnigraph_process(command=[sys.executable, "-c", THREADED])
    assert ran == omnigraph("version")


def test_output_that_cannot_be_written_is_told() -> None:
    with Path("/dev/full").open("wb") as full:
        ran = subprocess.run([*COMMAND, "version"], stdout=full, stderr=subprocess.PIPE, check=False, timeout=60)
    assert ran.returncode != 0
    assert b"No space left" in ran.stderr


RECORD = b'{"type": "Pilot", "data": {"call": "fay", "status": "active"}}'
LOAD = ("load", "--data", "-", "--mode", "merge")


@pytest.mark.parametrize("more", [(), ("--json",)])
@pytest.mark.parametrize("out", ["full", "closed"])
def test_a_load_whose_report_cannot_be_written_is_made(folder: Path, out: str, more: tuple[str, ...]) -> None:
    """It says so, without a traceback: who takes it for a failed load would load it twice."""
    before = omnigraph("commit", "list", cwd=folder).out.count("\n")
    target = "> /dev/full" if out == "full" else ">&-"
    ran = subprocess.run(
        ["sh", "-c", f'"$@" {target}', "sh", *COMMAND, *LOAD, *more],
        input=RECORD,
        stderr=subprocess.PIPE,
        cwd=folder,
        check=False,
        timeout=60,
    )
    assert omnigraph("commit", "list", cwd=folder).out.count("\n") == before + 1
    assert b"Traceback" not in ran.stderr
    if out == "full":
        assert ran.returncode == 1
        assert b"No space left on device; what the command has done stays done" in ran.stderr
    else:
        assert (ran.returncode, ran.stderr) == (0, b"")


@pytest.mark.parametrize("target", ["/dev/full", "&-"])
def test_what_goes_to_standard_error_does_not_decide_how_a_command_ends(folder: Path, target: str) -> None:
    for args, code in ((LOAD, 0), (("snapshot", "--branch", "nowhere"), 1)):
        ran = subprocess.run(
            ["sh", "-c", f'"$@" 2>{target}', "sh", *COMMAND, *args],
            input=RECORD,
            stdout=subprocess.PIPE,
            cwd=folder,
            check=False,
            timeout=60,
        )
        assert ran.returncode == code


def test_a_large_result_that_finds_no_room_is_told(folder: Path) -> None:
    rows = b"\n".join(RECORD.replace(b"fay", b"f" + b"x" * number) for number in range(1, 200))
    assert omnigraph(*LOAD, stdin=rows, cwd=folder).code == 0
    for args in (("export",), ("query", "-e", "query q() { match { $p: Pilot } return { $p.call } }")):
        with Path("/dev/full").open("wb") as full:
            ran = subprocess.run(
                [*COMMAND, *args], stdout=full, stderr=subprocess.PIPE, cwd=folder, check=False, timeout=60
            )
        assert ran.returncode == 1
        assert ran.stderr.startswith(b"error: standard output cannot be written: No space left on device")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_lines_go_out_as_they_are_written(unbuffered: str) -> None:
    program = """
import os, sys
from omnigraph.cli.streams import take_over
take_over()
sys.stderr.write("said\\n")
os._exit(0)
"""
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    ran = subprocess.run(
        [sys.executable, "-c", program], stderr=subprocess.PIPE, env=environment, check=True, timeout=60
    )
    assert ran.stderr == b"said\n"
