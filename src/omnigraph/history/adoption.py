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
    if source.catalog == target.catalog or source.schema_digest == base.schema_digest:
        return None
    theirs, ours = source.catalog.ir, target.catalog.ir
    if target.schema_digest == base.schema_digest:
        text = repository.schemas.source(source.schema_digest)
        return Adoption(compile_schema(text, "<schema>"), theirs, steps_between(ours, theirs))
    known = {str(step) for step in steps_between(base.catalog.ir, ours)}
    steps = [step for step in steps_between(base.catalog.ir, theirs) if str(step) not in known]
    blocked = [step for step in steps if step.kind not in _ADDING | _IDLE and not _is_index(step)]
    if blocked:
        return tuple(_conflict(step) for step in blocked)
    ir = _united(ours, theirs)
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


def _united(ours: SchemaIR, theirs: SchemaIR) -> SchemaIR:
    """Our schema with the types, properties, enum values and indexes that theirs has in addition."""
    groups: list[tuple[TypeShape, ...]] = []
    identities: dict[TypeKey, TypeIdentity] = dict(ours.identities)
    for mine, other in (
        (ours.shape.interfaces, theirs.shape.interfaces),
        (ours.shape.nodes, theirs.shape.nodes),
        (ours.shape.edges, theirs.shape.edges),
    ):
        known = {shape.name: shape for shape in mine}
        for shape in other:
            key: TypeKey = (shape.kind, shape.name)
            if shape.name not in known:
                known[shape.name], identities[key] = shape, theirs.identities[key]
                continue
            known[shape.name] = _extended(known[shape.name], shape)
            identities[key] = _numbered(identities[key], theirs.identities[key])
        groups.append(tuple(known[name] for name in sorted(known)))
    counter = max(ours.next_identity_id, theirs.next_identity_id)
    return SchemaIR(ours.domain, counter, Shape(*groups), identities)


def _numbered(mine: TypeIdentity, other: TypeIdentity) -> TypeIdentity:
    return replace(mine, properties={**other.properties, **mine.properties})


def _extended(mine: TypeShape, other: TypeShape) -> TypeShape:
    properties: Mapping[str, PropertyShape] = {
        **{prop.name: prop for prop in other.properties},
        **{prop.name: _with_members(prop, other.property(prop.name)) for prop in mine.properties},
    }
    indexes = [one for one in other.constraints if one.kind == "index" and one not in mine.constraints]
    return replace(
        mine,
        properties=tuple(properties[name] for name in sorted(properties)),
        constraints=tuple(sorted([*mine.constraints, *indexes], key=lambda one: one.order)),
    )


def _with_members(mine: PropertyShape, other: PropertyShape | None) -> PropertyShape:
    """An enum with the values of both sides."""
    if other is None or mine.type.members is None or other.type.members is None:
        return mine
    return replace(mine, type=replace(mine.type, members=tuple(sorted({*mine.type.members, *other.type.members}))))
