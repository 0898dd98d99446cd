"""OmniGraph's part of the benchmark, and the naive merge: the same three tables, read whole and compared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from benchmarks.merge.cost import Cost, counted_rows, measured
from benchmarks.merge.shapes import SCHEMA, SIDES, Delta

import omnigraph
from omnigraph.graph import Graph

TABLE = "node:Doc"
COLUMNS = ("name", "part", "title", "score", "embedding")


@dataclass(frozen=True, slots=True)
class Branches:
    """The two branches of one delta. They are made from main, changed, compared and merged."""

    graph: Graph
    delta: Delta
    suffix: str = ""

    def name(self, side: str) -> str:
        return f"{side}-{self.delta.rows}{self.suffix}"

    def change(self) -> None:
        """Fork both branches and change them."""
        for side in SIDES:
            branch, each = self.name(side), self.delta
            self.graph.create_branch(branch)
            records = [{"type": "Doc", "data": row} for row in each.inserted(side)]
            self.graph.load(records, mode="append", branch=branch)
            updated, deleted = each.part(side, "update"), each.part(side, "delete")
            update = f'query q() {{ update Doc set {{ score: -1.0 }} where part = "{updated}" }}'
            self.graph.mutate(update, branch=branch)
            self.graph.mutate(f'query q() {{ delete Doc where part = "{deleted}" }}', branch=branch)


def build(path: Path, documents: Path) -> Graph:
    """A graph with the documents, loaded on Spark and with its indexes."""
    graph = omnigraph.init(path, SCHEMA)
    graph.load(nodes={"Doc": str(documents)}, mode="append")
    graph.ensure_indices()
    return graph


def costs(branches: Branches) -> Iterator[tuple[str, Cost]]:
    """What it costs to compare one branch with main, to follow its commits, to find the commit behind a property,
    and to merge the other branch into it. Each starts cold."""
    left, right = branches.name("left"), branches.name("right")
    forked = branches.graph.snapshot("main").graph_commit_id
    yield "diff", _cost(branches.graph, lambda graph: len(graph.diff("main", left)))
    yield "feed", _cost(branches.graph, lambda graph: _followed(graph, left, f"after:{forked}"))
    updated = _updated(branches.graph, left)
    yield "blame", _cost(branches.graph, lambda graph: graph.blame("Doc", updated, branch=left))
    yield "naive merge", _cost(branches.graph, lambda graph: _naive_merge(graph, left, right))
    yield "merge", _cost(branches.graph, lambda graph: graph.merge(right, left))


def _followed(graph: Graph, branch: str, start: str) -> int:
    pages = graph.change_pages(branch, start=start)
    return sum(len(block.changes) for page in pages for block in page.blocks)


def _updated(graph: Graph, branch: str) -> str:
    """The id of a document that the branch has updated."""
    return next(change.id for change in graph.diff("main", branch, ops=["update"]))


def _cost(graph: Graph, work: object) -> Cost:
    assert callable(work)
    with omnigraph.open(graph.address) as fresh, counted_rows() as rows:
        return replace(measured(lambda: work(fresh)), rows=sum(rows))


def _naive_merge(graph: Graph, into: str, source: str) -> int:
    """Compare three whole tables by id, as a merge that knows nothing of the change has to; write nothing."""
    base, ours, theirs = (_whole(graph, branch) for branch in ("main", into, source))
    changed = _apart(base, theirs)
    also = _apart(base, ours)
    return len(pc.unique(pa.concat_arrays([changed, also])))


def _whole(graph: Graph, branch: str) -> pa.Table:
    tables, pin = graph._repository.tables, graph.snapshot(branch).tables[TABLE]
    return tables.scan(pin.ref, columns=["id", *COLUMNS]).read_all().sort_by("id")


def _apart(before: pa.Table, after: pa.Table) -> pa.Array:
    """The ids of rows that are only in one of two tables, or differ."""
    old, new = before["id"].combine_chunks(), after["id"].combine_chunks()
    at = pc.index_in(new, value_set=old)
    both = before.take(at.drop_null())
    kept = after.filter(pc.is_valid(at))
    differing = [
        pc.not_equal(_flat(kept[name]), _flat(both[name])).to_numpy(zero_copy_only=False) for name in COLUMNS
    ]
    updated = pa.array([False] * kept.num_rows)
    for mask in differing:
        rows = mask.reshape(kept.num_rows, -1).any(axis=1)
        updated = pc.or_(updated, pa.array(rows))
    gone = old.filter(pc.invert(pc.is_in(old, value_set=new)))
    return pa.concat_arrays([new.filter(pc.is_null(at)), gone, kept["id"].combine_chunks().filter(updated)])


def _flat(column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks()
    return whole.flatten() if pa.types.is_fixed_size_list(whole.type) else whole
