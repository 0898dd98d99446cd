"""From the start of a program to its answer: `python -m benchmarks.startup`, fewer runs with `--rounds 3`.

Commands on a graph of one row, each in a fresh process, beside imports and beside peers that answer the same
question. Programs take turns; shown are medians of wall and CPU time. All run from compiled bytecode, as installed
packages do, in a folder of its own: an environment that forbids Python to write it would count compiling.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from benchmarks.contest import compiled_bytecode
from rich.console import Console
from rich.table import Table

SCHEMA: Final = "node Person { name: String @key  age: I32? }"
QUERY: Final = "query who() { match { $p: Person } return { $p.name as name, $p.age as age } }"
MUTATION: Final = 'query older() { update Person set { age: 36 } where name = "Ada" }'
ROW: Final = {"name": "Ada", "age": 36}
OURS: Final = "omnigraph query"
YARDSTICK: Final = "import lance"
ALLOWED: Final = 0.150
"""How many seconds longer than the yardstick a query may take."""

_COMMAND: Final = "import sys; sys.argv[0] = 'omnigraph'; from omnigraph.cli.main import main; main()"
_WITHOUT_PANDAS: Final = "import omnigraph.storage, lance"
_DUCKDB: Final = """
import duckdb, json, sys
rows = duckdb.connect(sys.argv[1], read_only=True).execute("SELECT name, age FROM Person").fetchall()
print(json.dumps([dict(zip(("name", "age"), row)) for row in rows]))
"""
_KUZU: Final = """
import importlib, json, sys
engine = importlib.import_module(sys.argv[2])
connection = engine.Connection(engine.Database(sys.argv[1], read_only=True))
found = connection.execute("MATCH (p:Person) RETURN p.name, p.age")
rows = []
while found.has_next():
    rows.append(dict(zip(("name", "age"), found.get_next())))
