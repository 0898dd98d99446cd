"""What a server answers: reads and writes per second and their latency, at 1, 16 and 64 clients.

Beside it, in the same run and with the same load generator, a bare Starlette route, and PostgreSQL with the same
rows behind a Starlette route, if `initdb` (`apt-get install postgresql`) and asyncpg are installed.
Rounds are interleaved, and the median is shown. Any status but 200, 409 and 429 ends the run. At the end the graph
has the rows it began with and those that were acknowledged, and no others. Run with `python -m benchmarks.server`,
which takes about two minutes. `--workers 2` shows what a second process gains where a second processor is free.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import omnigraph

SCHEMA = "node Person { name: String @key  age: I32? }"
READ = "query one($n: String) { match { $p: Person { name: $n } } return { $p.name as name, $p.age as age } }"
WRITE = "query add($n: String) { insert Person { name: $n, age: 1 } }"
NAMES = "query names() { match { $p: Person } return { $p.name as name } }"
MAIN = "import sys; sys.argv[0] = 'omnigraph'; from omnigraph.cli.main import main; main()"
ALLOWED = {200, 409, 429}


@dataclass
class Seen:
    """What one round saw."""

    latencies: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    written: list[str] = field(default_factory=list)
    seconds: float = 0.0


Request = Callable[[str], tuple[str, bytes]]
"""The path and the body of a request about a person."""


def to_omnigraph(text: str, route: str) -> Request:
    return lambda name: (f"/graphs/default/{route}", json.dumps({"query": text, "params": {"n": name}}).encode())


def to_route(path: str) -> Request:
    return lambda name: (path, json.dumps({"name": name}).encode())


async def load(port: int, clients: int, seconds: float, request: Request, names: Iterator[str]) -> Seen:
    """Requests of so many clients, each of which waits for its answer before it sends the next."""
    seen, end = Seen(), time.perf_counter() + seconds

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while (start := time.perf_counter()) < end:
            name = next(names)
            path, body = request(name)
            head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            writer.write(head.encode() + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            length = int(answer.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            await reader.readexactly(length)
            status = int(answer[9:12])
            seen.latencies.append(time.perf_counter() - start)
            seen.statuses[status] += 1
            if status == 200:
                seen.written.append(name)
            elif status == 429:
                await asyncio.sleep(0.01)
        writer.close()

    started = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    seen.seconds = time.perf_counter() - started
    return seen


@contextmanager
def process(*command: str) -> Iterator[int]:
    """A server in a process of its own; the port that its first line ends with."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as started:
        assert started.stdout is not None
        try:
            yield int(started.stdout.readline().rpartition(":")[2])
        finally:
            started.terminate()


def serve_peer(dsn: str | None) -> None:
    """In a process of its own: the bare route, and those of PostgreSQL if there is one."""
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request as Asked
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    pool: list[Any] = []

    async def bare(asked: Asked) -> JSONResponse:
        return JSONResponse({"name": (await asked.json())["name"]})

    async def connected() -> Any:
        if not pool:
            import asyncpg

            pool.append(await asyncpg.create_pool(dsn, min_size=16, max_size=32))
        return pool[0]

    async def read(asked: Asked) -> JSONResponse:
        name = (await asked.json())["name"]
        row = await (await connected()).fetchrow("select name, age from person where name = $1", name)
        return JSONResponse({"rows": [] if row is None else [dict(row)]})

    async def write(asked: Asked) -> JSONResponse:
        name = (await asked.json())["name"]
        await (await connected()).execute("insert into person values ($1, 1)", name)
        return JSONResponse({"name": name})

    routes = [Route(f"/{each.__name__}", each, methods=["POST"]) for each in (bare, read, write)]
    # Only for a socket that says TCP does asyncio send small answers at once.
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.bind(("127.0.0.1", 0))
    bound.listen(1024)
    print(f"listening at 127.0.0.1:{bound.getsockname()[1]}", flush=True)
    config = uvicorn.Config(Starlette(routes=routes), log_config=None, access_log=False)
    asyncio.run(uvicorn.Server(config).serve([bound]))


