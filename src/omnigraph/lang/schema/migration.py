"""What it takes to get from the accepted schema to another one: a list of steps, or why there is none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from omnigraph.lang.schema.identity import SchemaIR, TypeIdentity, first_identities, idle_hints, resolve_identities
from omnigraph.lang.schema.resolve import CompiledSchema, compile_schema
from omnigraph.lang.schema.shape import (
    METADATA_ANNOTATIONS,
    AnnotationShape,
    ConstraintShape,
    PropertyShape,
    TypeKind,
    TypeShape,
)
from omnigraph.lang.schema.steps import MigrationPlan as MigrationPlan
from omnigraph.lang.schema.steps import Step as Step
from omnigraph.lang.schema.steps import refuse
from omnigraph.lang.schema.widening import is_wider, possible

Fills = Mapping[tuple[str, str], str]
"""What existing rows get in a property that they have no value for, as a plan shows it, by type and property."""


def plan_migration(
    accepted: SchemaIR, desired: CompiledSchema, *, allow_data_loss: bool = False, fills: Fills | None = None
) -> MigrationPlan:
    """Plan the change; rename hints that fit nothing raise SchemaError."""
    target = resolve_identities(desired, accepted)
    steps = tuple(_Planner(accepted, target, "hard" if allow_data_loss else "soft", fills or {}).steps())
    return MigrationPlan(steps, target)


def steps_between(old: SchemaIR, new: SchemaIR) -> tuple[Step, ...]:
    """The steps that lead from one accepted schema to another that descends from it."""
    every = {(shape.name, prop.name): "…" for shape in new.shape.types for prop in shape.properties}
    return tuple(
        step
        if "fill" not in step.fields
        else Step(step.kind, {k: v for k, v in step.fields.items() if k != "fill"})
        for step in _Planner(old, new, "soft", every).steps()
    )


def idle_notes(old: str, new: str) -> tuple[str, ...]:
    """The rename hints of a schema text that do nothing, if another one is accepted."""
    accepted, desired = first_identities(compile_schema(old)), compile_schema(new)
    return tuple(f"line {note.line}: {note.message}" for note in idle_hints(desired, accepted))


def compare_schemas(old: str, new: str, *, allow_data_loss: bool = False) -> MigrationPlan:
    """Plan the change from one schema text to another, as if the old one were accepted by a graph."""
    accepted = first_identities(compile_schema(old, "<old schema>"))
    return plan_migration(accepted, compile_schema(new, "<new schema>"), allow_data_loss=allow_data_loss)


class _Planner:
    def __init__(self, accepted: SchemaIR, target: SchemaIR, drop_mode: str, fills: Fills) -> None:
        self.accepted = accepted
        self.target = target
        self.drop_mode = drop_mode
        self.fills = fills

    def steps(self) -> Iterator[Step]:
        groups: tuple[tuple[tuple[TypeShape, ...], tuple[TypeShape, ...]], ...] = (
            (self.accepted.shape.interfaces, self.target.shape.interfaces),
            (self.accepted.shape.nodes, self.target.shape.nodes),
            (self.accepted.shape.edges, self.target.shape.edges),
        )
        for old_types, new_types in groups:
            old_by_id = {self._old(t).id: t for t in old_types}
            kept: set[int] = set()
            for new in new_types:
                identity = self._new(new).id
                old = old_by_id.get(identity)
                if old is None:
                    yield Step("add_type", {"type_kind": new.kind, "name": new.name})
                else:
                    kept.add(identity)
                    yield from _TypeChange(self, old, new).steps()
            for old in old_types:
                if self._old(old).id not in kept:
                    yield self._drop(old)

    def _drop(self, old: TypeShape) -> Step:
        if old.kind == "interface":
            return refuse(f"interface:{old.name}", "an interface cannot be renamed or removed")
        return Step("drop_type", {"type_kind": old.kind, "name": old.name, "mode": self.drop_mode})

    def _old(self, shape: TypeShape) -> TypeIdentity:
        return self.accepted.identities[shape.kind, shape.name]

    def _new(self, shape: TypeShape) -> TypeIdentity:
        return self.target.identities[shape.kind, shape.name]

    def type_id(self, kind: TypeKind, name: str | None, *, old: bool) -> int | None:
        """The id behind a type's name, before or after the change."""
        identities = (self.accepted if old else self.target).identities
        return None if name is None else identities[kind, name].id


