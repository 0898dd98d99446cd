"""DataFrames as the input of a load: the rows of each partition are staged where Spark has them."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from omnigraph.errors import OmniError, SourceUnusable
from omnigraph.lang.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.pipeline.columnar import check_columns, read_columns
from omnigraph.pipeline.staging import SliceReport, SliceStager, StagePlan
from omnigraph.pipeline.tasks import Runner
from omnigraph.write.blocks import Block

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


BlockReader = Callable[[pa.RecordBatch], Block]
"""Reads the records of a batch of rows; line numbers are row numbers, from 1."""


class RowSource(Protocol):
    """A DataFrame that can be loaded: what errors call it, what its rows are, and how a worker reads them."""

    @property
    def name(self) -> str: ...
    @property
    def what(self) -> str: ...
    @property
    def frame(self) -> DataFrame: ...
    def check(self) -> None: ...
    def reader(self, catalog: Catalog) -> BlockReader: ...


@dataclass(frozen=True, slots=True)
class FrameSource:
    """A DataFrame whose rows are all of one type."""

    entity: NodeType | EdgeType
    frame: DataFrame
    title: str | None = None

    @property
    def name(self) -> str:
        """What errors call it."""
        return self.title or f"<DataFrame of {self.entity.name}>"

    @property
    def what(self) -> str:
        return self.entity.name

    def check(self) -> None:
        """Refuse columns that the type does not have."""
        check_columns(self.entity, self.frame.columns, self.name)

    def reader(self, catalog: Catalog) -> BlockReader:  # noqa: ARG002  the type is known
        return partial(read_columns, self.entity)


def stage_frames(runner: Runner, plan: StagePlan, source: RowSource, first: int) -> list[SliceReport]:
    """Stage a DataFrame; a report per partition that has rows. Spark runs its own plan once, for this."""
    if not hasattr(source.frame, "mapInArrow"):
        raise SourceUnusable(source.name, "it is not a Spark DataFrame")
    source.check()
    if plan.bad_records is not None:
        plan = replace(plan, most=sys.maxsize)  # nobody can read these rows again to say what is wrong with them
    with runner.watched(f"staging {source.what}"):
        staging = _staging(plan, source.reader(plan.catalog), source.name)
        rows = source.frame.mapInArrow(staging, "report binary").collect()
    return in_order((pickle.loads(row["report"]) for row in rows), first)  # noqa: S301  made by our own tasks


def _renumbered(report: SliceReport, number: int) -> SliceReport:
    report.slice = number
    report.files = [replace(file, slice=number) for file in report.files]
    return report


def _staging(
    plan: StagePlan, read: BlockReader, name: str
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def batches(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        outcome = stage_rows(plan, read, name, 0 if context is None else context.partitionId(), parts)
        yield pa.RecordBatch.from_pydict({"report": pa.array([pickle.dumps(outcome)], pa.binary())})

    return batches


def stage_rows(
    plan: StagePlan, read: BlockReader, name: str, part: int, batches: Iterator[pa.RecordBatch]
) -> SliceReport | OmniError:
    """Stage the rows of one partition; what stands in the way is the outcome, as trying again would not help."""
    stager = SliceStager(plan, part, name)
    try:
        for batch in batches:
            stager.add_block(read(batch))
        return stager.finish()
    except OmniError as error:
        return error


def in_order(outcomes: Iterable[SliceReport | OmniError], first: int = 0) -> list[SliceReport]:
    """The reports in the order of their partitions, numbered from the first on; raises what is none."""
    reports: list[SliceReport] = []
    for outcome in outcomes:
        if isinstance(outcome, OmniError):
            raise outcome
        reports.append(outcome)
    reports.sort(key=lambda report: report.slice)
    return [_renumbered(report, first + index) for index, report in enumerate(reports)]
