"""Changes of the schema by tasks: the same rows, the same plan, the same commit as in the calling thread."""

from __future__ import annotations

import asyncio
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.bulk.merge.test_large_merges import assert_nothing_left, row_ids
from tests.cli.command import omnigraph as run
from tests.evolution.cases import CASES, PEOPLE, Case, Record, node, person
from tests.evolution.test_apply import content
from tests.processes import children, see_killed
from tests.recovery.test_windows import ALREADY_VISIBLE, DONE, OUTCOMES, ROLLED_FORWARD
from tests.sampling import sampled
from tests.stores import Store

import omnigraph
from omnigraph import Graph, failpoints
from omnigraph.bulk.runner import JobEvent
from omnigraph.errors import ConstraintViolation, JobCancelled, NotOnSpark, ObjectDamaged, RequestError
from omnigraph.read.limits import Cancellation
from omnigraph.settings import BulkSettings, Settings, WriteSettings
from omnigraph.storage import layout

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TASKS = Settings(write=WriteSettings(fold=False), bulk=BulkSettings(small_rewrite=0, rows_per_file=3))
"""Every computed column is computed by tasks, each for three rows or one fragment, and small files stay."""

AT_ONCE = Settings(write=WriteSettings(fold=False))
"""Every column is computed in the calling thread, and small files stay."""

COMPUTED = [case for case in CASES if case.fill or any("widen Person.age" in step for step in case.steps)] + [
    case for case in CASES if case.name == "widen a date to an instant"
]
LISTS = Case(
    "lists and vectors",
    person("name: String @key  marks: [I64]?  spot: Vector(2)?  other: [I64]  place: Vector(2)"),
    (),
    {},
    before=person("name: String @key  marks: [I64]?  spot: Vector(2)?"),
    fill={"Person.other": "$marks", "Person.place": [0.5, 2.0]},
    rows=[node(name=f"n{number}", marks=[number] * number, spot=[number, 1.0]) for number in range(3)],
)
WIDER = PEOPLE.replace("I32", "I64")
MAILS = person("name: String @key  age: I64?  city: String?  born: Date?  mail: String")
FILL: dict[str, object] = {"Person.mail": "none"}


def begun(store: Store, case: Case, branch: str = "main", settings: Settings = TASKS) -> Graph:
    """A graph whose table of persons has several fragments, some of them with deleted rows."""
    graph = omnigraph.init(store.uri, case.before, storage_options=store.options, settings=settings)
    grow(graph, case.rows, 1)
    if branch != "main":
        graph.create_branch(branch)
    graph = graph.branch(branch)
    grow(graph, case.rows, 2)
    graph.mutate('query q() { delete Person where name = "Ada-1-2" }')
    graph.mutate('query q() { delete Person where name = "n0-2-0" }')
    return graph


def grow(graph: Graph, rows: Any, round_: int) -> None:
    """Add the rows of a case a few times, each time as a fragment, under other names."""
    for copy in range(4):
        graph.load([renamed(row, f"-{round_}-{copy}") for row in rows if "type" in row], mode="append")


def renamed(row: Record, suffix: str) -> Record:
    return {**row, "data": {**row["data"], "name": row["data"]["name"] + suffix}}


def versions(graph: Graph) -> dict[str, tuple[int, int]]:
    return {key: (pin.table_version, pin.row_count) for key, pin in graph.snapshot().tables.items()}


def shown(value: object) -> str:
    return value.name if isinstance(value, Case) else str(value)


@pytest.mark.parametrize(
    ("case", "branch"), sampled(product([*COMPUTED, LISTS], ["main", "review/1"]), 4), ids=shown
)
def test_by_tasks_as_in_the_calling_thread(case: Case, branch: str, tmp_path: Path) -> None:
    small = begun(Store(f"{tmp_path}/small"), case, branch, AT_ONCE)
    large = begun(Store(f"{tmp_path}/large"), case, branch)
    before, old, ids = large.snapshot().graph_commit_id, content(large), row_ids(large, branch)
    steps: set[str] = set()
    expected = small.apply_schema(case.after, fill=case.fill, actor="ada")
    done = large.apply_schema(
        case.after, fill=case.fill, actor="ada", engine="local", listener=lambda event: steps.add(event.step)
    )
    assert steps == {"computing columns"}
    assert done.commit is not None
    assert expected.commit is not None
    assert (done.plan.steps.steps, done.plan.work) == (expected.plan.steps.steps, expected.plan.work)
    assert (done.commit.kind, done.commit.actor_id) == (expected.commit.kind, expected.commit.actor_id)
    assert content(large) == content(small)
    assert versions(large) == versions(small)
    assert row_ids(large, branch) == ids
    assert content(large, before) == old, "older states keep their schema"
    assert_nothing_left(large)
    grow(large, [row for row in case.rows if not case.fill], 3)
    again = omnigraph.open(large.address).branch(branch)
    assert content(again) == content(large), "another process reads the same"
    large.optimize(branch=branch, engine="local")
    assert content(large) == content(again), "fragments with several files are put together"


