"""What it takes to get from the accepted schema to another one: a list of steps, or why there is none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from omnigraph.errors import MigrationError
from omnigraph.lang.schema.identity import SchemaIR, TypeIdentity, first_identities, resolve_identities
from omnigraph.lang.schema.resolve import CompiledSchema, compile_schema
from omnigraph.lang.schema.shape import (
    METADATA_ANNOTATIONS,
    AnnotationShape,
    ConstraintShape,
    PropertyShape,
    TypeKind,
    TypeShape,
)

StepKind = Literal[
    "add_type",
    "rename_type",
    "add_property",
    "rename_property",
    "add_constraint",
    "extend_enum",
    "update_type_metadata",
    "update_property_metadata",
    "drop_type",
    "drop_property",
    "unsupported_change",
]


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a migration: its kind, and the fields that kind has."""

    kind: StepKind
    fields: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {"kind": self.kind, **self.fields}

    def __str__(self) -> str:
        """The step as one line a person reads."""
        f = self.fields
        match self.kind:
            case "add_type":
                return f"add {f['type_kind']} {f['name']}"
            case "rename_type":
                return f"rename {f['type_kind']} {f['from']} to {f['to']}"
            case "add_property":
                return f"add {f['type_name']}.{f['property_name']}: {f['property_type']}"
            case "rename_property":
                return f"rename {f['type_name']}.{f['from']} to {f['to']}"
            case "add_constraint":
                return f"add {f['constraint']} to {f['type_name']}"
            case "extend_enum":
                return f"extend {f['type_name']}.{f['property_name']} with {', '.join(f['added_values'])}"
            case "update_type_metadata":
                return f"describe {f['type_kind']} {f['name']}"
            case "update_property_metadata":
                return f"describe {f['type_name']}.{f['property_name']}"
            case "drop_type":
                return f"drop {f['type_kind']} {f['name']} ({f['mode']})"
            case "drop_property":
                return f"drop {f['type_name']}.{f['property_name']} ({f['mode']})"
            case _:
                code = f"[{f['code']}] " if f.get("code") else ""
                return f"refused: {code}{f['entity']}: {f['reason']}"


@dataclass(frozen=True, slots=True)
class MigrationPlan:
    """The steps from one schema to another, and the identities the new one will have."""

    steps: tuple[Step, ...]
    target: SchemaIR

    @property
    def supported(self) -> bool:
        return not any(step.kind == "unsupported_change" for step in self.steps)

    def require_supported(self) -> None:
        """Raise MigrationError if any step is refused."""
        refused = [dict(s.fields) for s in self.steps if s.kind == "unsupported_change"]
        if refused:
            raise MigrationError(refused)

    def as_json(self) -> dict[str, Any]:
        return {"supported": self.supported, "steps": [step.as_json() for step in self.steps]}


def plan_migration(accepted: SchemaIR, desired: CompiledSchema, *, allow_data_loss: bool = False) -> MigrationPlan:
    """Plan the change; rename hints that fit nothing raise SchemaError."""
    target = resolve_identities(desired, accepted)
    steps = tuple(_Planner(accepted, target, "hard" if allow_data_loss else "soft").steps())
    return MigrationPlan(steps, target)


def compare_schemas(old: str, new: str, *, allow_data_loss: bool = False) -> MigrationPlan:
    """Plan the change from one schema text to another, as if the old one were accepted by a graph."""
    accepted = first_identities(compile_schema(old, "<old schema>"))
    return plan_migration(accepted, compile_schema(new, "<new schema>"), allow_data_loss=allow_data_loss)