@contextmanager
def postgres(folder: Path, people: int) -> Iterator[str | None]:
    """PostgreSQL with as many people, every commit of which is synced; None if it is not installed."""
    try:
        import asyncpg  # noqa: F401
    except ModuleNotFoundError:
        yield None
        return
    if shutil.which("initdb") is None:
        os.environ["PATH"] += os.pathsep + os.pathsep.join(map(str, Path("/usr/lib/postgresql").glob("*/bin")))
    if shutil.which("initdb") is None:
        yield None
        return
    user = {"user": "postgres", "group": "postgres"} if os.getuid() == 0 else {}
    place = folder / "postgres"
    place.mkdir()
    if user:
        for each in (folder, place):
            each.chmod(0o777)
            shutil.chown(place, "postgres", "postgres")
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": "/", **user}
    subprocess.run(["initdb", "-D", str(place / "data"), "-U", "postgres", "-A", "trust"], check=True, **quiet)
    command = ["postgres", "-D", str(place / "data"), "-k", str(place), "-c", "listen_addresses="]
    with subprocess.Popen(command, **quiet) as started:
        psql = ["psql", "-h", str(place), "-U", "postgres", "-q"]
        while subprocess.run([*psql, "-c", "select 1"], check=False, **quiet).returncode:
            time.sleep(0.1)
        fill = f"insert into person select 'p' || n, n % 100 from generate_series(0, {people - 1}) n"
        table = "create table person (name text primary key, age int)"
        subprocess.run([*psql, "-c", table, "-c", fill, "-c", "analyze"], check=True, **quiet)
        try:
            yield f"postgresql://postgres@/postgres?host={place}"
        finally:
            started.terminate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=2.0, help="how long each round of each load takes")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", type=int, nargs="*", default=[1, 16, 64])
    parser.add_argument("--workers", type=int, default=1, help="how many processes of OmniGraph answer")
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.peer is not None:
        serve_peer(given.peer or None)
        return
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        place = Path(folder) / "people.omni"
        with omnigraph.init(place, SCHEMA) as graph:
            records = ({"type": "Person", "data": {"name": f"p{n}", "age": n % 100}} for n in range(given.people))
            graph.load(records, mode="append")
        serve = ("serve", str(place), "--port", "0", "--unauthenticated", "--writes-per-actor", "64")
        workers = ("--workers", str(given.workers))
        ours = stack.enter_context(process(sys.executable, "-c", MAIN, *serve, *workers))
        dsn = stack.enter_context(postgres(Path(folder), given.people))
        peer = stack.enter_context(process(sys.executable, "-m", "benchmarks.server", "--peer", dsn or ""))
        targets = {
            ("a bare Starlette route", "read"): (peer, to_route("/bare")),
            ("OmniGraph", "read"): (ours, to_omnigraph(READ, "query")),
            ("OmniGraph", "write"): (ours, to_omnigraph(WRITE, "mutate")),
        }
        if dsn is not None:
            targets["PostgreSQL behind Starlette", "read"] = (peer, to_route("/read"))
            targets["PostgreSQL behind Starlette", "write"] = (peer, to_route("/write"))
        seen = measured(targets, given)
        show(seen)
        with omnigraph.open(place, read_only=True) as graph:
            there = graph.query(NAMES)["name"]
    mine = [rounds for (who, what, _), rounds in seen.items() if (who, what) == ("OmniGraph", "write")]
    acknowledged = {name for rounds in mine for one in rounds for name in one.written}
    expected = sorted({f"p{n}" for n in range(given.people)} | acknowledged)
    assert sorted(there) == expected, f"{len(set(expected) ^ set(there))} rows are lost or too many"
    print(f"all {len(acknowledged):,} writes that were acknowledged are there once, and nothing else")


def measured(
    targets: dict[tuple[str, str], tuple[int, Request]], given: argparse.Namespace
) -> dict[tuple[str, str, int], list[Seen]]:
    """All loads, round by round, so that what else the machine does is shared. The first round only warms up."""
    seen: dict[tuple[str, str, int], list[Seen]] = defaultdict(list)
    numbers = iter(range(1 << 62))
    chance = random.Random(0)
    for number in range(given.rounds + 1):
        seconds = given.seconds if number else given.seconds / 4
        for clients in given.clients:
            for (who, what), (port, request) in targets.items():
                names = (
                    (f"p{chance.randrange(given.people)}" for _ in iter(int, 1))
                    if what == "read"
                    else (f"w{next(numbers)}" for _ in iter(int, 1))
                )
                found = asyncio.run(load(port, clients, seconds, request, names))
                assert set(found.statuses) <= ALLOWED, found.statuses
                seen[who, what, clients].append(found)
    return seen


def show(seen: dict[tuple[str, str, int], list[Seen]]) -> None:
    """The medians of all rounds but the first, which warms up."""
    table = Table("server", "load", "clients", "a second", "p50 ms", "p95 ms", "p99 ms", "409", "429")
    for who, what, clients in sorted(seen, key=lambda each: (each[1], each[0], each[2])):
        rounds = seen[who, what, clients]
        timed = rounds[1:]
        latencies = sorted(latency for one in timed for latency in one.latencies)
        shown = [f"{latencies[int(len(latencies) * share)] * 1e3:.1f}" for share in (0.5, 0.95, 0.99)]
        refused = [str(sum(one.statuses[status] for one in timed)) for status in (409, 429)]
        table.add_row(who, what, str(clients), f"{rate(rounds):,.0f}", *shown, *refused)
    Console(width=120).print(table)
    show_gains(seen)


def show_gains(seen: dict[tuple[str, str, int], list[Seen]]) -> None:
    """How many times the reads or writes of one caller, who waits for each, several callers reach together."""
    for who, what, clients in sorted(seen, key=lambda each: (each[1], each[0], each[2])):
        if clients > 1 and (who, what, 1) in seen:
            gain = rate(seen[who, what, clients]) / rate(seen[who, what, 1])
            print(f"{who}: {clients} clients {what} {gain:.1f} times as much a second as one")


def rate(rounds: Sequence[Seen]) -> float:
    """Answered requests a second: the median of all rounds but the first, which warms up."""
    return statistics.median(one.statuses[200] / one.seconds for one in rounds[1:])


if __name__ == "__main__":
    main()
