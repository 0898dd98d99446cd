"""A shell for the commands of one page. It is a real one, and `omnigraph` is a real process in it, which
`tests.forkserver` forks from one that has imported the engine."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

from tests.forkserver import Task, request

_END = "<end of a step> "
_PROGRAM = """\
#!{python} -IS
import json, os, signal, socket, sys
with socket.socket(socket.AF_UNIX) as asked:
    asked.connect({address!r})
    wanted = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(asked, [len(wanted).to_bytes(4, "big")], [0, 1, 2])
    asked.sendall(wanted)
    child = int.from_bytes(asked.recv(4), sys.byteorder)
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda number, _: os.kill(child, number))
    sys.exit(int.from_bytes(asked.recv(4), sys.byteorder, signed=True) & 255)
"""


class Shell:
    """A bash that lives as long as its page, so that variables and programs in the background do."""

    def __init__(self, place: Path, environment: Mapping[str, str]) -> None:
        self._folder = tempfile.TemporaryDirectory()  # its name is short, as those of sockets have to be
        self._requests = _Requests(Path(self._folder.name))
        path = f"{self._requests.folder}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self._process = subprocess.Popen(
            ["bash", "--norc", "--noprofile"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=place,
            env={**os.environ, **environment, "PATH": path, "COLUMNS": "80"},
            start_new_session=True,
        )

    def __enter__(self) -> Shell:
        return self

    def __exit__(self, *_: object) -> None:
        os.killpg(self._process.pid, signal.SIGTERM)  # what still runs in the background
        self._process.communicate()
        self._requests.close()
        self._folder.cleanup()

    def run(self, script: str) -> tuple[int, str]:
        """Run lines; the code of the first command that failed, and what all of them printed."""
        assert self._process.stdin
        assert self._process.stdout
        guarded = f"failed=0\ntrap 'failed=${{failed/#0/$?}}' ERR\n{{ {script}\n}} < /dev/null\ntrap - ERR\n"
        self._process.stdin.write(f"{guarded}printf '%s%s\\n' {shlex.quote(_END)} $failed\n".encode())
        self._process.stdin.flush()
        printed = b""
        while _END.encode() not in printed:
            line = self._process.stdout.readline()
            assert line, f"the shell ended in {script!r}: {printed.decode()}"
            printed += line
        output, _, code = printed.decode().partition(_END)
        return int(code), output

    def check(self, script: str) -> None:
        """Run lines of which none may fail."""
        code, printed = self.run(script)
        assert code == 0, f"{script}\nended with {code}\n{printed}"


class _Requests:
    """Takes what runs as `omnigraph` in the shell to the server that forks."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(folder / "s"))
        self._listening.listen()
        program = folder / "omnigraph"
        program.write_text(_PROGRAM.format(python=sys.executable, address=str(folder / "s")))
        program.chmod(0o755)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listening.close()

    def _serve(self) -> None:
        while True:
            try:
                asked, _ = self._listening.accept()
            except OSError:
                return
            with asked:
                length, streams, *_ = socket.recv_fds(asked, 4, 3)
                with asked.makefile("rb") as file:
                    words, folder, environment = json.loads(file.read(int.from_bytes(length, "big")))
                task = Task(__name__, command.__name__, (words, folder), environment)
                request(task, streams, asked.fileno())
                for stream in streams:
                    os.close(stream)


def command(words: list[str], folder: str) -> None:
    """Be `omnigraph` with these words, in a folder."""
    from omnigraph.cli.main import run

    sys.modules["__main__"] = ModuleType("__main__")  # whose package would be in usage messages
    warnings.resetwarnings()
    os.chdir(folder)
    sys.argv = ["omnigraph", *words]
    run()
