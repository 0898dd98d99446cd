"""The steps of a schema change, as a plan lists them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from omnigraph.errors import MigrationError
from omnigraph.lang.schema.identity import SchemaIR

StepKind = Literal[
    "add_type",
    "rename_type",
    "add_property",
    "rename_property",
    "widen_property",
    "make_nullable",
    "make_required",
    "add_constraint",
    "drop_constraint",
    "change_cardinality",
    "change_embedding",
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
        """The step as one line that a person reads."""
        f = self.fields
        match self.kind:
            case "add_type":
                return f"add {f['type_kind']} {f['name']}"
            case "rename_type":
                return f"rename {f['type_kind']} {f['from']} to {f['to']}"
            case "add_property":
                filled = f", filled with {f['fill']}" if "fill" in f else ""
                return f"add {f['type_name']}.{f['property_name']}: {f['property_type']}{filled}"
            case "rename_property":
                return f"rename {f['type_name']}.{f['from']} to {f['to']}"
            case "widen_property":
                return f"widen {f['type_name']}.{f['property_name']} from {f['from']} to {f['to']}"
            case "make_nullable":
                return f"let {f['type_name']}.{f['property_name']} be null"
            case "make_required":
                filled = f", nulls filled with {f['fill']}" if "fill" in f else ""
                return f"require {f['type_name']}.{f['property_name']}{filled}"
            case "add_constraint":
                return f"add {f['constraint']} to {f['type_name']}"
            case "drop_constraint":
                return f"drop {f['constraint']} of {f['type_name']}"
            case "change_cardinality":
                return f"change {f['type_name']} from @card({f['from']}) to @card({f['to']})"
            case "change_embedding":
                return f"compute {f['type_name']}.{f['property_name']} from {f['source']}{_model(f['model'])}"
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


def _model(name: str | None) -> str:
    return "" if name is None else f" with {name}"


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


def refuse(entity: str, reason: str, code: str | None = None) -> Step:
    """A change that cannot be made, with the reason and what can be done instead."""
    return Step("unsupported_change", {"entity": entity, "reason": reason} | ({"code": code} if code else {}))