print(json.dumps(rows))
"""
_IMPORT: Final = re.compile(r"import time:\s+(\d+) \|\s+\d+ \| +(\S+)")


@dataclass(frozen=True, slots=True)
class Program:
    """What is run, and how its answer is read from what it prints; None if it answers nothing."""

    name: str
    arguments: Sequence[str]
    answer: Callable[[str], object] | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """How long one process took, and what it printed."""

    wall: float
    cpu: float
    out: str


def run(program: Program, home: Path, environment: Mapping[str, str]) -> Run:
    """Run a program in a fresh process."""
    printed = home / "printed"
    start = time.perf_counter()
    with printed.open("wb") as out:
        process = subprocess.Popen([sys.executable, *program.arguments], cwd=home, env=environment, stdout=out)
        _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{program.name} failed")
    return Run(wall, used.ru_utime + used.ru_stime, printed.read_text(encoding="utf-8"))


def programs(home: Path, environment: Mapping[str, str]) -> list[Program]:
    """All programs, with graphs and databases of one row for them."""

    def command(*words: str) -> list[str]:
        return ["-c", _COMMAND, *words]

    for name, text in {"schema.pg": SCHEMA, "who.gq": QUERY, "older.gq": MUTATION}.items():
        (home / name).write_text(text, encoding="utf-8")
    (home / "row.jsonl").write_text(json.dumps({"type": "Person", "data": ROW}), encoding="utf-8")
    load = command("load", "g.omni", "--data", "row.jsonl", "--mode", "merge")
    for words in (command("init", "g.omni", "--schema", "schema.pg"), load):
        run(Program("setting up", words), home, environment)
    return [
        Program("python", ["-c", "pass"]),
        Program(YARDSTICK, ["-c", "import lance"]),
        Program("import lance, no pandas", ["-c", _WITHOUT_PANDAS]),
        Program(OURS, command("query", "--query", "who.gq", "--json"), lambda out: json.loads(out)["rows"]),
        Program("omnigraph mutate", command("mutate", "--query", "older.gq")),
        Program("omnigraph load", load),
        Program("omnigraph snapshot", command("snapshot")),
        Program("omnigraph log", command("log", "--limit", "5")),
        Program("omnigraph --help", command("--help")),
        *_peers(home),
    ]


def _peers(home: Path) -> list[Program]:
    """Those peers that are installed, each with its own database of one row."""
    found = []
    if find_spec("duckdb") is not None:
        with importlib.import_module("duckdb").connect(home / "duck.db") as connection:
            connection.execute("CREATE TABLE Person(name VARCHAR PRIMARY KEY, age INTEGER)")
            connection.execute("INSERT INTO Person VALUES ($name, $age)", ROW)
        found.append(Program("duckdb query", ["-c", _DUCKDB, "duck.db"], json.loads))
    for engine in ("kuzu", "ladybug"):
        if find_spec(engine) is not None:
            fill = (
                "import importlib, sys; engine = importlib.import_module(sys.argv[2])\n"
                "connection = engine.Connection(engine.Database(sys.argv[1]))\n"
                "connection.execute('CREATE NODE TABLE Person(name STRING, age INT32, PRIMARY KEY (name))')\n"
                f"connection.execute('CREATE (:Person {{name: $name, age: $age}})', {ROW!r})\n"
            )
            subprocess.run([sys.executable, "-c", fill, f"{engine}.db", engine], cwd=home, check=True)
            found.append(Program(f"{engine} query", ["-c", _KUZU, f"{engine}.db", engine], json.loads))
    return found


def imports_of(program: Program, home: Path, environment: Mapping[str, str]) -> Counter[str]:
    """Microseconds that the modules of each package take to import, theirs alone."""
    command = [sys.executable, "-X", "importtime", *program.arguments]
    done = subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True, check=True)
    taken: Counter[str] = Counter()
    for microseconds, module in _IMPORT.findall(done.stderr):
        taken[module.partition(".")[0]] += int(microseconds)
    return taken


def show(runs: Mapping[str, Sequence[Run]], out: Console) -> None:
    """Medians of wall and CPU time, and how much they are above those of the yardstick."""
    base_wall, base_cpu = _medians(runs[YARDSTICK])
    table = Table("milliseconds, medians", title="From the start of a process", title_justify="left")
    for heading in ("wall", "CPU", f"wall above {YARDSTICK}", "CPU above it"):
        table.add_column(heading, justify="right")
    for name, taken in runs.items():
        wall, cpu = _medians(taken)
        table.add_row(name, *(f"{each * 1000:,.0f}" for each in (wall, cpu, wall - base_wall, cpu - base_cpu)))
    out.print(table)


def _medians(runs: Sequence[Run]) -> tuple[float, float]:
    return statistics.median(each.wall for each in runs), statistics.median(each.cpu for each in runs)


def main() -> int:
    """Measure and print. The exit code is 1 if an answer is wrong or the query takes longer than it may."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="fresh processes of each program")
    rounds = parser.parse_args().rounds
    out = Console(width=110)
    with tempfile.TemporaryDirectory(prefix="omnigraph-bench-startup-") as folder:
        home = Path(folder)
        environment = compiled_bytecode(home / "bytecode")
        chosen = programs(home, environment)
        first = {program.name: run(program, home, environment) for program in chosen}
        wrong = [each.name for each in chosen if each.answer and each.answer(first[each.name].out) != [ROW]]
        runs: dict[str, list[Run]] = {program.name: [] for program in chosen}
        for _ in range(rounds):
            for program in chosen:
                runs[program.name].append(run(program, home, environment))
        show(runs, out)
        ours = next(program for program in chosen if program.name == OURS)
        largest = imports_of(ours, home, environment).most_common(8)
    out.print(f"Imports of {OURS}, milliseconds, each package alone (wall, as Python measures them):")
    out.print(", ".join(f"{package} {microseconds / 1000:,.0f}" for package, microseconds in largest))
    above = _medians(runs[OURS])[1] - _medians(runs[YARDSTICK])[1]
    out.print(
        f"{OURS} takes {above * 1000:+,.0f} ms of CPU time beside {YARDSTICK}; {ALLOWED * 1000:.0f} are allowed."
    )
    for name in wrong:
        out.print(f"MISMATCH {name} does not answer {[ROW]}", style="bold red")
    return int(bool(wrong) or above > ALLOWED)


if __name__ == "__main__":
    sys.exit(main())
