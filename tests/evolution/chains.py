"""Random chains of schema changes, writes, maintenance, branches and merges, done to a graph and to its model.

Main writes the entities whose names begin with `m`, the other branch those with `d`, so that rows conflict only
where a change of the schema has given them values. Names are used again for other things; while there are two
branches, only for things of another kind, because what both have added under one name is taken for the same.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from itertools import count

from tests.evolution.worlds import (
    INDEXED,
    MEMBERS,
    RANGED,
    VALUES,
    WIDER,
    Clash,
    Difference,
    Prop,
    Row,
    Type,
    Value,
    World,
    breaks,
    comparable,
    difference,
    family,
    in_kind,
    merged,
)
from tests.stores import memory_store

import omnigraph
from omnigraph.errors import MergeConflicts
from omnigraph.history.diff import Change
from omnigraph.read.result.cells import json_value

OTHER = "dev"
Fill = dict[tuple[int, int], Value]
"""Values for existing rows, by the numbers of a type and a property."""


class Chain:
    """A graph and what it has to look like: now, and at every commit."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self._numbers = count(1)
        self._names_used: dict[str, set[str]] = {}
        self._types_used: list[str] = []
        self.worlds: dict[str, World] = {}
        first = self._new_type(World())
        self.worlds = {"main": World().with_type(self._with_new_prop(self._with_new_prop(first)))}
        self.graph = omnigraph.init(memory_store().uri, self.worlds["main"].schema(World()))
        self.base = World()
        """What main and the other branch have in common."""
        self.past: dict[str, tuple[World, str]] = {}
        self.line: list[str] = []
        """The commits of main, oldest first."""
        self._ids: dict[tuple[int, int | None], int] = {}
        self.conflicts = 0
        self._note("main")

    def step(self) -> None:
        """Do one thing at random, and compare the graph with the model."""
        branch = self.chance.choice(list(self.worlds))
        actions: list[tuple[int, Callable[[str], None]]] = [
            (6, self.change_schema),
            (7, self.write),
            (2, self.maintain),
            (2, self.fork_or_merge),
        ]
        chosen = self.chance.choices([action for _, action in actions], [weight for weight, _ in actions])[0]
        chosen(branch)

    # Schemas

    def change_schema(self, branch: str) -> None:
        before = self.worlds[branch]
        world: World = before
        fill: Fill = {}
        for _ in range(self.chance.choice((1, 1, 1, 2, 3))):
            wish = self._wished(world, fill)
            if _can_be_told(before, wish[0]):
                world, fill = wish
        source = world.schema(before)
        fill = {target: value for target, value in fill.items() if _is_filled(target, before, world)}
        done = self.graph.apply_schema(source, branch=branch, fill=_named(world, fill))
        self.worlds[branch] = _filled(before, world, fill)
        assert done.commit is None or self.graph.schema_source(branch) == source
        self._note(branch)

    def _wished(self, world: World, fill: Fill) -> tuple[World, Fill]:
        one = self.chance.choice(world.types)
        free = [prop for prop in one.props if "key" not in prop.rules]
        if not free:
            return world.with_type(self._with_new_prop(one)), fill
        prop = self.chance.choice(free)
        changed: Type | None = None
        match self.chance.randrange(15):
            case 0:
                return world.with_type(self._with_new_prop(self._new_type(world))), fill
            case 1:
                nodes = [self.chance.choice(world.nodes).number for _ in range(2)]
                edge = Type(next(self._numbers), self._fresh("E"), (), (nodes[0], nodes[1]))
                return world.with_type(self._with_new_prop(edge)), fill
            case 2 | 3:
                changed = self._with_new_prop(one)
            case 4:
                changed = self._with_new_prop(one, nullable=False)
                (new,) = set(changed.props) - set(one.props)
                return world.with_type(changed), fill | {(one.number, new.number): self._value(new)}
            case 5:
                return self._renamed_type(world, one), fill
            case 6:
                renamed = self.chance.choice(one.props)
                changed = one.with_prop(replace(renamed, name=self._fresh("r")))
            case 7:
                changed = replace(one, props=tuple(each for each in one.props if each != prop))
            case 8 if len(world.nodes) > 1:
                edges = [each for each in world.types if each.ends is not None and one.number in each.ends]
                return world.without({one.number, *(edge.number for edge in edges)}), fill
            case 9 if prop.kind in WIDER:
                wider = self.chance.choice(WIDER[prop.kind])
                changed = one.with_prop(replace(prop, kind=wider, members=(), rules=prop.rules - {"range"}))
            case 10 if not prop.nullable:
                changed = one.with_prop(replace(prop, nullable=True))
            case 11 if prop.nullable and prop.kind != "Blob" and "unique" not in prop.rules:
                changed = one.with_prop(replace(prop, nullable=False))
                value = self._value(replace(prop, nullable=False))
                return world.with_type(changed), fill | {(one.number, prop.number): value}
            case 12 if prop.kind == "enum":
                more = [member for member in MEMBERS if member not in prop.members]
                changed = one.with_prop(replace(prop, members=(*prop.members, *more[:1])))
            case 13:
                changed = one.with_prop(self._with_other_rule(world, one, prop))
            case _:
                changed = replace(one, description=self.chance.choice(("", "one", "other")))
        return (world if changed is None else world.with_type(changed)), fill

    def _renamed_type(self, world: World, one: Type) -> World:
        return world.with_type(replace(one, name=self._fresh("N" if one.is_node else "E")))

    def _with_other_rule(self, world: World, one: Type, prop: Prop) -> Prop:
        rule = self.chance.choice(("index", "unique", "range"))
        values = [repr(comparable(row.get(prop.number))) for row in world.of(one.number).values()]
        values = [value for value in values if value != "None"]
        allowed = {
            "index": prop.kind in INDEXED,
            "unique": prop.kind in ("String", "I32", "Date") and len(set(values)) == len(values),
            "range": prop.kind in RANGED and one.is_node,
        }
        if rule in prop.rules:
            return replace(prop, rules=prop.rules - {rule})
        return replace(prop, rules=prop.rules | {rule}) if allowed[rule] else prop

    def _new_type(self, world: World) -> Type:
        key = Prop(next(self._numbers), "name", "String", nullable=False, rules=frozenset({"key"}))
        used = {one.name for one in world.types}
        again = [name for name in self._types_used if name not in used]
        name = self._fresh("N")
        if again and OTHER not in self.worlds and self.chance.random() < 0.6:
            name = self.chance.choice(again)
        self._types_used.append(name)
        return Type(next(self._numbers), name, (key,))

    def _with_new_prop(self, one: Type, *, nullable: bool = True) -> Type:
        kind = self.chance.choice([kind for kind in VALUES if nullable or kind != "Blob"])
        members = MEMBERS[:2] if kind == "enum" else ()
        used = {prop.name for prop in one.props}
        again = [
            name
            for name, kinds in self._names_used.items()
            if name not in used and (OTHER not in self.worlds or family(kind) not in kinds)
        ]
        name = self.chance.choice(again) if again and self.chance.random() < 0.4 else self._fresh("p")
        self._names_used.setdefault(name, set()).add(family(kind))
        return one.with_prop(Prop(next(self._numbers), name, kind, nullable, members))

    def _fresh(self, prefix: str) -> str:
        return f"{prefix}{next(self._numbers)}"

    # Rows

    def write(self, branch: str) -> None:
        world = self.worlds[branch]
        one = self.chance.choice(world.types)
        mine = [entity_id for entity_id in world.of(one.number) if entity_id.startswith(branch[0])]
        match self.chance.randrange(5):
            case 0 if mine and one.is_node:
                self._delete(branch, one, self.chance.choice(mine))
            case 1 | 2 if mine and one.is_node:
                self._update(branch, one, self.chance.choice(mine))
            case 3 if mine and one.is_node:
                self._load(branch, one, [self.chance.choice(mine)], "merge")
            case _:
                self._load(branch, one, [f"{branch[0]}{next(self._numbers)}" for _ in range(2)], "append")
        self._note(branch)

    def _load(self, branch: str, one: Type, ids: list[str], mode: str) -> None:
        world = self.worlds[branch]
        ends: list[list[str]] = []
        if one.ends is not None:
            ends = [[each for each in world.of(end) if each.startswith(branch[0])] for end in one.ends]
            if not all(ends):
                return
        records = []
        for entity_id in ids:
            world = world.with_rows(one.number, {entity_id: None})
            row: dict[int | str, Value] = {prop.number: self._value(prop, one, world) for prop in one.props}
            if one.is_node:
                row[one.key.number] = entity_id
                records.append({"type": one.name, "data": _record(one, row)})
            else:
                row |= {"src": self.chance.choice(ends[0]), "dst": self.chance.choice(ends[1])}
                data = {"id": entity_id, **_record(one, row)}
                records.append({"edge": one.name, "from": row["src"], "to": row["dst"], "data": data})
            world = world.with_rows(one.number, {entity_id: row})
        self.graph.load(records, mode=mode, branch=branch)  # type: ignore[arg-type]
        self.worlds[branch] = world

    def _update(self, branch: str, one: Type, entity_id: str) -> None:
        free = [prop for prop in one.props if "key" not in prop.rules and prop.kind != "Blob"]
        if not free:
            return
        world, prop = self.worlds[branch], self.chance.choice(free)
        value = self._value(prop, one, world)
        kind = "String" if prop.kind == "enum" else prop.kind
        text = f"query q($k: String, $v: {kind}{'?' if prop.nullable else ''}) {{ "
        text += f"update {one.name} set {{ {prop.name}: $v }} where {one.key.name} = $k }}"
        self.graph.mutate(text, {"k": entity_id, "v": value}, branch=branch)
        row = {**world.of(one.number)[entity_id], prop.number: value}
        self.worlds[branch] = world.with_rows(one.number, {entity_id: row})

    def _delete(self, branch: str, one: Type, entity_id: str) -> None:
        world = self.worlds[branch]
        text = f"query q($k: String) {{ delete {one.name} where {one.key.name} = $k }}"
        self.graph.mutate(text, {"k": entity_id}, branch=branch)
        world = world.with_rows(one.number, {entity_id: None})
        for edge in (each for each in world.types if each.ends is not None):
            assert edge.ends is not None
            sides = [side for side, end in zip(("src", "dst"), edge.ends, strict=True) if end == one.number]
            rows = world.of(edge.number).items()
            gone = {i: None for i, row in rows if any(row[side] == entity_id for side in sides)}
            world = world.with_rows(edge.number, gone)
        self.worlds[branch] = world

    def _value(self, prop: Prop, one: Type | None = None, world: World | None = None) -> Value:
        """A value for a property; if it is unique, one that no row has, or none."""
        values = list(prop.members if prop.kind == "enum" else VALUES[prop.kind])
        if "unique" in prop.rules and one is not None and world is not None:
            used = [comparable(row.get(prop.number)) for row in world.of(one.number).values()]
            values = [value for value in values if comparable(value) not in used]
            if not values and not prop.nullable:
                values = [self._fresh("u")] if prop.kind == "String" else [next(self._numbers)]
        if prop.nullable and (not values or self.chance.random() < 0.3):
            return None
        return self.chance.choice(values)

    # Maintenance, branches and merges

    def maintain(self, branch: str) -> None:
        self.chance.choice((self.graph.optimize, self.graph.ensure_indices))(branch=branch)
        self._note(branch)

    def fork_or_merge(self, branch: str) -> None:
        if OTHER not in self.worlds:
            self.graph.create_branch(OTHER)
            self.worlds[OTHER] = self.base = self.worlds["main"]
        elif self.chance.random() < 0.15:
            self.graph.delete_branch(OTHER)
            del self.worlds[OTHER]
            self.past = {i: found for i, found in self.past.items() if self.graph.commit(i).branch != OTHER}
        else:
            self._merge("main" if branch == OTHER else OTHER, branch)

    def _merge(self, source: str, target: str) -> None:
        theirs, ours = self.worlds[source], self.worlds[target]
        before = self.graph.snapshot(target).graph_commit_id
        both_changed = self.base.types not in (theirs.types, ours.types)
        expected: World | None
        try:
            expected = merged(self.base, ours, theirs)
        except Clash:
            expected = None
        try:
            self.graph.merge(source, target)
        except MergeConflicts as error:
            kinds = {conflict.kind.value for conflict in error.conflicts}
            is_schema = "schema_conflict" in kinds and (both_changed or breaks(theirs, ours))
            assert is_schema or expected is None, f"the model found no conflict, the merge {kinds}"
            assert self.graph.snapshot(target).graph_commit_id == before
            self.conflicts += 1
            return
        assert expected is not None, "the model found a conflict, the merge did not"
        self.worlds[target] = expected
        self.base = theirs
        self._note(target)
        self._note_schema_commit(target, before, _adopted(expected, ours))

    def _note_schema_commit(self, branch: str, before: str | None, world: World) -> None:
        """A merge that adopts a schema has made a commit for it before its own."""
        newest, *older = [commit.graph_commit_id for commit in self.graph.commits(branch, limit=2)]
        if older and older[0] != before and newest != before and older[0] not in self.past:
            self.past[older[0]] = (world, self.graph.schema_source(at=older[0]))
            if branch == "main":
                self.line.insert(len(self.line) - 1, older[0])

    # Comparing

    def _note(self, branch: str) -> None:
        """Compare the newest state of a branch with the model, and remember it."""
        commit = self.graph.snapshot(branch).graph_commit_id
        assert commit is not None
        self.compare(commit, self.worlds[branch])
        self.past.setdefault(commit, (self.worlds[branch], self.graph.schema_source(branch)))
        if branch == "main" and commit not in self.line:
            self.line.append(commit)

    def compare(self, commit: str, world: World) -> None:
        """Does a commit have the rows, and the stable ids, that the model says?"""
        state = self.graph.snapshot(at=commit)
        found = {}
        for key, pin in state.tables.items():
            entity = state.entity(key)
            rows = self.graph._repository.tables.scan(pin.ref, list(entity.columns), whole_blobs=True).read_all()
            names = [name for name in entity.columns if name != "id"]
            listed = rows.sort_by("id").to_pylist()
            found[key] = {row["id"]: {name: json_value(row[name]) for name in names} for row in listed}
        assert found == world.content()
        for one in world.types:
            entity = state.entity(one.table_key)
            assert self._ids.setdefault((one.number, None), entity.id) == entity.id
            for prop in one.props:
                number = entity.properties[prop.name].id
                assert self._ids.setdefault((one.number, prop.number), number) == number

    def compare_diff(self, before: str, after: str) -> None:
        """Does the difference of two commits agree with the model?"""
        found = [_as_difference(change) for change in self.graph.diff(before, after)]
        assert found == difference(self.past[before][0], self.past[after][0])

    def compare_feed(self) -> None:
        """Does the feed of main tell what every commit of it has changed?"""
        pages = self.graph.change_pages(start=f"after:{self.line[0]}")
        blocks = {block.cause.graph_commit_id: block for page in pages for block in page.blocks}
        for before, after in zip(self.line, self.line[1:], strict=False):
            block = blocks[after]
            found = [_as_difference(change) for change in block.changes]
            expected = difference(self.past[before][0], self.past[after][0])
            assert sorted(found, key=repr) == sorted(expected, key=repr)