def test_chains_of_changes(local_store: Store) -> None:
    """Columns that were computed by tasks are read by later tasks, renamed, dropped and computed again."""
    graph = begun(local_store, COMPUTED[0])
    graph.apply_schema(MAILS.replace("I64", "I32"), fill=FILL, engine="local")
    posts = MAILS.replace("I64?", "F64?").replace("mail", "post")
    graph.apply_schema(posts, fill={"Person.post": "$mail"}, engine="local")
    found = content(graph)["Person"]
    assert {row["post"] for row in found} == {"none"}
    assert {row["age"] for row in found} == {36.0, None}
    graph.apply_schema(PEOPLE.replace("I32", "F64"))
    assert all("post" not in row for row in content(graph)["Person"])
    assert_nothing_left(graph)


def test_a_fragment_of_many_batches_keeps_its_order(local_store: Store) -> None:
    """Computed values lie beside the rows that they belong to, in a file with deleted rows all over it."""
    graph = omnigraph.init(local_store.uri, person("name: String @key  age: I32?"), settings=TASKS)
    graph.load([node(name=f"{number}", age=number) for number in range(1, 20_001)], mode="append")
    for first in (1, 9_000, 19_990):
        graph.mutate(f"query q() {{ delete Person where age >= {first} and age < {first + 7} }}")
    wider = person("name: String @key  age: I64?  label: String")
    graph.apply_schema(wider, fill={"Person.label": "$name"}, engine="local")
    found = content(graph)["Person"]
    assert len(found) == 20_000 - 21
    assert all(row["name"] == row["label"] == str(row["age"]) for row in found)


def test_rows_that_break_a_rule_start_no_job(local_store: Store) -> None:
    graph = begun(local_store, COMPUTED[0])
    events: list[JobEvent] = []
    with pytest.raises(ConstraintViolation, match=r"Person.age is required"):
        graph.apply_schema(WIDER.replace("age: I64?", "age: I64"), engine="local", listener=events.append)
    assert events == []
    assert_nothing_left(graph)


def test_a_small_table_takes_no_job(local_store: Store) -> None:
    """Up to the limit nothing is computed by tasks: no listener hears of steps."""
    for limit, expected in ((1 << 30, False), (0, True)):
        settings = Settings(bulk=BulkSettings(small_rewrite=limit))
        graph = begun(Store(f"{local_store.uri}-{limit}"), COMPUTED[0], settings=settings)
        events: list[JobEvent] = []
        graph.apply_schema(WIDER, engine="local", listener=events.append)
        assert bool(events) is expected


def test_progress_counts_tasks_rows_and_bytes(local_store: Store) -> None:
    graph = begun(local_store, COMPUTED[0])
    events: list[JobEvent] = []
    graph.apply_schema(WIDER, engine="local", listener=events.append)
    last = events[-1]
    assert [event.done for event in events] == list(range(1, last.tasks + 1))
    assert last.tasks > 3
    assert last.rows == 16, "deleted rows are computed too: the files of a fragment are equally long"
    assert last.bytes >= 16 * 8


def test_a_change_that_is_cancelled_leaves_nothing(local_store: Store) -> None:
    graph = begun(local_store, COMPUTED[0])
    before, files = content(graph), data_files(graph)
    cancellation = Cancellation()

    def cancel(event: JobEvent) -> None:
        cancellation.cancel()

    with pytest.raises(JobCancelled):
        graph.apply_schema(WIDER, engine="local", listener=cancel, cancellation=cancellation)
    assert content(graph) == before
    assert graph.schema == PEOPLE
    assert data_files(graph) == files
    assert_nothing_left(graph)
    small = omnigraph.open(graph.address)
    with pytest.raises(JobCancelled):
        small.apply_schema(WIDER, cancellation=cancellation)
    assert small.schema == PEOPLE


