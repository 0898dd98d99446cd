"""The schema of a merge: what the target has to adopt of the source's, before rows can follow.

If only one side has changed the schema since the merge base, its schema is the one. If both have, what the source
added is put to what the target has; any other change of the source stands in the way, like a conflict of rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from omnigraph.errors import Conflict, ConflictKind
from omnigraph.lang.schema.identity import SchemaIR, TypeIdentity, TypeKey
from omnigraph.lang.schema.migration import steps_between
from omnigraph.lang.schema.render import render
from omnigraph.lang.schema.resolve import CompiledSchema, compile_schema
from omnigraph.lang.schema.shape import PropertyShape, Shape, TypeShape
from omnigraph.lang.schema.steps import Step
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import Snapshot

_ADDING: Final = frozenset({"add_type", "add_property", "extend_enum"})
_IDLE: Final = frozenset({"update_type_metadata", "update_property_metadata"})


@dataclass(frozen=True, slots=True)
class Adoption:
    """A schema that the target gets, and the steps to it."""

    desired: CompiledSchema
    ir: SchemaIR
    steps: tuple[Step, ...]


def adoption(
    repository: Repository, base: Snapshot, source: Snapshot, target: Snapshot
) -> Adoption | tuple[Conflict, ...] | None:
    """What the target has to adopt; None if nothing, or the changes of the source that stand in the way."""
    theirs, ours = source.catalog.ir, target.catalog.ir
    is_same = source.catalog == target.catalog and not theirs.dropped_by_either(ours)
    if is_same or source.schema_digest == base.schema_digest:
        return None
    if target.schema_digest == base.schema_digest:
        text = repository.schemas.source(source.schema_digest)
        return Adoption(compile_schema(text, "<schema>"), theirs, steps_between(ours, theirs))
    known = {str(step) for step in steps_between(base.catalog.ir, ours)}
    steps = [step for step in steps_between(base.catalog.ir, theirs) if str(step) not in known]
    blocked = [step for step in steps if step.kind not in _ADDING | _IDLE and not _is_index(step)]
    if blocked:
        return tuple(_conflict(step) for step in blocked)
    ir = _Union(base.catalog.ir, ours, theirs).made()
    if not isinstance(ir, SchemaIR):
        return ir
    if ir.shape == ours.shape:
        return None
    desired = compile_schema(render(ir.shape), "<merged schema>")
    return Adoption(desired, ir, steps_between(ours, ir))


def _is_index(step: Step) -> bool:
    return step.kind == "add_constraint" and str(step.fields["constraint"]).startswith("@index")


def _conflict(step: Step) -> Conflict:
    kind = str(step.fields.get("type_kind", "node"))
    name = step.fields.get("type_name") or step.fields.get("name") or step.fields.get("to") or ""
    message = f"only the source has this change of the schema: {step}; apply it to the target first"
    return Conflict(ConflictKind.SCHEMA_CONFLICT, f"{kind}:{name}", None, message)


class _Union:
    """Our schema with the types, properties, enum values and indexes that theirs has got since the base.

    What both have is found by its id, whatever either side calls it; what both have added by themselves is found
    by its name. Additions to what we have dropped, and names that we use for something else, are conflicts.
    """

    def __init__(self, base: SchemaIR, ours: SchemaIR, theirs: SchemaIR) -> None:
        self._base, self._ours, self._theirs = base, ours, theirs
        self._old = {identity.id: key for key, identity in base.identities.items()}
        self._mine = {identity.id: key for key, identity in ours.identities.items()}
        self._their_ids = {identity.id for identity in theirs.identities.values()}
        self._dropped = ours.dropped_by_either(theirs)
        self._conflicts: list[Conflict] = []

    def made(self) -> SchemaIR | tuple[Conflict, ...]:
        """The schema, or all conflicts."""
        shapes: dict[TypeKey, TypeShape] = {(shape.kind, shape.name): shape for shape in self._ours.shape.types}
        identities: dict[TypeKey, TypeIdentity] = dict(self._ours.identities)
        for shape in self._theirs.shape.types:
            key = self._key_of(shape)
            if key is not None:
                shapes[key], identities[key] = self._extended(shapes[key], identities[key], shape)
            elif self._is_new(shape):
                shapes[shape.kind, shape.name] = self._as_ours(shape)
                identities[shape.kind, shape.name] = self._theirs.identities[shape.kind, shape.name]
        if self._conflicts:
            return tuple(self._conflicts)
        counter = max(self._ours.next_identity_id, self._theirs.next_identity_id)
        kinds = ("interface", "node", "edge")
        groups = [tuple(shapes[key] for key in sorted(shapes) if key[0] == kind) for kind in kinds]
        made = SchemaIR(self._ours.domain, counter, Shape(*groups), identities)
        return replace(made, retired=(self._ours.retired | self._theirs.retired) - made.numbers)

    def _key_of(self, shape: TypeShape) -> TypeKey | None:
        """What we call one of their types; None if we do not have it."""
        key: TypeKey = (shape.kind, shape.name)
        identity = self._theirs.identities[key].id
        if identity in self._mine:
            return self._mine[identity]
        same = self._ours.identities.get(key)
        if same is None or same.id in self._their_ids or {same.id, identity} & self._dropped:
            return None
        return key

    def _is_new(self, shape: TypeShape) -> bool:
        """Is it to be added? One that the base has was dropped by us, and stays so."""
        key: TypeKey = (shape.kind, shape.name)
        before = self._old.get(self._theirs.identities[key].id)
        if before is None:
            if key in self._ours.identities:
                self._refuse(shape, None, "the target has given this name to another type")
                return False
            return True
        old = next(one for one in self._base.shape.types if (one.kind, one.name) == before)
        if {one.name for one in shape.properties} - {one.name for one in old.properties}:
            self._refuse(shape, None, "the source has added to it, and the target has dropped it")
        return False

    def _as_ours(self, shape: TypeShape) -> TypeShape:
        """A new type of theirs; if it is an edge, with our names of its ends."""
        names = {}
        for end in (shape.source, shape.target):
            if end is None:
                continue
            node = next(one for one in self._theirs.shape.nodes if one.name == end)
            key = self._key_of(node)
            if key is None and self._theirs.identities["node", end].id in self._old:
                self._refuse(shape, None, f"it leads to or from {end}, which the target has dropped")
            names[end] = end if key is None else key[1]
        if shape.source is None or shape.target is None:
            return shape
        return replace(shape, source=names[shape.source], target=names[shape.target])

    def _extended(
        self, mine: TypeShape, identity: TypeIdentity, other: TypeShape
    ) -> tuple[TypeShape, TypeIdentity]:
        """One of our types with what they have added to it."""
        their_ids = self._theirs.identities[other.kind, other.name].properties
        old_ids = self._old_properties(self._theirs.identities[other.kind, other.name].id)
        names = self._names(identity, their_ids)
        properties = {prop.name: prop for prop in mine.properties}
        numbers = dict(identity.properties)
        for prop in other.properties:
            name = names.get(prop.name)
            if name is not None:
                properties[name] = self._shared(mine, properties[name], prop, their_ids[prop.name] in old_ids)
            elif their_ids[prop.name] in old_ids:
                continue  # we have dropped it
            elif prop.name in properties:
                self._refuse(mine, prop.name, "the target has given this name to another property")
            else:
                properties[prop.name] = _with_source(prop, names)
                numbers[prop.name] = their_ids[prop.name]
        indexes = []
        for index in (one for one in other.constraints if one.kind == "index"):
            columns = tuple(names.get(column, column) for column in index.columns)
            renamed = replace(index, columns=columns)
            if renamed not in mine.constraints and all(column in properties for column in columns):
                indexes.append(renamed)
        extended = replace(
            mine,
            properties=tuple(properties[name] for name in sorted(properties)),
            constraints=tuple(sorted([*mine.constraints, *indexes], key=lambda one: one.order)),
        )
        return extended, replace(identity, properties=numbers)

    def _old_properties(self, type_id: int) -> frozenset[int]:
        key = self._old.get(type_id)
        return frozenset() if key is None else frozenset(self._base.identities[key].properties.values())

    def _names(self, mine: TypeIdentity, their_ids: Mapping[str, int]) -> dict[str, str]:
        """Our names of the properties that both have."""
        by_id = {number: name for name, number in mine.properties.items()}
        known = set(their_ids.values())
        names = {}
        for name, number in their_ids.items():
            ours = mine.properties.get(name)
            if number in by_id:
                names[name] = by_id[number]
            elif ours is not None and ours not in known and not {ours, number} & self._dropped:
                names[name] = name
        return names

    def _shared(self, shape: TypeShape, mine: PropertyShape, other: PropertyShape, is_old: bool) -> PropertyShape:
        """A property that both have; an enum gets the values of both sides."""
        if mine.type.members is not None and other.type.members is not None:
            members = tuple(sorted({*mine.type.members, *other.type.members}))
            return replace(mine, type=replace(mine.type, members=members))
        if not is_old and mine.type.required() != other.type.required():
            self._refuse(shape, mine.name, f"the source has added it as {other.type}, the target as {mine.type}")
        return mine

    def _refuse(self, shape: TypeShape, prop: str | None, reason: str) -> None:
        name = shape.name if prop is None else f"{shape.name}.{prop}"
        message = f"{name}: {reason}; rename or drop it on one side first"
        self._conflicts.append(Conflict(ConflictKind.SCHEMA_CONFLICT, f"{shape.kind}:{shape.name}", None, message))


def _with_source(prop: PropertyShape, names: Mapping[str, str]) -> PropertyShape:
    """A property that is computed from another one, with our name of that."""
    if prop.embed is None:
        return prop
    return replace(prop, embed=replace(prop.embed, source=names.get(prop.embed.source, prop.embed.source)))
