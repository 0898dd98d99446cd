"""Stable identities: every type, property and table keeps one number for life, whatever it is called.

A schema IR is a shape plus those numbers. Numbers come from one counter that only grows, so a type that is
dropped and declared again is a new type, and a renamed one is the old one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

from omnigraph.errors import Diagnostic, SchemaError
from omnigraph.lang.diagnostics import Diagnostics, Remedy, suggest
from omnigraph.lang.schema.shape import (
    AnnotationShape,
    ConstraintShape,
    EmbedShape,
    PropertyShape,
    Shape,
    TypeKind,
    TypeShape,
)
from omnigraph.lang.values import ValueType
from omnigraph.records import dataclass

if TYPE_CHECKING:
    from omnigraph.lang.schema.resolve import CompiledSchema, HintKey

IR_VERSION: Final = 2
OFFLINE_DOMAIN: Final = "0" * 26
"""The identity domain of schemas that belong to no graph, as when two files are compared."""

TypeKey = tuple[TypeKind, str]


@dataclass(frozen=True, slots=True)
class TypeIdentity:
    """The numbers of one type. ``incarnation`` numbers its table; interfaces have none."""

    id: int
    properties: Mapping[str, int]
    incarnation: int | None = None


@dataclass(frozen=True, slots=True)
class SchemaIR:
    """An accepted schema: its shape, and the identity of everything in it."""

    domain: str
    next_identity_id: int
    shape: Shape
    identities: Mapping[TypeKey, TypeIdentity]
    retired: frozenset[int] = frozenset()
    """The numbers of types and properties that were dropped on the way to this schema, as far as they are known:
    schemas of older releases list none."""

    @property
    def numbers(self) -> frozenset[int]:
        """The numbers of all its types and properties."""
        types = self.identities.values()
        return frozenset(
            {one.id for one in types} | {number for one in types for number in one.properties.values()}
        )

    def dropped_by_either(self, other: SchemaIR) -> frozenset[int]:
        """What one of two schemas has and the other one has dropped. Where the other one has something of the
        same name, that is another thing, and not what two branches have added by themselves."""
        return (self.retired & other.numbers) | (other.retired & self.numbers)

    def as_json(self) -> dict[str, Any]:
        """The stored form: references carry id and name."""
        out: dict[str, Any] = {
            "ir_version": IR_VERSION,
            "domain": self.domain,
            "next_identity_id": self.next_identity_id,
            "shape_hash": self.shape.hash,
        }
        if self.retired:
            out["retired"] = sorted(self.retired)
        for group, types in zip(_GROUPS, (self.shape.interfaces, self.shape.nodes, self.shape.edges), strict=True):
            out[group] = [self._type_json(t) for t in types]
        return out

    def _type_json(self, shape: TypeShape) -> dict[str, Any]:
        identity = self.identities[shape.kind, shape.name]
        out = {"id": identity.id} | shape.as_json()
        if identity.incarnation is not None:
            out["incarnation"] = identity.incarnation
        for stored in out["properties"]:
            stored["id"] = identity.properties[stored["name"]]
            if stored["embed"] is not None:
                stored["embed"]["source"] = self._property_ref(identity, stored["embed"]["source"])
            stored["satisfies"] = [self._type_ref("interface", name) for name in stored["satisfies"]]
        for stored in out["constraints"]:
            stored["columns"] = [self._property_ref(identity, name) for name in stored["columns"]]
        if shape.kind == "node":
            out["implements"] = [self._type_ref("interface", name) for name in shape.implements]
        if shape.kind == "edge" and shape.source is not None and shape.target is not None:
            out |= {"from": self._type_ref("node", shape.source), "to": self._type_ref("node", shape.target)}
        return out

    def _type_ref(self, kind: TypeKind, name: str) -> dict[str, Any]:
        return {"id": self.identities[kind, name].id, "name": name}

    @staticmethod
    def _property_ref(owner: TypeIdentity, name: str) -> dict[str, Any]:
        return {"id": owner.properties.get(name), "name": name}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> SchemaIR:
        """Read the stored form back; ValueError if it is of another version or contradicts its own hash."""
        if stored.get("ir_version") != IR_VERSION:
            raise ValueError(f"schema IR version {stored.get('ir_version')} is not {IR_VERSION}")
        identities: dict[TypeKey, TypeIdentity] = {}
        groups: list[tuple[TypeShape, ...]] = []
        for kind, group in zip(_KINDS, _GROUPS, strict=True):
            shapes = []
            for entry in stored[group]:
                shapes.append(_type_from_json(kind, entry))
                identities[kind, entry["name"]] = TypeIdentity(
                    entry["id"], {p["name"]: p["id"] for p in entry["properties"]}, entry.get("incarnation")
                )
            groups.append(tuple(shapes))
        shape = Shape(*groups)
        if shape.hash != stored["shape_hash"]:
            raise ValueError("schema IR does not match its own hash; the file was changed or cut short")
        retired = frozenset(stored.get("retired", ()))
        return cls(stored["domain"], stored["next_identity_id"], shape, identities, retired)

    def dumps(self) -> str:
        """The stored form as text."""
        return json.dumps(self.as_json(), indent=1, ensure_ascii=False, sort_keys=True) + "\n"


_KINDS: Final[tuple[TypeKind, ...]] = ("interface", "node", "edge")
_GROUPS: Final = ("interfaces", "nodes", "edges")


def _type_from_json(kind: TypeKind, stored: Mapping[str, Any]) -> TypeShape:
    return TypeShape(
        kind,
        stored["name"],
        tuple(_property_from_json(p) for p in stored["properties"]),
        tuple(
            ConstraintShape(
                c["kind"],
                tuple(ref["name"] for ref in c["columns"]),
                c.get("low"),
                c.get("high"),
                c.get("pattern"),
            )
            for c in stored["constraints"]
        ),
        tuple(AnnotationShape.from_json(a) for a in stored["annotations"]),
        tuple(ref["name"] for ref in stored.get("implements", ())),
        stored["from"]["name"] if kind == "edge" else None,
        stored["to"]["name"] if kind == "edge" else None,
        stored.get("min", 0),
        stored.get("max"),
    )


def _property_from_json(stored: Mapping[str, Any]) -> PropertyShape:
    embed = stored["embed"]
    return PropertyShape(
        stored["name"],
        ValueType.from_json(stored["type"]),
        tuple(AnnotationShape.from_json(a) for a in stored["annotations"]),
        None if embed is None else EmbedShape(embed["source"]["name"], embed["model"]),
        stored["injected"],
        tuple(ref["name"] for ref in stored["satisfies"]),
    )


def first_identities(schema: CompiledSchema, domain: str = OFFLINE_DOMAIN) -> SchemaIR:
    """Identities for a new graph: rename hints have nothing to rename and are inert."""
    return _Allocation(schema, SchemaIR(domain, 1, Shape(), {})).resolve()


def resolve_identities(schema: CompiledSchema, accepted: SchemaIR) -> SchemaIR:
    """Carry identities over from the accepted schema, by name or rename hint; new things get new numbers."""
    allocation = _Allocation(schema, accepted)
    allocation.match_types()
    allocation.match_properties()
    allocation.diagnostics.raise_if_any(SchemaError)
    return allocation.resolve()


def idle_hints(schema: CompiledSchema, accepted: SchemaIR | None) -> list[Diagnostic]:
    """The rename hints that do nothing: on a new graph all of them, later those whose new name is accepted."""
    notes = []
    for key, hint in schema.hints.items():
        if accepted is None:
            code = "inert_initialization_rename_hint"
            message = f"a new graph has no `{hint.old}` to rename"
        elif _is_accepted(key, accepted):
            code, message = "ignored_exact_match_rename_hint", f"`{key[-1]}` is the accepted name already"
        else:
            continue
        notes.append(schema.source.diagnostic(code, "note", message, hint.span, None))
    return notes


def _is_accepted(key: HintKey, accepted: SchemaIR) -> bool:
    owner = accepted.identities.get((key[0], key[1]))
    return owner is not None and (len(key) == 2 or key[2] in owner.properties)


class _Allocation:
    """One resolution of a desired schema against the accepted identities."""

    def __init__(self, schema: CompiledSchema, accepted: SchemaIR) -> None:
        self.schema = schema
        self.accepted = accepted
        self.diagnostics = Diagnostics(schema.source)
        self.types: dict[TypeKey, TypeKey] = {}
        self.properties: dict[TypeKey, dict[str, str]] = {}

    def match_types(self) -> None:
        """Find the accepted type each desired type continues."""
        desired: set[TypeKey] = {(t.kind, t.name) for t in self.schema.shape.types}
        claimed: dict[TypeKey, TypeKey] = {key: key for key in desired if key in self.accepted.identities}
        self.types = dict(claimed)
        for key in sorted(desired - claimed.keys()):
            hint = self.schema.hints.get(key)
            if hint is None:
                continue
            old: TypeKey = (key[0], hint.old)
            if old not in self.accepted.identities:
                kinds = [kind for kind in _KINDS if (kind, hint.old) in self.accepted.identities]
                if kinds:
                    self._report(
                        "M302",
                        f"{key[0]} {key[1]} cannot continue `{hint.old}`, which is of kind {kinds[0]}",
                        key,
                    )
                else:
                    known = (name for kind, name in self.accepted.identities if kind == key[0])
                    self._report(
                        "M301",
                        f"there is no {key[0]} `{hint.old}` to rename",
                        key,
                        partial(suggest, hint.old, known),
                    )
            elif old in claimed:
                self._report(
                    "M303",
                    f"{key[1]} cannot continue `{hint.old}`: {claimed[old][1]} is its continuation already",
                    key,
                )
            else:
                claimed[old] = key
                self.types[key] = old

    def match_properties(self) -> None:
        """Find the accepted property each desired property continues, within one continued type."""
        for shape in self.schema.shape.types:
            key: TypeKey = (shape.kind, shape.name)
            old_key = self.types.get(key)
            known = self.accepted.identities[old_key].properties if old_key else {}
            exact = {p.name: p.name for p in shape.properties if p.name in known}
            claimed = dict(exact)
            matched = dict(exact)
            for prop in shape.properties:
                hint_key: HintKey = (shape.kind, shape.name, prop.name)
                hint = self.schema.hints.get(hint_key)
                if hint is None or prop.name in exact:
                    continue
                if old_key is None and prop.injected:
                    continue  # the interface speaks to the nodes that had its property under the old name
                if old_key is None:
                    self._report(
                        "M302",
                        f"{shape.name} is new, so `{prop.name}` has no old property to continue",
                        hint_key,
                        "add `@rename_from` to the type as well, or leave the hint out",
                    )
                elif hint.old not in known:
                    self._unknown_property(hint_key, hint.old, known)
                elif hint.old in claimed:
                    self._report(
                        "M303",
                        f"`{prop.name}` cannot continue `{hint.old}`: `{claimed[hint.old]}` does already",
                        hint_key,
                    )
                else:
                    claimed[hint.old] = prop.name
                    matched[prop.name] = hint.old
            self.properties[key] = matched

    @cached_property
    def _owners(self) -> dict[str, str]:
        """For each accepted property, the first type that has one of that name."""
        owners: dict[str, str] = {}
        for (_, name), identity in self.accepted.identities.items():
            for prop in identity.properties:
                owners.setdefault(prop, name)
        return owners

    def _unknown_property(self, key: HintKey, old: str, known: Mapping[str, int]) -> None:
        elsewhere = self._owners.get(old)
        if elsewhere is not None:
            self._report(
                "M302",
                f"`{old}` is a property of {elsewhere}; a property cannot move to {key[1]}",
                key,
                "add a new property and copy the values",
            )
        else:
            self._report("M301", f"{key[1]} has no property `{old}` to rename", key, partial(suggest, old, known))

    def _report(self, code: str, message: str, key: HintKey, remedy: Remedy = None) -> None:
        self.diagnostics.report(code, "catalog error", message, self.schema.hints[key].span, remedy)

    def resolve(self) -> SchemaIR:
        """Allocate in the fixed order: new types, then new properties, then new incarnations."""
        counter = self.accepted.next_identity_id
        accepted = self.accepted.identities
        type_ids: dict[TypeKey, int] = {}
        for shape in self.schema.shape.types:
            key: TypeKey = (shape.kind, shape.name)
            if key in self.types:
                type_ids[key] = accepted[self.types[key]].id
            else:
                type_ids[key], counter = counter, counter + 1
        properties: dict[TypeKey, dict[str, int]] = {}
        ordered = sorted(self.schema.shape.types, key=lambda t: type_ids[t.kind, t.name])
        for shape in ordered:
            key = (shape.kind, shape.name)
            old = accepted[self.types[key]].properties if key in self.types else {}
            matched = self.properties.get(key, {})
            ids: dict[str, int] = {}
            for prop in shape.properties:
                if prop.name in matched:
                    ids[prop.name] = old[matched[prop.name]]
                else:
                    ids[prop.name], counter = counter, counter + 1
            properties[key] = ids
        identities: dict[TypeKey, TypeIdentity] = {}
        for shape in ordered:
            key = (shape.kind, shape.name)
            incarnation = accepted[self.types[key]].incarnation if key in self.types else None
            if incarnation is None and shape.kind != "interface":
                incarnation, counter = counter, counter + 1
            identities[key] = TypeIdentity(type_ids[key], properties[key], incarnation)
        target = SchemaIR(self.accepted.domain, counter, self.schema.shape, identities)
        gone = self.accepted.numbers - target.numbers
        return replace(target, retired=self.accepted.retired | gone)