def _as_difference(change: Change) -> Difference:
    before, after = (
        None if image is None else {name: comparable(json_value(v)) for name, v in image.items() if name != "id"}
        for image in (change.before, change.after)
    )
    return change.op.value, change.table_key, change.id, tuple(sorted(change.changed)), before, after


def _record(one: Type, row: Row) -> dict[str, Value]:
    return {prop.name: in_kind(row[prop.number], prop.kind) for prop in one.props}


def _can_be_told(before: World, after: World) -> bool:
    """Is no name used for another thing than before? Such a change takes two schemas, one after the other."""
    names = {one.table_key: one.number for one in before.types}
    if any(names.get(one.table_key, one.number) != one.number for one in after.types):
        return False
    for one in after.types:
        old = before.by_number.get(one.number)
        known = {} if old is None else {prop.name: prop.number for prop in old.props}
        if any(known.get(prop.name, prop.number) != prop.number for prop in one.props):
            return False
    return bool(after.nodes)


def _is_filled(target: tuple[int, int], before: World, after: World) -> bool:
    """Does a property still need the value, after all steps of a change?"""
    type_number, prop_number = target
    old, new = before.by_number.get(type_number), after.by_number.get(type_number)
    prop = None if new is None else new.by_number.get(prop_number)
    if old is None or prop is None or prop.nullable:
        return False
    return prop_number not in old.by_number or old.by_number[prop_number].nullable


