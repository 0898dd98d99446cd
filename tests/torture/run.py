"""`make torture`: everything that can happen to writers, and a checker that believes only their logs.

::

    python -m tests.torture.run --seconds 600 --seed 7 --on s3 --profile maintenance

Writers are killed and stopped, fork, and meet failing disks, full disks and failing requests. In the profile
"maintenance" others look after the graph or load on Spark meanwhile and are killed as well; there disks and
requests do not fail. After each round nobody writes, the graph has to be what the logs allow, and every type of
every branch has to take a write.
"""

from __future__ import annotations

import argparse
import datetime as dt
import faulthandler
import random
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext
from itertools import count
from pathlib import Path

from tests.stores import s3_server
from tests.torture.arenas import Arena, Bucket, Directory, SmallDisk, small_disk
from tests.torture.check import check_settled, check_upkeep, compare
from tests.torture.clients import short_leases
from tests.torture.fates import fate
from tests.torture.model import Model
from tests.torture.reader import Reader
from tests.torture.roles import PROFILES, Profile, Role
from tests.torture.steps import BRANCHES, SCHEMA, SHORT, Log, Step
from tests.torture.victims import Orphans, Victim
from tests.torture.writers import Writer

import omnigraph

_NEVER = dt.datetime.min.replace(tzinfo=dt.UTC)

HUNG = 600
"""After how many seconds without the end of a round the run gives up, with a traceback."""


class Contest:
    """The rounds on one graph, and what they did."""

    def __init__(self, arena: Arena, logs: Path, seed: int, profile: Profile) -> None:
        logs.mkdir()
        self.arena = arena
        self.model = Model()
        self.counts: Counter[str] = Counter()
        self.kills: Counter[str] = Counter()
        self.recoveries: Counter[str] = Counter()
        self._logs, self._orphans = logs, Orphans(logs)
        self._seed, self._profile, self._rounds = seed, profile, 0
        graph = omnigraph.init(arena.calm.uri, SCHEMA, storage_options=arena.calm.options)
        for branch in BRANCHES[1:]:
            graph.create_branch(branch)
        arena.settle()

    def round(self, seconds: float) -> None:
        """Let writers come and go for a while, then check; the first thing that is wrong is raised.

        However it ends, no thread and no process of it stays behind.
        """
        faulthandler.dump_traceback_later(HUNG, exit=True)
        try:
            self._rounds += 1
            chance = random.Random(f"{self._seed} {self.arena.kind} {self._rounds}")
            weather = self.arena.weather(random.Random(chance.random())) if self._profile.faults else nullcontext()
            reader = Reader(self.arena.calm)
            reader.start()
            try:
                with weather:
                    self._torment(reader, time.monotonic() + seconds)
            finally:
                reader.stop()
                self.counts["forks"] += self._orphans.end()
            self.counts["snapshots"] += reader.finding()
            self.counts["reclaimed"] += reader.reclaimed
            self._check()
        finally:
            faulthandler.cancel_dump_traceback_later()

    def _torment(self, reader: Reader, until: float) -> None:
        victims: list[Victim] = []
        numbers = count(1)
        try:
            while time.monotonic() < until and reader.problem is None:
                missing = Counter(self._profile.crew) - Counter(victim.role for victim in victims)
                victims += [self._victim(role, next(numbers)) for role in missing.elements()]
                for victim in [v for v in victims if not v.watch(self.counts)]:
                    victims.remove(victim)
                    self._end(victim)
                time.sleep(0.02)
        finally:
            with ExitStack() as ends:  # all of them end, also when one of them has met a problem
                for victim in victims:
                    ends.callback(self._end, victim)

    def _end(self, victim: Victim) -> None:
        self.kills[victim.end()] += 1

    def _victim(self, role: Role, number: int) -> Victim:
        name = f"{self._rounds:04}-{number:03}"
        chance = random.Random(f"{self._seed} {self.arena.kind} {name}")
        troubles = self.arena.troubles if self._profile.faults else ("none",)
        return Victim(self.arena, self._logs / f"{name}.log", name, fate(chance, troubles, role))

    def _check(self) -> None:
        """The graph opens, heals, is what the logs say, and takes writes to every type on every branch."""
        place, name = self.arena.calm, f"{self._rounds:04}-check"
        with warnings.catch_warnings(), closing(Log(self._logs / f"{name}.log")) as log:
            warnings.simplefilter("error")
            graph = omnigraph.open(place.uri, storage_options=place.options)
            self._compare(graph)
            writer = Writer(graph, name, 0, log)
            for branch in graph.branches():
                writer.must(Step("load", branch.name, f"{name}-load-{branch.name}", 3))
                writer.must(Step("mutation", branch.name, f"{name}-mutation-{branch.name}", 2))
            self._compare(graph)
            for branch in sorted(graph.branches(), key=lambda branch: branch.created_at or _NEVER, reverse=True):
                if branch.name.startswith(SHORT):
                    writer.must(Step("delete branch", branch.name))
            check_settled(graph)
            if not self._profile.faults:
                check_upkeep(graph)
        self.recoveries = Counter(recovery.recovery_kind for recovery in graph.recoveries())
        self.counts["complete checks"] += 1

    def _compare(self, graph: omnigraph.Graph) -> None:
        self.model = Model().read(sorted(self._logs.glob("*.log")))
        compare(graph, self.model)
        check_settled(graph)

    def lines(self) -> list[str]:
        """What happened, for people."""
        counted = self.model.counts
        acknowledged = {
            k.partition(" ")[2]: n for k, n in sorted(counted.items()) if k.startswith("acknowledged ")
        }
        others = {k: n for k, n in sorted(counted.items()) if not k.startswith("acknowledged ")}
        return [
            f"{self.arena.kind}, {self._rounds} rounds",
            f"  acknowledged {sum(acknowledged.values())}: {acknowledged}",
            f"  other answers: {others}",
            f"  errors: {dict(sorted(self.model.errors.items()))}",
            f"  kills {sum(self.kills.values())}: {dict(sorted(self.kills.items()))}",
            f"  stops {self.counts['stops']}, forks {self.counts['forks']}",
            f"  faults: {dict(sorted((self.model.faults + self.arena.faults).items()))}",
            f"  recoveries: {dict(sorted(self.recoveries.items()))}",
            f"  {self.counts['snapshots']} snapshots read while others wrote,"
            f" {self.counts['reclaimed']} cleaned up later, {self.counts['complete checks']} complete checks",
        ]