class _TypeChange:
    """The difference between two versions of one type."""

    def __init__(self, planner: _Planner, old: TypeShape, new: TypeShape) -> None:
        self.planner = planner
        self.old = old
        self.new = new
        self.entity = f"{new.kind}:{new.name}"
        self.old_ids = planner.accepted.identities[old.kind, old.name].properties
        self.new_ids = planner.target.identities[new.kind, new.name].properties
        self.same_interfaces = self._interface_ids(old, old=True) == self._interface_ids(new, old=False)

    def steps(self) -> Iterator[Step]:
        new, old = self.new, self.old
        if new.name != old.name:
            yield Step("rename_type", {"type_kind": new.kind, "from": old.name, "to": new.name})
        yield from self._type_refusals()
        yield from self._properties()
        yield from self._constraints()
        yield from _metadata(
            self.entity,
            old.annotations,
            new.annotations,
            Step(
                "update_type_metadata",
                {"type_kind": new.kind, "name": new.name, "annotations": _metadata_json(new.annotations)},
            ),
        )

    def _type_refusals(self) -> Iterator[Step]:
        old, new, ids = self.old, self.new, self.planner.type_id
        if not self.same_interfaces:
            yield refuse(self.entity, "the list of interfaces it implements cannot change")
        if ids("node", old.source, old=True) != ids("node", new.source, old=False) or ids(
            "node", old.target, old=True
        ) != ids("node", new.target, old=False):
            yield refuse(
                self.entity,
                f"its endpoints cannot change from {old.source} -> {old.target} to {new.source} -> {new.target}",
            )
        if (old.minimum, old.maximum) != (new.minimum, new.maximum):
            counts = {"from": _counts(old), "to": _counts(new)}
            yield Step("change_cardinality", {"type_kind": new.kind, "type_name": new.name} | counts)

    def _interface_ids(self, shape: TypeShape, *, old: bool) -> set[int | None]:
        return {self.planner.type_id("interface", name, old=old) for name in shape.implements}

    def _properties(self) -> Iterator[Step]:
        old_by_id = {self.old_ids[p.name]: p for p in self.old.properties}
        kept: set[int] = set()
        for prop in self.new.properties:
            identity = self.new_ids[prop.name]
            before = old_by_id.get(identity)
            if before is None:
                yield self._add_property(prop)
            else:
                kept.add(identity)
                yield from self._change_property(before, prop)
        for prop in self.old.properties:
            if self.old_ids[prop.name] in kept:
                continue
            if prop.name in self._key:
                yield refuse(f"{self.entity}.{prop.name}", "a key property cannot be dropped")
            else:
                yield Step(
                    "drop_property",
                    {
                        "type_kind": self.new.kind,
                        "type_name": self.new.name,
                        "property_name": prop.name,
                        "mode": self.planner.drop_mode,
                    },
                )

    def _add_property(self, prop: PropertyShape) -> Step:
        fill = self.planner.fills.get((self.new.name, prop.name))
        if not prop.type.nullable and fill is None and self.new.kind != "interface":
            return refuse(
                f"{self.entity}.{prop.name}",
                f"existing rows have no value for a new property: write `{prop.name}: {prop.type.spell()}?`,"
                f" or give them one (--fill {self.new.name}.{prop.name}=…)",
                "OG-MF-103",
            )
        fields = self._where(prop.name) | {"property_type": prop.type.spell()}
        return Step("add_property", fields if fill is None else fields | {"fill": fill})

    def _where(self, prop: str) -> dict[str, Any]:
        return {"type_kind": self.new.kind, "type_name": self.new.name, "property_name": prop}

    def _change_property(self, old: PropertyShape, new: PropertyShape) -> Iterator[Step]:
        entity = f"{self.entity}.{new.name}"
        where = {"type_kind": self.new.kind, "type_name": self.new.name}
        if new.name != old.name:
            yield Step("rename_property", where | {"from": old.name, "to": new.name})
        yield from self._change_type(old, new)
        if self._embed_identity(old, self.old_ids) != self._embed_identity(new, self.new_ids):
            embed = {} if new.embed is None else {"source": new.embed.source, "model": new.embed.model}
            if new.embed is None:
                yield refuse(entity, "its @embed cannot be removed; drop the property, or keep it")
            else:
                yield Step("change_embedding", self._where(new.name) | embed)
        if new.injected != old.injected:
            yield refuse(entity, "it cannot change between declared and brought by an interface")
        elif self.same_interfaces and self._satisfied(old, old=True) != self._satisfied(new, old=False):
            yield refuse(entity, "the interfaces that ask for it cannot change")
        yield from _metadata(
            entity,
            old.annotations,
            new.annotations,
            Step(
                "update_property_metadata",
                where | {"property_name": new.name, "annotations": _metadata_json(new.annotations)},
            ),
        )

    def _change_type(self, old: PropertyShape, new: PropertyShape) -> Iterator[Step]:
        before, after = old.type.required(), new.type.required()
        if before != after:
            added = _added_members(old, new)
            if added is not None:
                yield Step("extend_enum", self._where(new.name) | {"added_values": added})
            elif is_wider(before, after, in_key=old.name in self._key):
                types = {"from": old.type.spell(), "to": new.type.spell()}
                yield Step("widen_property", self._where(new.name) | types)
            else:
                yield refuse(f"{self.entity}.{new.name}", _why_not(old, new, old.name in self._key), "OG-MF-106")
                return
        if new.type.nullable and not old.type.nullable:
            yield Step("make_nullable", self._where(new.name))
        elif old.type.nullable and not new.type.nullable:
            fill = self.planner.fills.get((self.new.name, new.name))
            yield Step("make_required", self._where(new.name) | ({} if fill is None else {"fill": fill}))

    @property
    def _key(self) -> set[str]:
        """The properties that make the ids of existing rows."""
        return {c for constraint in self.old.constraints if constraint.kind == "key" for c in constraint.columns}

    def _satisfied(self, prop: PropertyShape, *, old: bool) -> set[int | None]:
        return {self.planner.type_id("interface", name, old=old) for name in prop.satisfies}

    @staticmethod
    def _embed_identity(prop: PropertyShape, ids: Mapping[str, int]) -> object:
        if prop.embed is None:
            return None
        source = prop.embed.source  # that of an interface's property may belong to the nodes
        return ids.get(source, source), prop.embed.model

    def _constraints(self) -> Iterator[Step]:
        """All rules may come and go but the key, because the ids of existing rows are made of it."""
        old = {_by_ids(c, self.old_ids): c for c in self.old.constraints}
        new = {_by_ids(c, self.new_ids): c for c in self.new.constraints}
        where = {"type_kind": self.new.kind, "type_name": self.new.name}
        for identity, constraint in new.items():
            if identity not in old and constraint.kind == "key":
                yield refuse(
                    self.entity, f"{constraint} cannot be added: ids of existing rows are made without it"
                )
            elif identity not in old:
                yield Step("add_constraint", where | {"constraint": str(constraint)})
        surviving = set(self.new_ids.values())
        for identity, constraint in old.items():
            if identity in new or not all(
                self.old_ids.get(c, -1) in surviving or c in ("src", "dst") for c in constraint.columns
            ):
                continue
            if constraint.kind == "key":
                yield refuse(self.entity, f"{constraint} cannot be removed: ids of existing rows are made of it")
            else:
                yield Step("drop_constraint", where | {"constraint": str(constraint)})


