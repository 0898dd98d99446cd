"""The tables of the snapshot as DataFrames, one for each variable of a query."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from itertools import count
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from omnigraph.bulk.pieces import Piece
from omnigraph.formats.columns import table_schema
from omnigraph.lang.query import ir
from omnigraph.lang.schema.catalog import EdgeType
from omnigraph.lang.values import BOOL, F64, STRING, ValueType
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.spark.frames import piece_numbers, spark_schema, spark_type
from omnigraph.spark.queries.reading import Batch, Reading, Values
from omnigraph.spark.queries.steps import Carried, Entity, Match, Scan, scans_in
from omnigraph.storage.rows.filters import compared

_COMPARED: Final = (ir.Op.EQ, ir.Op.LT, ir.Op.LE, ir.Op.GT, ir.Op.GE)
_NEVER: Final = "false"
Pieces = Callable[[str], list[Piece]]
"""Gives the pieces of a table, each the share of one task; none if it has no rows."""


@dataclass(frozen=True, slots=True)
class Bound:
    """The columns of a variable: its id, and the values it carries. They are null where an optional block did not
    match."""

    entity: Entity
    id: str
    columns: Mapping[Carried, str]
    nullable: bool = False

    def named(self, item: Carried) -> str:
        return self.id if isinstance(item, ir.Prop) and item.property == "id" else self.columns[item]

    @property
    def names(self) -> list[str]:
        return [self.id, *self.columns.values()]


class Tables:
    """Reads the tables of one snapshot for one query. Every column has a name of its own, whatever the schema and
    the query call things: Spark does not tell upper from lower case, and joins mix all columns."""

    def __init__(
        self,
        spark: SparkSession,
        graph: Snapshot,
        match: Match,
        values: Values,
        pieces: Pieces,
        params: Mapping[str, ValueType],
    ) -> None:
        self.spark = spark
        self.graph = graph
        self._match = match
        self._values = values
        self.params = params
        self._pieces = pieces
        self._numbers = count()

    def fresh(self) -> str:
        """A name that no other column has."""
        return f"c{next(self._numbers)}"

    def scanned(self, scan: Scan) -> tuple[DataFrame, Bound]:
        """The entities of a scan, with the values that their variable carries."""
        carried = self._match.carried_by(scan.variable, scan.entity)
        bound = Bound(scan.entity, self.fresh(), {item: self.fresh() for item in carried})
        columns: dict[str, Carried] = {bound.id: ir.Prop(scan.variable, "id")}
        columns |= {name: item for item, name in bound.columns.items()}
        return self._frame(scan, columns), bound

    def edges(self, scan: Scan) -> tuple[DataFrame, Bound, str, str]:
        """The edges of a scan, and the names of their ends."""
        carried = self._match.carried_by(scan.variable, scan.entity)
        bound = Bound(scan.entity, self.fresh(), {item: self.fresh() for item in carried})
        source, target = self.fresh(), self.fresh()
        own = {bound.id: "id", source: "src", target: "dst"}
        columns: dict[str, Carried] = {name: ir.Prop(scan.variable, end) for name, end in own.items()}
        columns |= {name: item for item, name in bound.columns.items()}
        return self._frame(scan, columns), bound, source, target

    def ends(self, edge: Entity) -> tuple[DataFrame, str, str]:
        """The ends of all edges of a type, and their names."""
        source, target = self.fresh(), self.fresh()
        columns: dict[str, Carried] = {source: ir.Prop("", "src"), target: ir.Prop("", "dst")}
        return self._frame(Scan("", edge), columns), source, target

    def ids(self, entity: Entity) -> tuple[DataFrame, str]:
        """The ids of all entities of a type, and the name of the column."""
        name = self.fresh()
        return self._frame(Scan("", entity), {name: ir.Prop("", "id")}), name

    def nothing(self, columns: Mapping[str, str]) -> DataFrame:
        """A frame without rows, of these names and types; Spark removes joins with it from its plan."""
        nulls = [fn.lit(None).cast(kind).alias(name) for name, kind in columns.items()]
        return self.spark.range(1).where(fn.lit(False)).select(*nulls)

    def once(self) -> DataFrame:
        """One row without values."""
        return self.spark.range(1).select(fn.col("id").alias(self.fresh()))

    def _frame(self, scan: Scan, columns: Mapping[str, Carried]) -> DataFrame:
        """The rows of a scan; those of several edge types one behind the other."""
        members = scan.entity.members if isinstance(scan.entity, EdgeType) else ()
        frames = [self._of_table(replace(scan, entity=one), columns) for one in members or (scan.entity,)]
        return reduce(DataFrame.unionByName, frames)

    def _of_table(self, scan: Scan, columns: Mapping[str, Carried]) -> DataFrame:
        typed = _typed(columns, scan.entity)
        types = {name: kind for name, (_, kind) in typed.items()}
        checks = list(self._checked_by_lance(scan))
        where = " and ".join(checks) or None
        pieces = self._pieces(scan.entity.table_key)
        if not pieces or _NEVER in checks:
            return self.nothing(types)
        rows = 0 if _is_identified(scan) else self.graph.rows(scan.entity.table_key)
        numbers = piece_numbers(self.spark, len(pieces), rows)
        reading = Reading(scan, pieces, typed, self._values, where)
        return numbers.mapInArrow(reading.batches, spark_schema(types))

    def _checked_by_lance(self, scan: Scan) -> Iterable[str]:
        """Conditions that Lance can check through its indexes. They are checked again on the rows that it
        returns."""
        schema = table_schema(scan.entity)
        for condition in scan.conditions:
            match condition:
                case ir.Filter(ir.Prop(_, name), op, ir.Param() | ir.Constant() as right):
                    value = self._values.expressions.constant(right)
                    if op not in _COMPARED or isinstance(value, tuple) or not _kind(scan.entity, name).is_plain:
                        continue
                    rest = None if value is None else compared(schema.field(name).type, op, value)
                    yield _NEVER if rest is None else f"`{name}` {rest}"


def check_scans(match: Match, values: Values) -> None:
    """Refuse parameters that no search can use, before any job runs: everything is tried on no rows."""
    for scan in scans_in(match.steps):
        carried = match.carried_by(scan.variable, scan.entity)
        typed = _typed({str(index): item for index, item in enumerate(carried)}, scan.entity)
        Reading(scan, (), typed, values, None).batch(Batch.nothing(scan.entity))


def _typed(columns: Mapping[str, Carried], entity: Entity) -> dict[str, tuple[Carried, str]]:
    return {name: (item, spark_type(kind_of(item, entity))) for name, item in columns.items()}


def _is_identified(scan: Scan) -> bool:
    """Does a scan select one entity by its key? Then Spark may broadcast it."""
    key = getattr(scan.entity, "key", ())
    named = set()
    for condition in scan.conditions:
        match condition:
            case ir.Filter(ir.Prop(_, name), ir.Op.EQ, ir.Param() | ir.Constant()):
                named.add(name)
    return bool(key) and named >= set(key)


def kind_of(item: Carried | ir.Var, entity: Entity) -> ValueType:
    """The type of a value that a variable carries."""
    match item:
        case ir.Prop(_, name):
            return _kind(entity, name)
        case ir.Score():
            return F64
        case ir.Var():
            return STRING
        case ir.Call(_, _, kind):
            return kind
        case _:
            return BOOL


def _kind(entity: Entity, name: str) -> ValueType:
    found = entity.properties.get(name)
    return STRING if found is None else found.type
