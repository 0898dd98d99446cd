"""What a record of a load is: one JSON object on a line, read strictly. `blocks` reads many of them."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, TypeVar

from omnigraph.errors import BadValue
from omnigraph.formats.cells import why_not
from omnigraph.formats.rows import blob_cell
from omnigraph.lang.schema.catalog import Catalog, EdgeType, EntityType, Property
from omnigraph.lang.values import (
    FLOATS,
    INTEGERS,
    Scalar,
    date_after_epoch,
    fitting_float,
    in_range,
    instant_after_epoch,
    parse_date,
    parse_datetime,
)

_Moment = TypeVar("_Moment")

LONGEST_LINE: Final = 32 << 20
MAX_STRUCTURE: Final = 131_072
_STRUCTURE: Final = b"[]{}:,"
_TEXT: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_SURROGATE: Final = re.compile(rb"\\u[dD]")


_ONE_LINE: Final = "; each is on a line of its own, as `jq -c '.[]'` writes those of an array"


class BadRecord(Exception):
    """One record cannot be read: the reason, and the column of its line. The reader collects it and goes on."""

    def __init__(self, reason: str, column: int = 1) -> None:
        super().__init__(reason, column)
        self.reason = reason
        self.column = column


def read_line(line: bytes, catalog: Catalog) -> tuple[EntityType, dict[str, Any]] | None:
    """The type and the values of one line's record; None for a blank line or a comment."""
    record = _loaded(line)
    return None if record is None else _entity(record, catalog)


def read_flat_line(
    line: bytes,
    entity: EntityType,
    columns: Mapping[str, str],
    numbered: Collection[str],
    *,
    ignores_others: bool,
) -> tuple[EntityType, dict[str, Any]] | None:
    """The values of a line that is an object of one type, with its properties and ends as members.

    ``columns`` has the member of each column of the table. ``numbered`` are the ends that integers may name.
    """
    record = _loaded(line)
    if record is None:
        return None
    by_member = {member: column for column, member in columns.items()}
    own: dict[str, Any] = {}
    for member, value in record.items():
        column = by_member.get(member)
        if column is not None and value is not None:
            own[column] = value
        elif column is None and not ignores_others:
            raise BadRecord(f"{entity.name} has no property '{member}'")
    if not isinstance(entity, EdgeType):
        return entity, _with_id(entity, _values(entity, own))
    ends = {end: _end(columns[end], own.pop(end, None), is_numbered=end in numbered) for end in ("src", "dst")}
    return entity, _with_id(entity, _values(entity, own) | ends)


def _end(member: str, value: Any, *, is_numbered: bool) -> str:
    if is_numbered and isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise BadRecord(f"'{member}' is the id of a node, a string")
    return value


def _loaded(line: bytes) -> dict[str, Any] | None:
    """The JSON object of a line; None for a blank line or a comment."""
    stripped = line.strip()
    if not stripped or stripped.startswith(b"//"):
        return None
    if len(line) > LONGEST_LINE:
        raise BadRecord(too_long(len(line)))
    if _structural(line) > MAX_STRUCTURE:
        raise BadRecord(f"the line has more than {MAX_STRUCTURE:,} brackets, braces, colons and commas")
    try:
        record = json.loads(line.decode(), object_pairs_hook=_members, parse_constant=_refuse_constant)
        if _SURROGATE.search(line):
            json.dumps(record, ensure_ascii=False).encode()
    except UnicodeDecodeError as error:
        raise BadRecord(f"not UTF-8: byte 0x{line[error.start]:02x}", error.start + 1) from None
    except UnicodeEncodeError:
        raise BadRecord("not Unicode: a text has half of a surrogate pair") from None
    except json.JSONDecodeError as error:
        hint = _ONE_LINE if stripped in (b"[", b"{") else ""
        raise BadRecord(f"not JSON: {error.msg}{hint}", error.colno) from None
    except RecursionError:
        raise BadRecord("nested too deeply") from None
    except ValueError as error:
        raise BadRecord(f"not JSON: {error}") from None
    if not isinstance(record, dict):
        raise BadRecord(f"a record is a JSON object{_ONE_LINE if isinstance(record, list) and record else ''}")
    return record


def too_long(length: int) -> str:
    """The reason to refuse a line of that many bytes."""
    return f"the line has {length:,} bytes; the limit is {LONGEST_LINE:,}"


def _structural(line: bytes) -> int:
    """How many structural characters the JSON of a line has, outside of texts."""
    if len(line) <= MAX_STRUCTURE:
        return 0
    bare = _TEXT.sub(b"", line)
    return len(bare) - len(bare.translate(None, _STRUCTURE))


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        repeated = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise BadRecord(f"member '{repeated}' is repeated")
    return members


def _refuse_constant(name: str) -> Any:
    raise BadRecord(f"{name} is not JSON")