def _named(world: World, fill: Fill) -> dict[str, Value]:
    named = {}
    for (type_number, prop_number), value in fill.items():
        one = world.by_number[type_number]
        prop = one.by_number[prop_number]
        named[f"{one.name}.{prop.name}"] = in_kind(value, prop.kind)
    return named


def _adopted(expected: World, ours: World) -> World:
    """The state of a merge's target when it has the schema and not yet the rows: values that must be there are."""
    world = World(expected.types, ours.rows)
    for one in expected.types:
        required = [prop.number for prop in one.props if not prop.nullable]
        rows = {}
        for entity_id, row in ours.of(one.number).items():
            missing = [number for number in required if row.get(number) is None]
            values: dict[int | str, Value] = {n: expected.of(one.number)[entity_id][n] for n in missing}
            rows[entity_id] = {**row, **values}
        world = world.with_rows(one.number, rows)
    return world


def _filled(before: World, after: World, fill: Fill) -> World:
    """A state with another schema, whose rows have got values where they needed them."""
    world = World(after.types, {one.number: before.of(one.number) for one in after.types})
    for (type_number, number), value in fill.items():
        rows = {
            entity_id: row if row.get(number) is not None else {**row, number: value}
            for entity_id, row in world.of(type_number).items()
        }
        world = world.with_rows(type_number, rows)
    return world