class _Planner:
    def __init__(self, accepted: SchemaIR, target: SchemaIR, drop_mode: str) -> None:
        self.accepted = accepted
        self.target = target
        self.drop_mode = drop_mode

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
            return _refuse(f"interface:{old.name}", "an interface cannot be renamed or removed")
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
            yield _refuse(self.entity, "the list of interfaces it implements cannot change")
        if ids("node", old.source, old=True) != ids("node", new.source, old=False) or ids(
            "node", old.target, old=True
        ) != ids("node", new.target, old=False):
            yield _refuse(
                self.entity,
                f"its endpoints cannot change from {old.source} -> {old.target} to {new.source} -> {new.target}",
            )
        if (old.minimum, old.maximum) != (new.minimum, new.maximum):
            yield _refuse(self.entity, "its cardinality cannot change")

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
        key = {c for constraint in self.old.constraints if constraint.kind == "key" for c in constraint.columns}
        for prop in self.old.properties:
            if self.old_ids[prop.name] in kept:
                continue
            if prop.name in key:
                yield _refuse(f"{self.entity}.{prop.name}", "a key property cannot be dropped")
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
        if not prop.type.nullable:
            return _refuse(
                f"{self.entity}.{prop.name}",
                f"a new property must be nullable, because existing rows have no value for it: "
                f"write `{prop.name}: {prop.type.spell()}?`",
                "OG-MF-103",
            )
        return Step(
            "add_property",
            {
                "type_kind": self.new.kind,
                "type_name": self.new.name,
                "property_name": prop.name,
                "property_type": prop.type.spell(),
            },
        )

    def _change_property(self, old: PropertyShape, new: PropertyShape) -> Iterator[Step]:
        entity = f"{self.entity}.{new.name}"
        where = {"type_kind": self.new.kind, "type_name": self.new.name}
        if new.name != old.name:
            yield Step("rename_property", where | {"from": old.name, "to": new.name})
        if new.type != old.type:
            added = _added_members(old, new)
            if added is None:
                yield _refuse(entity, f"its type cannot change from {old.type} to {new.type}", "OG-MF-106")
            else:
                yield Step("extend_enum", where | {"property_name": new.name, "added_values": added})
        if self._embed_identity(old, self.old_ids) != self._embed_identity(new, self.new_ids):
            yield _refuse(entity, "the source or model of its @embed cannot change")
        if new.injected != old.injected:
            yield _refuse(entity, "it cannot change between declared and brought by an interface")
        elif self.same_interfaces and self._satisfied(old, old=True) != self._satisfied(new, old=False):
            yield _refuse(entity, "the interfaces that ask for it cannot change")
        yield from _metadata(
            entity,
            old.annotations,
            new.annotations,
            Step(
                "update_property_metadata",
                where | {"property_name": new.name, "annotations": _metadata_json(new.annotations)},
            ),
        )

    def _satisfied(self, prop: PropertyShape, *, old: bool) -> set[int | None]:
        return {self.planner.type_id("interface", name, old=old) for name in prop.satisfies}

    @staticmethod
    def _embed_identity(prop: PropertyShape, ids: Mapping[str, int]) -> object:
        if prop.embed is None:
            return None
        source = prop.embed.source  # that of an interface's property may belong to the nodes
        return ids.get(source, source), prop.embed.model

    def _constraints(self) -> Iterator[Step]:
        """Only an index may come; nothing may go, except with a property that goes."""
        old = {_by_ids(c, self.old_ids): c for c in self.old.constraints}
        new = {_by_ids(c, self.new_ids): c for c in self.new.constraints}
        for identity, constraint in new.items():
            if identity in old:
                continue
            if constraint.kind == "index":
                yield Step(
                    "add_constraint",
                    {"type_kind": self.new.kind, "type_name": self.new.name, "constraint": str(constraint)},
                )
            else:
                yield _refuse(self.entity, f"{constraint} cannot be added to a type that may have data")
        surviving = set(self.new_ids.values())
        for identity, constraint in old.items():
            if identity not in new and all(
                self.old_ids.get(c, -1) in surviving or c in ("src", "dst") for c in constraint.columns
            ):
                yield _refuse(self.entity, f"{constraint} cannot be removed")


def _by_ids(constraint: ConstraintShape, ids: Mapping[str, int]) -> object:
    """A constraint's identity: names may change, ids do not."""
    columns = tuple(sorted(str(ids.get(c, c)) for c in constraint.columns))
    return constraint.kind, columns, constraint.low, constraint.high, constraint.pattern


def _added_members(old: PropertyShape, new: PropertyShape) -> list[str] | None:
    """The values by which an enum grew; None if the change is anything else."""
    before, after = old.type.members, new.type.members
    if before is None or after is None or old.type.nullable != new.type.nullable:
        return None
    return sorted(set(after) - set(before)) if set(before) < set(after) else None


def _metadata(
    entity: str, old: tuple[AnnotationShape, ...], new: tuple[AnnotationShape, ...], update: Step
) -> Iterator[Step]:
    """Descriptions may change freely, other annotations not at all."""
    if _others(old) != _others(new):
        names = sorted({a.name for a in set(_others(old)) ^ set(_others(new))})
        yield _refuse(entity, f"annotation {', '.join('@' + n for n in names)} cannot change")
    if _metadata_json(old) != _metadata_json(new):
        yield update


def _others(annotations: tuple[AnnotationShape, ...]) -> list[AnnotationShape]:
    return [a for a in annotations if a.name not in METADATA_ANNOTATIONS]


def _metadata_json(annotations: tuple[AnnotationShape, ...]) -> dict[str, str | None]:
    return {a.name: a.value for a in annotations if a.name in METADATA_ANNOTATIONS}


def _refuse(entity: str, reason: str, code: str | None = None) -> Step:
    return Step("unsupported_change", {"entity": entity, "reason": reason} | ({"code": code} if code else {}))
