"""The bar on a terminal, warnings above it, and Ctrl-C."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import omnigraph
from omnigraph.bulk.runner import JobEvent
from omnigraph.cli import progress
from omnigraph.cli.main import app
from omnigraph.cli.output import print_warning, reports_errors
from omnigraph.cli.progress import Bar, amounts, watched
from omnigraph.errors import JobCancelled

SHOW = """
import sys
from omnigraph.bulk.runner import JobEvent
from omnigraph.cli.output import print_warning
from omnigraph.cli.progress import watched
with watched() as job:
    job["listener"](JobEvent("j", "waiting", 0, 0))
    job["listener"](JobEvent("j", "reading", 1, 4, 1000, 2_000_000, 1.0, 0.25))
    print_warning("look at this")
    job["listener"](JobEvent("j", "reading", 4, 4, 4000, 8_000_000, 2.0, 1.0))
print("done")
"""


def on_a_terminal(code: str) -> str:
    """What a person sees of a program whose standard error is a terminal."""
    main, terminal = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=terminal,
        check=True,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "120"},
    )
    os.close(terminal)
    seen = b""
    try:
        while piece := os.read(main, 65536):
            seen += piece
    except OSError:
        pass
    os.close(main)
    assert done.stdout == b"done\n"
    return seen.decode()


def test_a_bar_shows_share_bytes_rows_and_rate_and_warnings_stand_above_it() -> None:
    seen = on_a_terminal(SHOW)
    assert "25%" in seen
    assert "2.0 MB, 1,000 rows, 1,000 rows/s" in seen
    assert "warning: look at this" in seen
    assert "Traceback" not in seen
    assert seen.index("look at this") < seen.index("8.0 MB, 4,000 rows")


WAIT = """
import os, signal, time
from omnigraph.bulk.runner import JobEvent
from omnigraph.cli.progress import watched
with watched() as job:
    job["listener"](JobEvent("j", "starting Spark", 0, 1))
    time.sleep(2.2)
    os.kill(os.getpid(), signal.SIGINT)
    assert job["cancellation"].is_cancelled
print("done")
"""


@pytest.mark.long
def test_the_time_goes_on_while_a_job_says_nothing_and_an_interrupt_is_answered() -> None:
    seen = on_a_terminal(WAIT)
    assert "0:00:01" in seen
    assert "stopping in order; Ctrl-C once more stops at once" in seen


REDIRECTED = WAIT.replace(
    "    time.sleep(2.2)",
    """    kept = os.dup(2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    time.sleep(2.2)""",
).replace("    assert", "    os.dup2(kept, 2)\n    assert")


@pytest.mark.long
def test_the_bar_goes_on_and_an_interrupt_is_answered_while_standard_error_goes_to_a_file() -> None:
    """As it does while Java starts, so that what Java says later goes there."""
    seen = on_a_terminal(REDIRECTED)
    assert "0:00:01" in seen
    assert "stopping in order; Ctrl-C once more stops at once" in seen


def test_nothing_in_a_pipe() -> None:
    code = SHOW.replace('job["listener"](', "(job['listener'] or (lambda _: None))(")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"done\n", b"warning: look at this\n")


def test_a_bar_that_cannot_be_drawn_is_given_up_and_the_job_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    class Broken:
        def add_task(self, *_: object, **__: object) -> int:
            raise RuntimeError("no such terminal")

        def stop(self) -> None:
            pass

    bar = Bar(Broken())  # type: ignore[arg-type]
    for _ in range(2):
        bar.listen(JobEvent("j", "reading", 0, 0))
    assert capsys.readouterr().err == "warning: progress cannot be shown: no such terminal\n"


def test_amounts_are_told_in_the_singular_and_the_plural() -> None:
    assert amounts(JobEvent("j", "s", 1, 1, 1, 0, 1.0)) == "1 row, 1 rows/s"
    assert amounts(JobEvent("j", "s", 0, 1)) == ""


def test_a_step_that_counts_no_rows_shows_none() -> None:
    assert amounts(JobEvent("j", "finding rows", 1, 1, 0, 3_000_000, 2.0)) == "3.0 MB, 1.5 MB/s"


def test_the_first_interrupt_cancels_and_the_second_ends_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGINT)

    def interrupted_twice() -> None:
        with watched() as job:
            assert not job["cancellation"].is_cancelled
            os.kill(os.getpid(), signal.SIGINT)
            assert job["cancellation"].is_cancelled
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(typer.Exit) as ended:
        interrupted_twice()
    assert ended.value.exit_code == progress.INTERRUPTED == 130
    assert "`omnigraph log` shows whether the commit was made" in capsys.readouterr().err
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("error", [JobCancelled("01J"), KeyboardInterrupt()], ids=["cancelled", "interrupted"])
def test_an_interrupted_command_says_so_and_ends_with_130(
    error: BaseException, capsys: pytest.CaptureFixture[str]
) -> None:
    @reports_errors
    def command(*, as_json: bool) -> None:
        raise error

    with pytest.raises(typer.Exit) as ended:
        command(as_json=False)
    assert ended.value.exit_code == 130
    assert "cancelled; nothing was committed" in (err := capsys.readouterr().err) or err == "interrupted\n"
    with pytest.raises(typer.Exit) as ended:
        command(as_json=True)
    assert ended.value.exit_code == 130
    assert "error" in json.loads(capsys.readouterr().out)


def test_an_export_that_is_interrupted_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while the first task runs, in the command as a user runs it."""
    graph = omnigraph.init(tmp_path / "g.omni", "node N { k: String @key }")
    graph.load([{"type": "N", "data": {"k": "a"}}], mode="append")
    require = omnigraph.bulk.runner.LocalRunner.require_active

    def interrupt(self: omnigraph.bulk.runner.LocalRunner) -> None:
        assert self.cancellation is not None
        if not self.cancellation.is_cancelled:
            os.kill(os.getpid(), signal.SIGINT)
        while not self.cancellation.is_cancelled:
            time.sleep(0.01)
        require(self)

    monkeypatch.setattr(omnigraph.bulk.runner.LocalRunner, "require_active", interrupt)
    done = CliRunner().invoke(app, ["export", f"{tmp_path}/g.omni", "--out", f"{tmp_path}/out/"])
    assert done.exit_code == 130
    assert "the job was cancelled; nothing was committed" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_warning_without_a_bar_goes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    print_warning("[x] y")
    assert capsys.readouterr().err == "warning: [x] y\n"
