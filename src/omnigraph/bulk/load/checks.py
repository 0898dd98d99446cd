"""Rules that take several rows, asked about staged files: each question is one task on a worker.

A question reads the few columns it is about, from the staged files and from the pinned tables, and asks the same
evaluator as every other write. Questions whose columns do not fit a worker's memory are asked by `shuffled`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.bulk.load.options import Mode
from omnigraph.bulk.runner import Done
from omnigraph.bulk.scratch import Drops, kept_rows
from omnigraph.errors import Violation
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.manifest.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.storage.files.datafiles import Destination, StagedFile, read_file
from omnigraph.write.base import Base
from omnigraph.write.delta import TableDelta
from omnigraph.write.evaluator import (
    check_cardinality,
    check_kept_edges,
    check_unique,
    missing_ends,
    note_dangling,
)
from omnigraph.write.rules import SHOWN, Violations, check_rows

KEY_BUDGET: Final = 512 << 20
"""How many bytes of keys one task may hold; the questions that need more go through Spark's shuffle."""
_BASE_KEY: Final = 32


@dataclass(frozen=True, slots=True)
class Ground:
    """What questions are asked about: a pinned branch, and the staged files that are to change it.

    ``drops`` are staged rows that are not to be loaded; ``left_out`` tells, by slice and table, which records were
    not staged at all, and ``broken`` where rows were staged that break a rule by themselves. If the files are not
    all there is to load, nothing can be asked but what is wrong with single rows.
    """

    graph: Snapshot
    branch: Branch
    mode: Mode
    targets: Mapping[str, Destination]
    files: Mapping[str, tuple[StagedFile, ...]]
    drops: Drops = field(default_factory=Drops)
    left_out: Mapping[tuple[int, str], tuple[int, ...]] = field(default_factory=dict)
    broken: frozenset[tuple[int, str]] = frozenset()
    is_partial: bool = False
    most: int = SHOWN

    def base(self) -> Base:
        """The branch as the evaluator reads it."""
        repository = Repository.at(self.graph.address, read_only=True)
        return Base(repository, self.branch, self.graph)

    def gives_ids(self, table_key: str) -> bool:
        """Do any of the staged rows bring their own ids?"""
        return any(file.given_ids for file in self.files.get(table_key, ()))

    def keys(self, table_key: str, columns: Sequence[str], files: Iterable[StagedFile] | None = None) -> pa.Table:
        """Some columns of staged rows, all or those of some files; rows that are not to be loaded left out."""
        target = self.targets[table_key]
        chosen = self.files.get(table_key, ()) if files is None else files
        tables = [kept_rows(read_file(target, file.name, columns), file, self.drops) for file in chosen]
        if not tables:
            return pa.schema([target.schema.field(name) for name in columns]).empty_table()
        return pa.concat_tables(tables)

    def change(
        self, table_key: str, columns: Sequence[str], files: Iterable[StagedFile] | None = None
    ) -> TableDelta:
        """The change of a table, as far as some columns tell it."""
        given = self.gives_ids(table_key)
        return TableDelta(
            table_key,
            self.keys(table_key, columns, files),
            replaces=self.mode is Mode.OVERWRITE,
            strict=self.mode is Mode.APPEND and given,
            fresh=self.mode is not Mode.OVERWRITE and not given,
        )

    def key_bytes(self, table_key: str) -> int:
        """About how much memory the keys of a table take once the change is applied."""
        staged = sum(file.key_bytes for file in self.files.get(table_key, ()))
        committed = self.graph.rows(table_key) * _BASE_KEY if self.mode is not Mode.OVERWRITE else 0
        return staged + committed


class Rule(StrEnum):
    """What a question is about."""

    IDS = "ids"
    ROWS = "rows"
    UNIQUE = "unique"
    ENDS = "ends"
    KEPT = "kept"
    CARD = "card"


@dataclass(frozen=True, slots=True)
class Question:
    """One rule of one table; for unique its columns, for the ends of edges the side and the files."""

    rule: Rule
    table_key: str
    columns: tuple[str, ...] = ()
    files: tuple[StagedFile, ...] = ()

    @property
    def ungrouped(self) -> Question:
        """The same question about all files."""
        return replace(self, files=())

    def memory(self, ground: Ground) -> int:
        """About how many bytes of keys its answer takes at once."""
        if self.rule is Rule.ROWS:
            return 0
        size = ground.key_bytes(self.table_key)
        entity = ground.graph.entity(self.table_key)
        if self.rule is Rule.ENDS and isinstance(entity, EdgeType):
            end = entity.source if self.columns == ("src",) else entity.target
            return sum(file.key_bytes for file in self.files) + ground.key_bytes(f"node:{end}")
        if self.rule is Rule.KEPT and isinstance(entity, NodeType):
            return size + sum(
                ground.graph.rows(edge.table_key) * _BASE_KEY
                for edge in ground.graph.catalog.incident[entity.name]
            )
        return size


@dataclass(slots=True)
class Findings:
    """The answer: violations, ids that are there twice, ids that exist already. All of them name the first few."""

    violations: list[Violation] = field(default_factory=list)
    total: int = 0
    repeated: list[tuple[str, int]] = field(default_factory=list)
    repeated_total: int = 0
    taken: list[str] = field(default_factory=list)
    taken_total: int = 0
    table_key: str = ""