def data_files(graph: Graph) -> set[Path]:
    return set(Path(graph.address, "nodes").rglob("data/*"))


def test_what_is_computed_stays_when_the_table_moves(local_store: Store) -> None:
    """After a conflict only the fragments that another writer has added are computed; deletions do not count."""
    graph = begun(local_store, COMPUTED[0])
    other = omnigraph.open(graph.address, settings=TASKS)
    computed: list[int] = []

    def write_meanwhile(event: JobEvent) -> None:
        if event.done != event.tasks:
            return
        if not computed:
            other.load([node(name="Eve", age=7)], mode="append")
            other.mutate('query q() { delete Person where name = "Bob-2-2" }')
        computed.append(event.rows)

    graph.apply_schema(WIDER, engine="local", listener=write_meanwhile)
    assert computed == [16, 1]
    names = {row["name"]: row["age"] for row in content(graph)["Person"]}
    assert names["Eve"] == 7
    assert "Bob-2-2" not in names
    assert_nothing_left(graph)


def test_only_columns_that_are_computed_need_whole_files(local_store: Store) -> None:
    """A damaged file does not matter to a rename, which reads no file; the rows are not computed from it."""
    graph = begun(local_store, COMPUTED[0])
    file = min(data_files(graph))
    damaged = bytearray(file.read_bytes())
    damaged[10] ^= 1
    file.write_bytes(damaged)
    before = data_files(graph)
    for settings in (AT_ONCE, TASKS):
        with pytest.raises(ObjectDamaged):
            omnigraph.open(graph.address, settings=settings).apply_schema(WIDER, engine="local")
        assert data_files(graph) == before, "what other tasks have computed is removed"
    other = omnigraph.open(graph.address)
    done = other.apply_schema(PEOPLE.replace("city: String?", "town: String? @rename_from(city)  note: String?"))
    assert done.commit is not None
    assert_nothing_left(other)


def test_engines_that_are_none_or_cannot_reach_the_graph(memory_store: Store) -> None:
    graph = begun(memory_store, COMPUTED[0])
    with pytest.raises(RequestError, match="'flink' is no engine"):
        graph.apply_schema(WIDER, engine="flink")  # type: ignore[arg-type]
    with pytest.raises(NotOnSpark, match="a graph in memory"):
        graph.apply_schema(WIDER, engine="spark")
    assert graph.apply_schema(WIDER, engine="local").commit is not None


def change_by_tasks(store: Store) -> None:
    graph = omnigraph.open(store.uri, storage_options=store.options, settings=TASKS)
    graph.apply_schema(MAILS, fill=FILL, engine="local")


WINDOWS = {
    "job.after_record": "nothing",
    "schema.after_columns": "nothing",
    **{window: end for window, end in OUTCOMES.items() if window != "write.between_tables"},
}
STAGED = {
    "schema.after_columns",
    "write.after_stage",
    "write.after_lock",
    "recovery.sidecar_write",
    "write.after_sidecar",
}
"""Where a killed job leaves files that no table refers to."""


@pytest.mark.parametrize("window", sampled(WINDOWS, 2))
def test_a_change_that_is_killed_is_wholly_there_or_not_at_all(window: str, local_store: Store) -> None:
    check_killed(window, local_store)


@pytest.mark.long
@pytest.mark.parametrize("window", ["schema.after_columns", "write.after_tables"])
def test_a_change_that_is_killed_in_a_bucket(window: str, s3_store: Store) -> None:
    check_killed(window, s3_store)