def _entity(record: dict[str, Any], catalog: Catalog) -> tuple[EntityType, dict[str, Any]]:
    data = record.get("data", {})
    if not isinstance(data, dict):
        raise BadRecord("'data' is an object")
    if ("type" in record) == ("edge" in record):
        raise BadRecord("a record has either 'type' or 'edge'")
    entity: EntityType | None
    if "type" in record:
        _refuse_others(record, {"type", "data"})
        entity = catalog.nodes.get(record["type"]) if isinstance(record["type"], str) else None
        if entity is None:
            raise BadRecord(f"unknown node type {json.dumps(record['type'])}")
        return entity, _with_id(entity, _values(entity, data))
    _refuse_others(record, {"edge", "from", "to", "data"})
    entity = catalog.edge(record["edge"]) if isinstance(record["edge"], str) else None
    if entity is None:
        raise BadRecord(f"unknown edge type {json.dumps(record['edge'])}")
    values = _values(entity, data)
    for member, column in (("from", "src"), ("to", "dst")):
        if not isinstance(record.get(member), str):
            raise BadRecord(f"'{member}' is the id of a node, a string")
        values[column] = record[member]
    return entity, _with_id(entity, values)


def _refuse_others(record: Mapping[str, Any], allowed: set[str]) -> None:
    for name in record:
        if name not in allowed:
            raise BadRecord(f"unknown member '{name}'; a record has {', '.join(sorted(allowed))}")


def _with_id(entity: EntityType, values: dict[str, Any]) -> dict[str, Any]:
    """The values with the id that their key gives, if the type has a key."""
    if entity.key:
        try:
            canonical = entity.id_of(values)
        except ValueError as error:
            raise BadRecord(f"the key of {entity.name}: {error}") from None
        if values.get("id") not in (None, canonical):
            raise BadRecord(f"id '{values['id']}' is not the id its key gives, '{canonical}'")
        values["id"] = canonical
    return values


def _values(entity: EntityType, data: Mapping[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in data.items():
        prop = entity.properties.get(name)
        if name == "id":
            if not isinstance(value, str) or not value:
                raise BadRecord("'id' is a string")
            values["id"] = value
        elif prop is None:
            raise BadRecord(f"{entity.name} has no property '{name}'")
        elif value is not None:
            values[name] = _value(entity, prop, value)
    for prop in entity.properties.values():
        if not prop.type.nullable and values.get(prop.name) is None and prop.embed is None:
            raise BadRecord(f"non-nullable property '{prop.name}' has null or invalid values")
    return values


def _value(entity: EntityType, prop: Property, value: Any) -> Any:
    wanted = prop.type
    try:
        if wanted.dimension is not None:
            return [_scalar(item, Scalar.F32) for item in _array(value, wanted.dimension)]
        if wanted.is_list:
            return [_scalar(item, wanted.scalar) for item in _array(value, None)]
        if wanted.is_blob and isinstance(value, str):
            return blob_cell(prop.name, value)
        return _scalar(value, wanted.scalar)
    except BadValue as error:
        raise BadRecord(error.reason) from None
    except ValueError as error:
        raise BadRecord(f"{entity.name}.{prop.name} is {wanted}: {error}") from None


def _array(value: Any, length: int | None) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError("needs an array")
    if length is not None and len(value) != length:
        raise ValueError(f"needs {length} numbers, not {len(value)}")
    return value


def _scalar(value: Any, scalar: Scalar) -> Any:
    if scalar in INTEGERS:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"{_shown(value)} is not an integer")
        if not in_range(value, scalar):
            raise ValueError(f"{_shown(value)} exceeds {scalar} range")
        return value
    if scalar in FLOATS:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{_shown(value)} is not a number")
        number = fitting_float(value, scalar)
        if number is None:
            raise ValueError(f"{_shown(value)} exceeds {scalar} range")
        return number
    if scalar is Scalar.DATE:
        return _date(value)
    if scalar is Scalar.DATETIME:
        return _datetime(value)
    if scalar is Scalar.BOOL and isinstance(value, bool):
        return value
    if scalar is Scalar.STRING and isinstance(value, str):
        return value
    raise ValueError(f"{_shown(value)} does not fit")


def _shown(value: Any) -> str:
    """A value as JSON, shortened for a message."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _parsed(text: str, parse: Callable[[str], _Moment]) -> _Moment:
    try:
        return parse(text)
    except ValueError as error:
        raise ValueError(why_not(text, error)) from None


def _date(value: Any) -> dt.date:
    if isinstance(value, str):
        return _parsed(value, parse_date)
    if isinstance(value, int) and not isinstance(value, bool):
        return date_after_epoch(value)
    raise ValueError(f"{_shown(value)} is neither YYYY-MM-DD nor a number of days")


def _datetime(value: Any) -> dt.datetime:
    if isinstance(value, str):
        return _parsed(value, parse_datetime)
    if isinstance(value, int) and not isinstance(value, bool):
        return instant_after_epoch(value)
    raise ValueError(f"{_shown(value)} is neither an ISO instant nor a number of milliseconds")
