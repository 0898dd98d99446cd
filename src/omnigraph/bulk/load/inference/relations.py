"""Keys of tables, and the columns of others that refer to them: what are nodes, and what are edges."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.bulk.load.inference.samples import Sample
from omnigraph.bulk.load.inference.types import Guess, guess_type

_KEY_NAMES: Final = ("id", "key", "code", "uuid", "slug", "iata", "icao", "isbn", "sku", "email", "name", "title")
_SOURCES: Final = ("from", "src", "source", "origin", "start", "parent", "subject")
_TARGETS: Final = ("to", "dst", "dest", "destination", "target", "end", "child", "object")
_ENDS: Final = 2
_KNOWN_SHARE: Final = 0.6
"""So many of the different values of a column are keys of a table if the column refers to it."""


@dataclass(frozen=True)
class Table:
    """A sample with what its columns seem to be."""

    sample: Sample
    guesses: Mapping[str, Guess]
    key: str | None = None

    @cached_property
    def key_texts(self) -> pa.Array:
        """The keys of the rows, as edges write them."""
        return texts_of(self.sample.rows[self.key]) if self.key is not None else pa.array([], pa.string())


@dataclass(frozen=True, slots=True)
class Reference:
    """A column of a table with keys of another one."""

    column: str
    target: str
    known: float


@dataclass(frozen=True)
class Relations:
    """The tables of nodes and of edges. ``references`` are those of tables of nodes, by the name of the table."""

    nodes: Mapping[str, Table]
    edges: Mapping[str, tuple[Table, Reference, Reference]]
    references: Mapping[str, Sequence[Reference]] = field(default_factory=dict)


def relate(samples: Sequence[Sample]) -> Relations:
    """Which tables are nodes and which are edges, by their keys and by what refers to them."""
    tables = {sample.name: _with_key(sample) for sample in samples if sample.kind != "edge"}
    for sample in samples:
        if sample.kind == "edge":
            tables[sample.name] = Table(sample, _guesses(sample))
    keyed = {name: table for name, table in tables.items() if table.key is not None}
    nodes: dict[str, Table] = {}
    edges: dict[str, tuple[Table, Reference, Reference]] = {}
    references: dict[str, list[Reference]] = {}
    for name, table in tables.items():
        others = {other: t for other, t in keyed.items() if other != name}
        if _is_key_of_others(table, others):
            table = Table(table.sample, table.guesses)
        found = _references(table, others)
        found += _references_to_itself(table) if table.key is not None else []
        ends = _ends(table, found)
        if ends is not None:
            edges[name] = (table, *ends)
        else:
            nodes[name] = table
            references[name] = found
    lost = {name for name in edges if any(ref.target not in nodes for ref in edges[name][1:])}
    for name in lost:
        nodes[name] = edges.pop(name)[0]
    kept = {name: [ref for ref in found if ref.target in nodes] for name, found in references.items()}
    return Relations(nodes, edges, kept)


def _guesses(sample: Sample) -> dict[str, Guess]:
    return {name: guess_type(sample.rows[name], is_text=sample.is_text) for name in sample.rows.column_names}


def _with_key(sample: Sample) -> Table:
    """A table with the column that tells its rows apart, if there is one that looks as if it were meant to."""
    guesses = _guesses(sample)
    ends = {name: _end_of(name) for name in guesses}
    has_ends = {"from", "to"} <= set(ends.values())
    unique = [
        name
        for name, guess in guesses.items()
        if guess.can_be_key
        and sample.rows.num_rows
        and _is_unique(sample.rows[name])
        and not (has_ends and ends[name])
    ]
    ranked = sorted(unique, key=lambda name: (_key_rank(name, sample.name), sample.rows.column_names.index(name)))
    first = sample.rows.column_names[0] if sample.rows.column_names else None
    key = next((name for name in ranked if _key_rank(name, sample.name) < len(_KEY_NAMES) or name == first), None)
    return Table(sample, guesses, key)


def _is_key_of_others(table: Table, others: Mapping[str, Table]) -> bool:
    """Does a key that has no name of a key refer to another table, as a second column does? Then both are ends."""
    if table.key is None or _key_rank(table.key, table.sample.name) <= len(_KEY_NAMES):
        return False
    found = _references(Table(table.sample, table.guesses), others)
    return len(found) >= _ENDS and any(ref.column == table.key for ref in found)


def _key_rank(column: str, table: str) -> int:
    """How much the name of a column looks like that of a key; the less, the more."""
    lower = re.sub(r"[^a-z0-9]", "", column.lower())
    if lower in ("id", f"{table.lower()}id"):
        return 0
    words = re.findall(r"[a-z0-9]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", column).lower()) or [lower]
    ranks = [rank for rank, name in enumerate(_KEY_NAMES) if name == words[-1]]
    return ranks[0] + 1 if ranks else len(_KEY_NAMES) + 1


def _is_unique(column: pa.ChunkedArray) -> bool:
    return bool(pc.count_distinct(column).as_py() == len(column))


def texts_of(column: pa.ChunkedArray) -> pa.Array:
    """Different values of a column as texts."""
    return pc.unique(column.drop_null().cast(pa.string()).combine_chunks())


def _references(table: Table, keyed: Mapping[str, Table]) -> list[Reference]:
    found: list[Reference] = []
    for column, guess in table.guesses.items():
        if column == table.key or guess.type not in ("String", "I64", "I32", "Date"):
            continue
        best = max(
            (Reference(column, name, _share(table, column, other)) for name, other in keyed.items()),
            key=lambda ref: (ref.known, _is_named_after(column, ref.target)),
            default=None,
        )
        if best is not None and best.known >= _KNOWN_SHARE and _is_meant(table, column, best):
            found.append(best)
    return found


def _references_to_itself(table: Table) -> list[Reference]:
    """Columns with keys of the same table, such as the manager of a person; only if their names say so."""
    found = []
    for column, guess in table.guesses.items():
        if (
            column != table.key
            and guess.type == table.guesses[str(table.key)].type
            and column.lower().endswith("id")
        ):
            share = _share(table, column, table)
            if share >= _KNOWN_SHARE:
                found.append(Reference(column, table.sample.name, share))
    return found


def _share(table: Table, column: str, other: Table) -> float:
    """How many of the different values of a column are keys of another table."""
    values = texts_of(table.sample.rows[column])
    if not len(values):
        return 0.0
    return float(pc.sum(pc.is_in(values, value_set=other.key_texts)).as_py() or 0) / len(values)


def _is_meant(table: Table, column: str, reference: Reference) -> bool:
    """Is it more than chance? Small numbers are keys of anything, so the name of their column has to say it."""
    if table.guesses[column].type == "String":
        return True
    return _is_named_after(column, reference.target) or _end_of(column) is not None


def _is_named_after(column: str, target: str) -> bool:
    return target.lower() in re.sub(r"[^a-z0-9]", "", column.lower())


def _end_of(column: str) -> str | None:
    """Does a column name say that it is the beginning or the end of something?"""
    words = re.findall(r"[a-z0-9]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", column).lower())
    if any(word in _SOURCES for word in words):
        return "from"
    return "to" if any(word in _TARGETS for word in words) else None


def _ends(table: Table, found: Sequence[Reference]) -> tuple[Reference, Reference] | None:
    """The two references that make a table one of edges; None if its rows are nodes."""
    sources = [ref for ref in found if _end_of(ref.column) == "from"]
    targets = [ref for ref in found if _end_of(ref.column) == "to"]
    if sources and targets:
        return sources[0], targets[0]
    if table.key is None and len(found) >= _ENDS:
        return found[0], found[1]
    return None