def check_killed(window: str, store: Store) -> None:
    before = content(begun(store, COMPUTED[0]))
    see_killed(window, change_by_tasks, store)
    reader = omnigraph.open(store.uri, read_only=True, storage_options=store.options)
    assert (content(reader) != before) == (window in ALREADY_VISIBLE)
    again = omnigraph.open(store.uri, storage_options=store.options, settings=TASKS)
    is_done = WINDOWS[window] in (DONE, ROLLED_FORWARD)
    assert again.schema == (MAILS if is_done else PEOPLE)
    assert (content(again) != before) == is_done
    left = again.jobs()
    assert {(job.record.kind, job.is_running) for job in left} <= {("schema_apply", False)}
    assert len(left) == (window != "recovery.sidecar_list"), "the first thing that a write does"
    assert bool([job for job in left if job.files]) is (window in STAGED)
    again.clean_jobs()
    assert store.objects().list(layout.JOBS) == []
    assert again.jobs() == []
    if not is_done:
        assert not [key for key in store.objects().list("nodes") if any(job.record.job in key for job in left)]
    again.apply_schema(MAILS, fill={} if is_done else FILL, engine="local")
    assert {row["mail"] for row in content(again)["Person"]} == {"none"}


def die_half_way(store: Store) -> None:
    """Be killed while some tasks are done, some are running and some have not begun."""

    def die(event: JobEvent) -> None:
        if event.done == 3:
            failpoints.die()

    graph = omnigraph.open(store.uri, storage_options=store.options, settings=TASKS)
    graph.apply_schema(MAILS, fill=FILL, engine="local", listener=die)


def test_a_change_that_is_killed_between_its_tasks(local_store: Store) -> None:
    graph = begun(local_store, COMPUTED[0])
    before, files = content(graph), data_files(graph)
    with children((die_half_way, local_store)) as (child,):
        child.join_killed()
    again = omnigraph.open(local_store.uri, settings=TASKS)
    assert content(again) == before
    assert len(data_files(again)) >= len(files) + 3
    (job,) = again.clean_jobs()
    assert len(job.files) >= 3
    assert data_files(again) == files
    assert_nothing_left(again)
    again.apply_schema(MAILS, fill=FILL, engine="local")
    assert {row["mail"] for row in content(again)["Person"]} == {"none"}


def test_from_an_asynchronous_program(local_store: Store) -> None:
    graph = begun(local_store, COMPUTED[0])
    events: list[JobEvent] = []

    async def main() -> None:
        async with await omnigraph.AsyncGraph.open(graph.address, settings=TASKS) as opened:
            await opened.apply_schema(WIDER, engine="local", listener=events.append)

    asyncio.run(main())
    assert events[-1].rows == 16
    assert graph.schema == WIDER


class TestOnSpark:
    def test_every_column_as_in_the_calling_thread(self, tmp_path: Path, spark: SparkSession) -> None:
        case = Case("", MAILS.replace("I64?", "F64"), (), {}, fill={**FILL, "Person.age": 0})
        small = begun(Store(f"{tmp_path}/small"), case, "dev", AT_ONCE)
        large = begun(Store(f"{tmp_path}/large"), case, "dev")
        events: list[JobEvent] = []
        expected = small.apply_schema(case.after, fill=case.fill)
        done = large.apply_schema(case.after, fill=case.fill, spark=spark, listener=events.append)
        assert (done.plan.steps.steps, done.plan.work) == (expected.plan.steps.steps, expected.plan.work)
        assert (events[-1].step, events[-1].done, events[-1].rows) == ("computing columns", events[-1].tasks, 16)
        assert content(large) == content(small)
        assert versions(large) == versions(small)
        assert_nothing_left(large)

    def test_lists_and_vectors(self, tmp_path: Path, spark: SparkSession) -> None:
        small = begun(Store(f"{tmp_path}/small"), LISTS, settings=AT_ONCE)
        large = begun(Store(f"{tmp_path}/large"), LISTS)
        small.apply_schema(LISTS.after, fill=LISTS.fill)
        large.apply_schema(LISTS.after, fill=LISTS.fill, engine="spark", spark=spark)
        assert content(large) == content(small)
        assert_nothing_left(large)


def test_the_command_names_an_engine(local_store: Store, tmp_path: Path) -> None:
    graph = begun(local_store, COMPUTED[0])
    (tmp_path / "wider.pg").write_text(WIDER)
    apply = ("schema", "apply", "--schema", str(tmp_path / "wider.pg"), "--store", graph.address, "--json")
    assert run(*apply, "--engine", "flink").code == 2
    refused = run(*apply, "--all-branches", "--engine", "spark")
    assert refused.code == 2
    assert "not on Spark" in refused.json["error"]
    done = run(*apply, "--engine", "local").json
    assert done["commit"]["kind"] == "schema_apply"
    assert graph.schema == WIDER
