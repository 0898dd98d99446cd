"""Values that existing rows get in a property for which they have none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import InvalidArgument
from omnigraph.formats.columns import column, in_type
from omnigraph.lang.parameters import bind_parameters
from omnigraph.lang.schema.catalog import EntityType, Property

Target = tuple[str, str]
"""A type and one of its properties, by the names of the new schema."""


@dataclass(frozen=True, slots=True)
class Fill:
    """One value for all rows, another property whose values they take, or values by the rows' ids."""

    value: object = None
    source: str | None = None
    by_id: pa.Table | None = None
    """Columns `id` and `value`; a row with another id gets none."""

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns of the old type that have to be read."""
        if self.by_id is not None:
            return ("id",)
        return () if self.source is None else (self.source,)

    def __str__(self) -> str:
        if self.by_id is not None:
            return f"the values of {self.by_id.num_rows} rows"
        return f"${self.source}" if self.source is not None else json.dumps(self.value, default=str)


def parse_fills(given: Mapping[str, object]) -> dict[Target, Fill]:
    """Fills by `Type.property`. A text that begins with `$` names another property of the type."""
    fills: dict[Target, Fill] = {}
    for name, value in given.items():
        type_name, dot, prop = name.partition(".")
        if not dot or not type_name or not prop:
            raise InvalidArgument("fill", f"'{name}' is no property; write Type.property")
        is_reference = isinstance(value, str) and value.startswith("$")
        fills[type_name, prop] = Fill(source=str(value)[1:]) if is_reference else Fill(value)
    return fills


def shown(fills: Mapping[Target, Fill]) -> dict[Target, str]:
    """Fills as a plan shows them."""
    return {target: str(fill) for target, fill in fills.items()}


def require_used(fills: Mapping[Target, Fill], used: set[Target]) -> None:
    """Raise InvalidArgument for a fill that no step of the plan needs."""
    unused = sorted(fills.keys() - used)
    if unused:
        type_name, prop = unused[0]
        reason = f"{type_name}.{prop} needs no fill: it is neither new nor becomes required"
        raise InvalidArgument("fill", reason)


def fill_values(fill: Fill, target: Property, rows: pa.RecordBatch) -> pa.Array:
    """The value of each row. ``rows`` have the columns of the old type."""
    stored = column(target.name, target.type).type
    if fill.by_id is not None:
        places = pc.index_in(rows["id"], value_set=fill.by_id["id"].combine_chunks())
        return in_type(fill.by_id["value"].combine_chunks(), stored).take(places)
    if fill.source is not None:
        return rows[fill.source].cast(stored)
    bound = bind_parameters("fill", {target.name: target.type}, {target.name: fill.value})[target.name]
    return pa.array([_plain(bound)], stored).take(pa.array([0] * rows.num_rows, pa.int64()))


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def check_fill(fill: Fill, old: EntityType, target: Property) -> None:
    """Raise InvalidArgument if a fill does not fit its property."""
    name = f"{old.name}.{target.name}"
    if target.type.is_blob:
        raise InvalidArgument("fill", f"{name} is a Blob, which cannot be filled")
    if fill.by_id is not None:
        return
    if fill.source is None:
        bind_parameters("fill", {target.name: target.type}, {target.name: fill.value})
        return
    source = old.properties.get(fill.source)
    if source is None:
        raise InvalidArgument("fill", f"{old.name} has no property '{fill.source}' to fill {name} with")
    if source.type.required() != target.type.required():
        reason = f"{old.name}.{fill.source} is {source.type}, {name} is {target.type}; they have to be the same"
        raise InvalidArgument("fill", reason)


def filled(values: pa.Array, fill: pa.Array) -> pa.Array:
    """The values, with those of ``fill`` where there are none."""
    return pc.coalesce(values, fill) if not pa.types.is_nested(values.type) else _chosen(values, fill)


def _chosen(values: pa.Array, fill: pa.Array) -> pa.Array:
    count = len(values)
    places = pc.if_else(pc.is_valid(values), pa.array(range(count)), pa.array(range(count, 2 * count)))
    return pa.concat_arrays([values, fill]).take(places)
