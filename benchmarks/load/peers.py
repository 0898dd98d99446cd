"""Other databases that load the files of a graph: duckdb, kuzu and ladybug, with keys and ends checked."""

from __future__ import annotations

import importlib
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.load.files import CSV, JSONL, TABLES

_PERSON: Final = "name VARCHAR PRIMARY KEY, age INTEGER, city VARCHAR, score DOUBLE, joined DATE, about VARCHAR"
_KNOWS: Final = "src VARCHAR, dst VARCHAR, since INTEGER, weight DOUBLE, note VARCHAR"
_CSV_OPTIONS: Final = "(HEADER=true, DELIM=',', QUOTE='\"', ESCAPE='\"')"


@dataclass(frozen=True, slots=True)
class Held:
    """What an engine holds after a load: rows, sums, the first day, and the last texts."""

    nodes: int
    ages: int
    first_day: str
    last_about: str
    edges: int
    years: int
    last_note: str


def cleared(to: Path) -> Path:
    """The place of a database, after everything that lies there has been removed."""
    for left in to.parent.glob(f"{to.name}*"):
        if left.is_dir():
            shutil.rmtree(left)
        else:
            left.unlink()
    return to


def held_lance(to: Path) -> Held:
    """What the tables of the floor hold."""
    import lance
    import pyarrow.compute as pc

    people, knows = (lance.dataset(str(to / name)).to_table() for name in TABLES)
    return Held(
        people.num_rows,
        pc.sum(people["age"]).as_py(),
        str(pc.min(people["joined"]).as_py()),
        pc.max(people["about"]).as_py(),
        knows.num_rows,
        pc.sum(knows["since"]).as_py(),
        pc.max(knows["note"]).as_py(),
    )


def load_duckdb(home: Path, form: str, to: Path) -> None:
    """Tables with a key, and the ends of edges looked up by anti-joins."""
    with importlib.import_module("duckdb").connect(str(to)) as connection:
        connection.execute(f"CREATE TABLE Person({_PERSON})")
        connection.execute(f"CREATE TABLE Knows({_KNOWS})")
        if form == JSONL:
            _insert_lines(connection, home / "lines.jsonl")
        else:
            for name in TABLES:
                connection.execute(f"COPY {name} FROM '{home / name}.{form}'")
        for side in ("src", "dst"):
            dangling = f"SELECT count(*) FROM Knows ANTI JOIN Person ON Knows.{side} = Person.name"
            assert connection.execute(dangling).fetchone() == (0,)
        connection.execute("CHECKPOINT")


def _insert_lines(connection: Any, lines: Path) -> None:
    members = "type: 'VARCHAR', edge: 'VARCHAR', \"from\": 'VARCHAR', \"to\": 'VARCHAR'"
    data = (
        "name VARCHAR, age INTEGER, city VARCHAR, score DOUBLE, joined DATE, about VARCHAR, "
        "since INTEGER, weight DOUBLE, note VARCHAR"
    )
    source = f"read_json('{lines}', format='newline_delimited', columns={{{members}, data: 'STRUCT({data})'}})"
    connection.execute(f"CREATE TEMP TABLE raw AS SELECT * FROM {source}")
    connection.execute(
        "INSERT INTO Person SELECT data.name, data.age, data.city, data.score, data.joined, data.about "
        "FROM raw WHERE type = 'Person'"
    )
    connection.execute(
        'INSERT INTO Knows SELECT "from", "to", data.since, data.weight, data.note FROM raw WHERE edge = \'Knows\''
    )
    connection.execute("DROP TABLE raw")


def held_duckdb(to: Path) -> Held:
    """What the tables hold."""
    with importlib.import_module("duckdb").connect(str(to)) as connection:
        people = "SELECT count(*), sum(age)::BIGINT, min(joined)::VARCHAR, max(about) FROM Person"
        knows = "SELECT count(*), sum(since)::BIGINT, max(note) FROM Knows"
        return Held(*connection.execute(people).fetchone(), *connection.execute(knows).fetchone())


def load_kuzu(home: Path, form: str, to: Path, package: str = "kuzu") -> None:
    """COPY, which checks keys and ends and builds the adjacency of edges."""
    engine = importlib.import_module(package)
    connection = engine.Connection(engine.Database(str(to)))
    connection.execute(
        "CREATE NODE TABLE Person(name STRING, age INT32, city STRING, score DOUBLE, joined DATE, about STRING, "
        "PRIMARY KEY (name))"
    )
    connection.execute("CREATE REL TABLE Knows(FROM Person TO Person, since INT32, weight DOUBLE, note STRING)")
    suffix, how = ("parquet", "") if form == JSONL else (form, _CSV_OPTIONS if form == CSV else "")
    for name in TABLES:
        connection.execute(f"COPY {name} FROM '{home / name}.{suffix}' {how}")
    connection.execute("CHECKPOINT")


def held_kuzu(to: Path, package: str = "kuzu") -> Held:
    """What the graph holds."""
    engine = importlib.import_module(package)
    connection = engine.Connection(engine.Database(str(to)))
    people = "MATCH (p:Person) RETURN count(*), cast(sum(p.age), 'INT64'), min(p.joined), max(p.about)"
    knows = "MATCH ()-[k:Knows]->() RETURN count(*), cast(sum(k.since), 'INT64'), max(k.note)"
    nodes, ages, first, about = connection.execute(people).get_next()
    return Held(nodes, ages, str(first), about, *connection.execute(knows).get_next())


def load_ladybug(home: Path, form: str, to: Path) -> None:
    """The successor of Kuzu."""
    load_kuzu(home, form, to, "ladybug")


def held_ladybug(to: Path) -> Held:
    """What the graph holds."""
    return held_kuzu(to, "ladybug")
