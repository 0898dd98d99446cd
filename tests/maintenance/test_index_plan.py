"""Planning: which indexes a schema asks for, and which of them are worth building now."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import pytest

from omnigraph.lang.schema.catalog import Catalog, load_catalog
from omnigraph.maintenance.index_plan import (
    DEFAULT_LAG,
    NO_LAG,
    VECTOR_ROWS,
    TablePlan,
    plan_table,
    wanted_indexes,
)
from omnigraph.storage.stage.indexes import ExistingIndex, IndexSpec, SegmentBuild

SCHEMA = """
node Doc {
  slug: String @key
  mail: String? @unique
  body: String? @index
  note: String?
  kind: enum(a, b) @index
  size: I64? @index
  rate: F32? @index
  open: Bool @index
  day: Date @index
  at: DateTime @index
  tags: [String]?
  place: Vector(2)? @index
  wide: Vector(16)? @index
  meaning: Vector(2)? @embed(body) @index
  @index(tags, size)
}
node Bare {}
edge Cites: Doc -> Doc { year: I32 @index  why: String?  @index(dst, year)  @unique(src, why) }
"""
IVF = ("place", "IVF_FLAT")


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog(SCHEMA)


def index(column: str, kind: str, rows: int, name: str = "", **options: Any) -> ExistingIndex:
    return ExistingIndex(column, kind, name or f"{column}_{kind.lower()}", rows, options)


@dataclass
class Facts:
    """A table as a plan sees it. What it costs to catch up is ``cost`` times the rows that an index lacks."""

    rows: int
    indexes: tuple[ExistingIndex, ...]
    count: Callable[[str], int]
    shared_with: str | None = None
    cost: int = 1

    def filled(self, column: str, fragments: Collection[int] | None = None) -> int:
        return self.count(column)

    def whole(self, spec: IndexSpec) -> list[SegmentBuild]:
        return [SegmentBuild(spec, (0,), self.rows)]

    def catching_up(self, spec: IndexSpec, index: ExistingIndex) -> list[SegmentBuild]:
        return [SegmentBuild(spec, (1,), self.cost * (self.rows - index.rows))]


def facts(
    rows: int, *indexes: ExistingIndex, filled: int | None = None, owner: str | None = None, cost: int = 1
) -> Facts:
    return Facts(rows, indexes, lambda _: rows if filled is None else filled, owner, cost)


def names(plan: TablePlan) -> set[str]:
    return {build.spec.name for build in plan.build}


def reasons(plan: TablePlan) -> dict[tuple[str, str | None], str]:
    return {(d.column, d.kind): d.reason for d in plan.deferred}


def test_what_a_node_type_asks_for(catalog: Catalog) -> None:
    assert [(w.column, w.kind) for w in wanted_indexes(catalog.nodes["Doc"])] == [
        ("id", "BTREE"),
        ("at", "BTREE"),
        ("body", "BTREE"),
        ("day", "BTREE"),
        ("kind", "BTREE"),
        ("mail", "BTREE"),
        ("meaning", "IVF_FLAT"),
        ("open", "BTREE"),
        ("place", "IVF_FLAT"),
        ("rate", "BTREE"),
        ("size", "BTREE"),
        ("slug", "BTREE"),
        ("tags", None),
        ("wide", "IVF_RQ"),
    ]
    assert [(w.column, w.kind) for w in wanted_indexes(catalog.nodes["Bare"])] == [("id", "BTREE")]


def test_what_an_edge_type_asks_for(catalog: Catalog) -> None:
    """Endpoints are indexed once, also if a constraint names them."""
    assert [(w.column, w.kind) for w in wanted_indexes(catalog.edges["Cites"])] == [
        ("id", "BTREE"),
        ("src", "BTREE"),
        ("dst", "BTREE"),
        ("why", "BTREE"),
        ("year", "BTREE"),
    ]


def test_vectors_are_measured_as_queries_measure_them(catalog: Catalog) -> None:
    metrics = {w.column: w.options["metric"] for w in wanted_indexes(catalog.nodes["Doc"]) if w.is_of_vectors}
    assert metrics == {"place": "l2", "meaning": "cosine", "wide": "l2"}


def test_a_table_without_rows_waits(catalog: Catalog) -> None:
    plan = plan_table(catalog.edges["Cites"], facts(0))
    assert plan.build == ()
    assert set(reasons(plan).values()) == {"the table is empty"}
    kept = [index(column, "BTREE", 0) for column in ("id", "src", "dst", "why", "year")]
    plan = plan_table(catalog.edges["Cites"], facts(0, *kept))
    assert plan == TablePlan((), ())


def test_lists_are_reported(catalog: Catalog) -> None:
    assert reasons(plan_table(catalog.nodes["Doc"], facts(9)))["tags", None] == "lists are not indexed"


@pytest.mark.parametrize(
    ("rows", "filled", "partitions"),
    [
        (VECTOR_ROWS - 1, 0, None),
        (VECTOR_ROWS, VECTOR_ROWS - 1, None),
        (VECTOR_ROWS, VECTOR_ROWS, 223),
        (10**9, 10**9, 4096),
    ],
)
def test_vectors_wait_until_there_are_many(
    catalog: Catalog, rows: int, filled: int, partitions: int | None
) -> None:
    plan = plan_table(catalog.nodes["Doc"], facts(rows, filled=filled))
    specs = [build.spec for build in plan.build if "num_partitions" in build.spec.options]
    built = {spec.column: spec.options["num_partitions"] for spec in specs}
    if partitions is None:
        assert built == {}
        counted = f"{VECTOR_ROWS - 1} rows; exact search is fast enough below {VECTOR_ROWS}"
        assert reasons(plan)[IVF] == counted
    else:
        assert built == {"place": partitions, "meaning": partitions, "wide": partitions}


def test_vectors_are_not_counted_where_it_cannot_matter(catalog: Catalog) -> None:
    """Counting is a scan: neither a small table nor one that has its index is scanned."""

    def count(column: str) -> int:
        raise AssertionError(column)

    node = catalog.nodes["Doc"]
    plan_table(node, Facts(VECTOR_ROWS - 1, (), count))
    there = (
        index(*IVF, 10**6, metric_type="L2"),
        index("meaning", "IVF_FLAT", 10**6, metric_type="COSINE"),
        index("wide", "IVF_RQ", 10**6, metric_type="L2"),
    )
    plan_table(node, Facts(10**6, there, count))


@pytest.mark.parametrize(
    ("rows", "missing", "due"),
    [
        (1_000, 100, False),
        (1_000, 101, True),
        (1, 1, True),
        (10**6, DEFAULT_LAG.rows, False),
        (10**6, DEFAULT_LAG.rows + 1, True),
    ],
)
def test_an_index_catches_up_when_many_rows_are_not_in_it(
    catalog: Catalog, rows: int, missing: int, due: bool
) -> None:
    plan = plan_table(catalog.nodes["Bare"], facts(rows, index("id", "BTREE", rows - missing, "by_id")))
    if due:
        assert names(plan) == {"by_id"}
    else:
        assert reasons(plan) == {("id", "BTREE"): f"{missing} rows since the index was built are scanned"}


def test_without_a_lag_every_row_is_indexed(catalog: Catalog) -> None:
    table = facts(10**6, index("id", "BTREE", 10**6 - 1, "by_id"))
    assert names(plan_table(catalog.nodes["Bare"], table, NO_LAG)) == {"by_id"}


def test_new_rows_without_vectors_wait(catalog: Catalog) -> None:
    table = facts(10**6, index(*IVF, 10**5, metric_type="L2"), filled=0)
    assert reasons(plan_table(catalog.nodes["Doc"], table))[IVF] == (
        "900000 rows since the index was built are scanned"
    )


def test_an_index_of_another_make_is_built_again(catalog: Catalog) -> None:
    """Distances must be measured as searches measure them, and vectors kept as this version keeps them."""
    node = catalog.nodes["Doc"]
    many = 10 * VECTOR_ROWS
    assert "v" in names(plan_table(node, facts(many, index(*IVF, many, "v", metric_type="COSINE"))))
    assert "v" not in names(plan_table(node, facts(many, index(*IVF, many, "v", metric_type="L2"))))
    for kind, due in (("IVF_FLAT", True), ("IVF_RQ", False)):
        plan = plan_table(node, facts(many, index("wide", kind, many, "w", metric_type="L2")))
        assert ("w" in names(plan)) == due


def test_a_shared_table_is_indexed_where_it_belongs(catalog: Catalog) -> None:
    plan = plan_table(catalog.nodes["Bare"], facts(9, owner="main"))
    assert (plan.build, reasons(plan)) == ((), {("id", "BTREE"): "shared with branch main; index it there"})
    assert plan_table(catalog.nodes["Bare"], facts(9, index("id", "BTREE", 9), owner="main")) == TablePlan((), ())


def test_names_are_the_columns_own(catalog: Catalog) -> None:
    """An index follows its column through a rename, so a new column may find its name taken."""
    cites = catalog.edges["Cites"]
    assert names(plan_table(cites, facts(1))) == {
        "id_btree",
        "src_btree",
        "dst_btree",
        "why_btree",
        "year_btree",
    }
    renamed = index("why", "BTREE", 1, "year_btree")
    again = names(plan_table(cites, facts(1, renamed, index("src", "BTREE", 1, "year_btree_2"))))
    assert again == {"id_btree", "dst_btree", "year_btree_3"}