def questions(ground: Ground, parallel: int) -> list[Question]:
    """Everything that has to be asked before the change may be committed, in the order of the evaluator."""
    rows = [
        Question(Rule.ROWS, file.table_key, files=(file,))
        for files in ground.files.values()
        for file in files
        if (file.slice, file.table_key) in ground.broken
    ]
    if ground.is_partial:
        return rows
    ids = [
        Question(Rule.IDS, table_key)
        for table_key in ground.files
        if ground.gives_ids(table_key) and ground.mode is not Mode.MERGE
    ]
    uniques = [
        Question(Rule.UNIQUE, table_key, tuple(group))
        for table_key in ground.files
        for group in ground.graph.entity(table_key).uniques
    ]
    return [*ids, *rows, *uniques, *_about_edges(ground, parallel)]


def _about_edges(ground: Ground, parallel: int) -> Iterator[Question]:
    for table_key, files in ground.files.items():
        entity = ground.graph.entity(table_key)
        if isinstance(entity, EdgeType):
            for side in ("src", "dst"):
                for group in _grouped(files, parallel):
                    yield Question(Rule.ENDS, table_key, (side,), group)
            if entity.minimum or entity.maximum is not None:
                yield Question(Rule.CARD, table_key)
        elif ground.mode is Mode.OVERWRITE and ground.graph.rows(table_key):
            yield Question(Rule.KEPT, table_key)


def _grouped(files: Sequence[StagedFile], groups: int) -> list[tuple[StagedFile, ...]]:
    """The files in groups of about the same number of rows."""
    limit = -(-sum(file.rows for file in files) // groups)
    grouped: list[list[StagedFile]] = [[]]
    held = 0
    for file in files:
        if grouped[-1] and held + file.rows > limit:
            grouped.append([])
            held = 0
        grouped[-1].append(file)
        held += file.rows
    return [tuple(group) for group in grouped if group]


def answer(ground: Ground, question: Question) -> Done:
    """Answer one question in this process's memory."""
    findings = Findings(table_key=question.table_key)
    found = Violations(ground.most)
    entity = ground.graph.entity(question.table_key)
    match question.rule:
        case Rule.IDS:
            _ask_ids(ground, question.table_key, findings)
        case Rule.ROWS:
            for file in question.files:
                staged = read_file(ground.targets[file.table_key], file.name)
                check_rows(entity, kept_rows(staged, file, ground.drops), found)
        case Rule.UNIQUE:
            change = ground.change(question.table_key, [*question.columns, "id"])
            check_unique(change, question.columns, ground.base(), found)
        case Rule.ENDS:
            assert isinstance(entity, EdgeType)  # noqa: S101  only edges have ends
            _ask_ends(ground, entity, question, found)
        case Rule.CARD:
            assert isinstance(entity, EdgeType)  # noqa: S101  only edges are counted
            change = ground.change(question.table_key, _card_columns(ground, question.table_key))
            check_cardinality(entity, change, {question.table_key: change}, ground.base(), found)
        case Rule.KEPT:
            assert isinstance(entity, NodeType)  # noqa: S101  only nodes have edges
            delta = {key: ground.change(key, ["id"]) for key in ground.files if _concerns(ground, key, entity)}
            check_kept_edges(entity, delta[question.table_key], delta, ground.base(), found)
    findings.violations, findings.total = found.listed, found.total
    return Done(findings)


def _concerns(ground: Ground, table_key: str, node: NodeType) -> bool:
    """Does a table decide whether edges of a node type may stay: its own, or that of an edge type it has?"""
    incident = {edge.table_key for edge in ground.graph.catalog.incident[node.name]}
    return table_key == node.table_key or table_key in incident


def _card_columns(ground: Ground, table_key: str) -> list[str]:
    replaces_some = ground.mode is Mode.MERGE and ground.gives_ids(table_key)
    return ["src", "id"] if replaces_some else ["src"]


def _ask_ids(ground: Ground, table_key: str, findings: Findings) -> None:
    """No id twice among the staged rows; in an append none that is there already."""
    ids = ground.keys(table_key, ["id"])["id"].combine_chunks()
    if pc.count_distinct(ids).as_py() < len(ids):
        counts = Counter(ids.to_pylist())
        repeated = [(value, count) for value, count in counts.items() if count > 1]
        findings.repeated, findings.repeated_total = repeated[: ground.most], len(repeated)
    if ground.mode is Mode.APPEND and ground.graph.rows(table_key):
        taken = ground.base().existing(table_key, ids)
        findings.taken, findings.taken_total = taken.slice(0, ground.most).to_pylist(), len(taken)


def _ask_ends(ground: Ground, edge: EdgeType, question: Question, found: Violations) -> None:
    """Every end on one side of some files' edges is a node; the ids of edges are read only if one is not."""
    (side,) = question.columns
    key = f"node:{edge.source if side == 'src' else edge.target}"
    delta = {key: ground.change(key, ["id"])} if key in ground.files else {}
    ends = ground.keys(edge.table_key, [side], question.files)[side]
    missing = missing_ends(edge, side, ends, delta, ground.base())
    if len(missing):
        rows = ground.keys(edge.table_key, ["id", side], question.files)
        note_dangling(edge, side, rows, missing, found)