def torture(arenas: Sequence[Arena], logs: Path, seconds: float, seed: int, profile: Profile) -> list[Contest]:
    """Rounds in each arena in turn until the time is over."""
    with short_leases():
        contests = [Contest(arena, logs / arena.kind, seed, profile) for arena in arenas]
        deadline = time.monotonic() + seconds
        try:
            while (left := deadline - time.monotonic()) > 0:
                for contest in contests:
                    contest.round(min(profile.round, left / len(contests)))
        except BaseException:
            for contest in contests:
                tell(contest.lines())
            raise
    return contests


@contextmanager
def arenas_in(folder: Path, wanted: Sequence[str]) -> Iterator[list[Arena]]:
    """The arenas that are wanted, in a directory and on a server of their own."""
    found: list[Arena] = []
    with ExitStack() as stack:
        if "disk" in wanted:
            found.append(Directory(folder))
        if "s3" in wanted:
            found.append(Bucket(stack.enter_context(s3_server())))
        if "small disk" in wanted:
            small = stack.enter_context(small_disk(folder / "small"))
            if small is None:
                tell(["no small disk can be mounted here, so none is filled: run as root to have that too"])
            else:
                found.append(SmallDisk(small))
        yield found


def tell(lines: Sequence[str]) -> None:
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description="Torment writers for a while, and see that nothing is lost.")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--profile", choices=sorted(PROFILES), default="writers")
    parser.add_argument("--on", action="append", choices=("disk", "s3", "small disk"))
    parser.add_argument("--keep", type=Path, help="an empty directory for graph and logs, which stay there")
    options = parser.parse_args()
    tell([f"seed {options.seed}: run again with --seed {options.seed}"])
    with ExitStack() as stack:
        folder = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        (folder / "logs").mkdir(parents=True)
        profile = PROFILES[options.profile]
        wanted = options.on or (("disk", "s3", "small disk") if profile.faults else ("disk", "s3"))
        arenas = stack.enter_context(arenas_in(folder, wanted))
        for contest in torture(arenas, folder / "logs", options.seconds, options.seed, profile):
            tell(contest.lines())


if __name__ == "__main__":
    main()
