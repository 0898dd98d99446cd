"""A table driven by random changes, beside a plain dictionary that must always agree with it."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule
from tests.sampling import examples
from tests.storage.rows import LOCATION, SCHEMA, ages, appended, changed, people, row_ids, with_row_ids
from tests.stores import Store, local_store

from omnigraph.storage.stage.changes import stage_overwrite
from omnigraph.storage.stage.indexes import IndexSpec, stage_create_index
from omnigraph.storage.tables import TableRef, Tables

IDS = st.sampled_from(["a", "b", "c", "d", "e", "o'f", "ü g", ""])
AGES = st.one_of(st.none(), st.integers(0, 5))
ROWS = st.dictionaries(IDS, AGES, max_size=5)


@dataclass(frozen=True)
class Row:
    """What the model knows of a row: its value, its row id, and the version that last wrote it."""

    age: int | None
    row_id: int
    written: int


@dataclass(frozen=True)
class State:
    """One version, the row ids that any version up to it has used, and those from which a delta can be told."""

    ref: TableRef
    rows: dict[str, Row]
    used: frozenset[int] = frozenset()
    origins: tuple[State, ...] = ()


class TableMachine(RuleBasedStateMachine):
    """Changes of every kind on one table and its branches. Each version ever made can be used again."""

    states: Bundle[State] = Bundle("states")

    @initialize(target=states)
    def create(self) -> State:
        self.folder = tempfile.TemporaryDirectory()
        self.store: Store = local_store(Path(self.folder.name))
        self.tables: Tables = self.store.tables()
        self.heads: dict[str | None, State] = {}
        return self.note(State(self.tables.create(LOCATION, SCHEMA), {}))

    def teardown(self) -> None:
        self.folder.cleanup()

    def note(self, state: State) -> State:
        self.heads[state.ref.branch] = state
        return state

    def head(self, state: State) -> State:
        """The newest state of the branch that a state is on."""
        return self.heads[state.ref.branch]

    def follow(self, before: State, ref: TableRef, ages: dict[str, int | None], written: set[str]) -> State:
        """The state after a change that wrote some rows. Row ids come from the table; new rows get new ones."""
        assert ref == replace(before.ref, version=before.ref.version + 1)
        found = row_ids(self.tables, ref)
        rows = {}
        for name, age in ages.items():
            known = before.rows.get(name)
            if known is not None and name in written:
                rows[name] = Row(age, known.row_id, ref.version)
            elif known is not None:
                rows[name] = known
            else:
                assert found[name] not in before.used, "a row id is used twice"
                rows[name] = Row(age, found[name], ref.version)
        return self.note(State(ref, rows, before.used | set(found.values()), (*before.origins, before)))

    @rule(target=states, state=states, upserts=ROWS, deletes=st.sets(IDS, max_size=3))
    def change(self, state: State, upserts: dict[str, int | None], deletes: set[str]) -> State:
        before = self.head(state)
        deletes -= set(upserts)
        staged = changed(self.tables, before.ref, upserts, sorted(deletes))
        assert staged.inserted == len(upserts.keys() - before.rows.keys())
        assert staged.updated == len(upserts.keys() & before.rows.keys())
        assert staged.deleted == len(deletes & before.rows.keys())
        after = {name: row.age for name, row in before.rows.items() if name not in deletes} | upserts
        return self.follow(before, self.tables.commit_staged(staged.staged), after, set(upserts))

    @rule(target=states, state=states, rows=ROWS)
    def append(self, state: State, rows: dict[str, int | None]) -> State:
        before = self.head(state)
        fresh = {name: age for name, age in rows.items() if name not in before.rows}
        ref = self.tables.commit_staged(appended(self.tables, before.ref, fresh))
        after = {name: row.age for name, row in before.rows.items()} | fresh
        return self.follow(before, ref, after, set(fresh))

    @rule(target=states, state=states, rows=ROWS)
    def overwrite(self, state: State, rows: dict[str, int | None]) -> State:
        before = self.head(state)
        handle = self.tables.open(before.ref)
        staged = stage_overwrite(handle, LOCATION, before.ref.branch, people(rows), "test")
        emptied = replace(before, rows={})
        after = self.follow(emptied, self.tables.commit_staged(staged), rows, set(rows))
        return self.note(replace(after, origins=(*before.origins, before)))

    @rule(target=states, state=states)
    def index(self, state: State) -> State:
        before = self.head(state)
        handle = self.tables.open(before.ref)
        number = len(handle.describe_indices())
        specs = [IndexSpec("id", "BTREE", f"id{number}"), IndexSpec("age", "BTREE", f"age{number}")]
        ref = self.tables.commit_staged(stage_create_index(handle, LOCATION, before.ref.branch, specs, "test"))
        return self.follow(before, ref, {name: row.age for name, row in before.rows.items()}, set())

    @rule(target=states, state=states)
    def restore(self, state: State) -> State:
        head = self.head(state)
        ref = self.tables.restore(state.ref, head.ref.version)
        assert ref == replace(head.ref, version=head.ref.version + 1)
        return self.note(State(ref, state.rows, head.used, (*state.origins, state)))

    @rule(target=states, state=states)
    def fork(self, state: State) -> State:
        name = f"b{len(self.heads)}"
        return self.note(State(self.tables.fork(state.ref, name), state.rows, state.used))

    @rule(state=states)
    def read(self, state: State) -> None:
        """Any version, however old, read by a client that has not seen it before."""
        self.check(self.store.tables(), state)

    @rule(state=states, age=st.integers(0, 5))
    def search(self, state: State, age: int) -> None:
        """By whatever indexes there are, and without."""
        expected = {name: age for name, row in state.rows.items() if row.age == age}
        assert ages(self.tables.scan(state.ref, where=f"age = {age}")) == expected
        for name in ("a", "o'f"):
            quoted = name.replace("'", "''")
            assert set(row_ids(self.tables, state.ref, f"id = '{quoted}'")) == {name} & state.rows.keys()

    @rule(state=states, data=st.data())
    def compare(self, state: State, data: st.DataObject) -> None:
        """The delta from any version that led to this one."""
        since = data.draw(st.sampled_from([*state.origins, state]))
        delta = self.tables.delta(state.ref, since.ref.version)
        old = {row.row_id for row in since.rows.values()}
        new = {row.row_id: (name, row) for name, row in state.rows.items()}
        later = {row_id: name for row_id, (name, row) in new.items() if row.written > since.ref.version}
        assert with_row_ids(self.tables, state.ref, delta.inserted) == {
            row_id: name for row_id, (name, _) in new.items() if row_id not in old
        }
        assert with_row_ids(self.tables, state.ref, delta.updated) == {
            row_id: name for row_id, name in later.items() if row_id in old
        }
        assert set(delta.deleted.to_pylist()) == old - new.keys()

    @invariant()
    def every_head_is_as_expected(self) -> None:
        for state in getattr(self, "heads", {}).values():
            self.check(self.tables, state)
            assert not self.tables.moved(state.ref)

    def check(self, tables: Tables, state: State) -> None:
        assert ages(tables.scan(state.ref)) == {name: row.age for name, row in state.rows.items()}
        assert row_ids(tables, state.ref) == {name: row.row_id for name, row in state.rows.items()}


TestTable = TableMachine.TestCase
TestTable.settings = settings(max_examples=examples(4, of=25), stateful_step_count=20, deadline=None)
