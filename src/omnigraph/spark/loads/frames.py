"""DataFrames as the input of a load: the rows of each partition are staged by the worker that has them."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from omnigraph.bulk.load.staging.stager import BlockReader, SliceReport, StagePlan, in_order, stage_rows
from omnigraph.errors import SourceUnusable
from omnigraph.formats.columnar import check_columns, read_columns
from omnigraph.lang.schema.catalog import Catalog, EntityType
from omnigraph.spark.runner import SparkRunner

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class LoadableFrame(Protocol):
    """A DataFrame that can be loaded."""

    @property
    def name(self) -> str:
        """The name of the DataFrame in errors."""

    @property
    def content(self) -> str:
        """What its rows are, for the progress of the job."""

    @property
    def frame(self) -> DataFrame:
        """The DataFrame itself."""

    def check(self) -> None:
        """Refuse columns that cannot be loaded."""

    def reader(self, catalog: Catalog) -> BlockReader:
        """How a worker reads the rows."""


@dataclass(frozen=True, slots=True)
class FrameSource:
    """A DataFrame whose rows are all of one type."""

    entity: EntityType
    frame: DataFrame
    title: str | None = None

    @property
    def name(self) -> str:
        return self.title or f"<DataFrame of {self.entity.name}>"

    @property
    def content(self) -> str:
        return self.entity.name

    def check(self) -> None:
        """Refuse columns that the type does not have."""
        check_columns(self.entity, self.frame.columns, self.name)

    def reader(self, catalog: Catalog) -> BlockReader:  # noqa: ARG002  the type is known
        return partial(read_columns, self.entity)


@dataclass(frozen=True, slots=True)
class FrameRows:
    """A DataFrame as a source of rows for one job."""

    runner: SparkRunner
    source: LoadableFrame

    @property
    def name(self) -> str:
        return self.source.name

    def stage(self, plan: StagePlan, first: int) -> list[SliceReport]:
        """Stage the rows of each partition on the worker that has them, in one run of the DataFrame's own plan."""
        source = self.source
        if not hasattr(source.frame, "mapInArrow"):
            raise SourceUnusable(source.name, "it is not a Spark DataFrame")
        source.check()
        if plan.writes_bad_records:
            plan = replace(plan, error_limit=sys.maxsize)  # these rows cannot be read a second time
        with self.runner.watched(f"staging {source.content}"):
            staging = _staging(plan, source.reader(plan.catalog), source.name)
            rows = source.frame.mapInArrow(staging, "report binary").collect()
        return in_order((pickle.loads(row["report"]) for row in rows), first)  # noqa: S301  made by our own tasks


def _staging(
    plan: StagePlan, read: BlockReader, name: str
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def batches(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        outcome = stage_rows(plan, read, name, 0 if context is None else context.partitionId(), parts)
        yield pa.RecordBatch.from_pydict({"report": pa.array([pickle.dumps(outcome)], pa.binary())})

    return batches
