"""DataFrames as the input of a load: the rows of each partition are staged where Spark has them."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.errors import OmniError, SourceUnusable
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.pipeline.columnar import check_columns, read_columns
from omnigraph.pipeline.staging import SliceReport, SliceStager, StagePlan
from omnigraph.pipeline.tasks import Runner

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class FrameSource:
    """A DataFrame whose rows are all of one type."""

    entity: NodeType | EdgeType
    frame: DataFrame

    @property
    def name(self) -> str:
        """What errors call it."""
        return f"<DataFrame of {self.entity.name}>"


def stage_frames(runner: Runner, plan: StagePlan, source: FrameSource, first: int) -> list[SliceReport]:
    """Stage a DataFrame; a report per partition that has rows. Spark runs its own plan once, for this."""
    if not hasattr(source.frame, "mapInArrow"):
        raise SourceUnusable(source.name, "it is not a Spark DataFrame")
    check_columns(source.entity, source.frame.columns, source.name)
    with runner.watched(f"staging {source.entity.name}"):
        rows = source.frame.mapInArrow(_staging(plan, source.entity, source.name), "report binary").collect()
    reports = [pickle.loads(row["report"]) for row in rows]  # noqa: S301  made by our own tasks
    for report in reports:
        if isinstance(report, OmniError):
            raise report
    ordered = sorted(reports, key=lambda report: report.slice)
    return [_renumbered(report, first + index) for index, report in enumerate(ordered)]


def _renumbered(report: SliceReport, number: int) -> SliceReport:
    report.slice = number
    report.files = [replace(file, slice=number) for file in report.files]
    return report


def _staging(
    plan: StagePlan, entity: NodeType | EdgeType, name: str
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def batches(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        stager = SliceStager(plan, 0 if context is None else context.partitionId(), name)
        outcome: SliceReport | OmniError
        try:
            for batch in parts:
                stager.add_block(read_columns(entity, batch))
            outcome = stager.finish()
        except OmniError as error:
            outcome = error
        yield pa.RecordBatch.from_pydict({"report": pa.array([pickle.dumps(outcome)], pa.binary())})

    return batches