def _counts(edge: TypeShape) -> str:
    """A cardinality as a schema writes it."""
    return f"{edge.minimum}..{'' if edge.maximum is None else edge.maximum}"


def _why_not(old: PropertyShape, new: PropertyShape, in_key: bool) -> str:
    """Why a type cannot change, and to what it could."""
    reason = f"its type cannot change from {old.type} to {new.type}"
    if in_key and is_wider(old.type, new.type, in_key=False):
        return f"{reason}, because the ids of existing rows are made of it"
    others = possible(old.type)
    able = f"it can become {' or '.join(others)}; or " if others else ""
    return f"{reason}; {able}add another property and drop this one"


def _by_ids(constraint: ConstraintShape, ids: Mapping[str, int]) -> object:
    """A constraint's identity: names may change, ids do not."""
    columns = tuple(sorted(str(ids.get(c, c)) for c in constraint.columns))
    return constraint.kind, columns, constraint.low, constraint.high, constraint.pattern


def _added_members(old: PropertyShape, new: PropertyShape) -> list[str] | None:
    """The values by which an enum grew; None if the change is anything else."""
    before, after = old.type.members, new.type.members
    if before is None or after is None or old.type.is_list != new.type.is_list:
        return None
    return sorted(set(after) - set(before)) if set(before) < set(after) else None


def _metadata(
    entity: str, old: tuple[AnnotationShape, ...], new: tuple[AnnotationShape, ...], update: Step
) -> Iterator[Step]:
    """Descriptions may change freely, other annotations not at all."""
    if _others(old) != _others(new):
        names = sorted({a.name for a in set(_others(old)) ^ set(_others(new))})
        yield refuse(entity, f"annotation {', '.join('@' + n for n in names)} cannot change")
    if _metadata_json(old) != _metadata_json(new):
        yield update


def _others(annotations: tuple[AnnotationShape, ...]) -> list[AnnotationShape]:
    return [a for a in annotations if a.name not in METADATA_ANNOTATIONS]


def _metadata_json(annotations: tuple[AnnotationShape, ...]) -> dict[str, str | None]:
    return {a.name: a.value for a in annotations if a.name in METADATA_ANNOTATIONS}
