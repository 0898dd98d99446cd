"""`make torture`: writers on several branches, killed at any moment, and a checker that believes only their logs.

::

    python -m tests.torture.run --seconds 600 --seed 7 --writers 4
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.stores import Store
from tests.torture.check import Model, tags
from tests.torture.writers import BRANCHES, KILLED_AT, SCHEMA

import omnigraph
from omnigraph import Graph
from omnigraph.recovery.audit import AuditLog

ROOT = Path(__file__).parents[2]
ROUND = 20.0
"""After so many seconds everybody is killed and all of the graph is compared with the logs."""


@dataclass
class Report:
    """What a run did."""

    seed: int
    kills: Counter[str] = field(default_factory=Counter)
    snapshots: int = 0
    checks: int = 0
    model: Model = field(default_factory=Model)
    recoveries: Counter[str] = field(default_factory=Counter)

    def lines(self) -> list[str]:
        done = {kind: self.model.counts[kind] for kind in ("mutation", "load", "update", "delete")}
        return [
            f"seed {self.seed}",
            f"acknowledged {sum(done.values())} writes: {done}",
            f"refused {self.model.counts['refused']}, unanswered {self.model.counts['unanswered']}",
            f"killed {sum(self.kills.values())} writers: {dict(sorted(self.kills.items()))}",
            f"recoveries {dict(sorted(self.recoveries.items()))}",
            f"{self.snapshots} snapshots read while writing, {self.checks} complete checks",
        ]


class Reader(threading.Thread):
    """Looks at whole snapshots all the time, without ever waiting for a writer."""

    def __init__(self, store: Store) -> None:
        super().__init__(name="reader", daemon=True)
        self._graph = omnigraph.open(store.uri, read_only=True, storage_options=store.options)
        self._enough = threading.Event()
        self.snapshots = 0
        self.problem: BaseException | None = None

    def run(self) -> None:
        seen: dict[str, int] = {}
        try:
            while not self._enough.wait(0.05):
                for branch in BRANCHES:
                    snapshot = self._graph.snapshot(branch)
                    assert snapshot.manifest_version >= seen.get(branch, 0), "a snapshot went back"
                    seen[branch] = snapshot.manifest_version
                    tags(self._graph, snapshot)
                    self.snapshots += 1
        except BaseException as error:  # noqa: BLE001  whatever it is, the run reports it
            self.problem = error

    def finish(self) -> int:
        self._enough.set()
        self.join()
        if self.problem is not None:
            raise self.problem
        return self.snapshots


class Victim:
    """A running writer and when it is to be killed, if it has not died at a failpoint by then."""

    def __init__(self, store: Store, logs: Path, name: str, chance: random.Random) -> None:
        self.name = name
        self.failpoint = chance.choice(KILLED_AT) if chance.random() < 0.6 else None
        where = [] if self.failpoint is None else [self.failpoint, str(chance.randint(1, 12))]
        self.lifetime = chance.uniform(0.3, 6.0)
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.torture.writers",
                json.dumps(asdict(store)),
                name,
                str(chance.randrange(2**32)),
                str(logs / f"{name}.jsonl"),
                *where,
            ],
            cwd=ROOT,
        )
        self.ends = time.monotonic() + self.lifetime + 1.0

    def end(self) -> str:
        """Kill it if it still lives; how it ended. A writer that ends by itself has met a problem."""
        died = self.process.poll()
        self.process.kill()
        self.process.wait()
        if died is None:
            return "any moment"
        if died != -9:
            raise RuntimeError(f"writer {self.name} ended with {died}")
        return str(self.failpoint)


def torture(store: Store, logs: Path, seconds: float, seed: int, writers: int) -> Report:
    """Run for a while and check; the first thing that is wrong is raised."""
    report = Report(seed)
    chance = random.Random(seed)
    graph = omnigraph.init(store.uri, SCHEMA, storage_options=store.options)
    for branch in BRANCHES[1:]:
        graph.create_branch(branch)
    deadline = time.monotonic() + seconds
    number = 0
    while time.monotonic() < deadline:
        number = _round(store, logs, report, chance, writers, number, min(deadline, time.monotonic() + ROUND))
        _check(store, logs, report)
    return report


def _round(
    store: Store, logs: Path, report: Report, chance: random.Random, writers: int, number: int, until: float
) -> int:
    """Let writers come and go until it is time; how many there have been."""
    reader = Reader(store)
    reader.start()
    victims: list[Victim] = []
    try:
        while time.monotonic() < until and reader.problem is None:
            while len(victims) < writers:
                victims.append(Victim(store, logs, f"w{number}", chance))
                number += 1
            for victim in [v for v in victims if v.process.poll() is not None or time.monotonic() > v.ends]:
                victims.remove(victim)
                report.kills[victim.end()] += 1
            time.sleep(0.01)
    finally:
        for victim in victims:
            report.kills[victim.end()] += 1
    report.snapshots += reader.finish()
    return number


def _check(store: Store, logs: Path, report: Report) -> None:
    """The graph opens, heals, and is what the logs say."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        graph: Graph = omnigraph.open(store.uri, storage_options=store.options)
    report.model = Model().read(sorted(logs.iterdir()))
    report.model.check(graph)
    report.recoveries = Counter(r.recovery_kind for r in AuditLog(graph._repository.tables).read())
    report.checks += 1


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Kill writers for a while, and see that nothing is lost or halved."
    )
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--writers", type=int, default=4)
    options = parser.parse_args()
    print(f"seed {options.seed}: run again with --seed {options.seed}", flush=True)  # noqa: T201
    with tempfile.TemporaryDirectory() as folder:
        logs = Path(folder, "logs")
        logs.mkdir()
        report = torture(Store(f"{folder}/g"), logs, options.seconds, options.seed, options.writers)
    print("\n".join(report.lines()))  # noqa: T201


if __name__ == "__main__":
    main()
