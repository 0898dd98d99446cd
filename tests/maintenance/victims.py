"""A process that builds indexes and is killed, by a failpoint armed in its environment.

::

    OMNIGRAPH_FAILPOINTS=write.after_tables=kill python -m tests.maintenance.victims '{"uri": …}' main
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from tests.maintenance.looks import ensure
from tests.recovery.victims import connect
from tests.stores import Store


def kill_at(failpoint: str, store: Store, branch: str) -> None:
    """Build a branch's indexes in a process of its own and see it die at a failpoint."""
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.maintenance.victims", json.dumps(asdict(store)), branch],
        env=os.environ | {"OMNIGRAPH_FAILPOINTS": f"{failpoint}=kill"},
        cwd=Path(__file__).parents[2],
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL


if __name__ == "__main__":
    ensure(connect(Store(**json.loads(sys.argv[1]))), sys.argv[2], "victim")
