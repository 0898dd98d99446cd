"""Reading the records of a load: one JSON object per line, strictly, with every bad line named."""

from __future__ import annotations

import datetime as dt
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from omnigraph.errors import RecordError, RecordProblem
from omnigraph.lang.schema.catalog import Catalog, EdgeType, NodeType, Property
from omnigraph.lang.values import F32_MAX, FLOATS, INTEGER_BOUNDS, Scalar, parse_date, parse_datetime
from omnigraph.write.rows import BadValue, blob_bytes

_SHOWN: Final = 20
LONGEST_LINE: Final = 32 << 20
MOST_STRUCTURE: Final = 131_072
_STRUCTURE: Final = b"[]{}:,"
_TEXT: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_SURROGATE: Final = re.compile(rb"\\u[dD]")
_F64_MAX: Final = sys.float_info.max
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@dataclass(slots=True)
class Records:
    """The records of one type, as columns of Python values, with the line each came from."""

    entity: NodeType | EdgeType
    columns: dict[str, list[Any]] = field(default_factory=dict)
    lines: list[int] = field(default_factory=list)

    def add(self, values: Mapping[str, Any], line: int) -> None:
        for name, column in self.columns.items():
            column.append(values.get(name))
        self.lines.append(line)


class _BadRecord(Exception):
    """One record cannot be read; the reader notes it and goes on."""


def read_records(lines: Iterable[bytes], catalog: Catalog, source: str) -> dict[str, Records]:
    """All records by table key; RecordError lists the bad ones."""
    found: dict[str, Records] = {}
    problems: list[RecordProblem] = []
    total = 0
    for number, line in enumerate(lines, 1):
        try:
            entity, values = _record(line, catalog) or (None, {})
        except _BadRecord as error:
            total += 1
            if len(problems) < _SHOWN:
                column = error.args[1] if len(error.args) > 1 else 1
                problems.append(RecordProblem(source, number, column, error.args[0]))
            continue
        if entity is not None:
            records = found.get(entity.table_key)
            if records is None:
                names = ("id", *(("src", "dst") if isinstance(entity, EdgeType) else ()), *entity.properties)
                records = found[entity.table_key] = Records(entity, {name: [] for name in names})
            records.add(values, number)
    if total:
        raise RecordError(problems, total)
    return found


def split_lines(data: bytes) -> Iterator[bytes]:
    """The lines of a file, without their ends."""
    start = 0
    while start < len(data):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        yield data[start:end].removesuffix(b"\r")
        start = end + 1


def _record(line: bytes, catalog: Catalog) -> tuple[NodeType | EdgeType, dict[str, Any]] | None:
    """One line; None for a blank line or a comment."""
    stripped = line.strip()
    if not stripped or stripped.startswith(b"//"):
        return None
    if len(line) > LONGEST_LINE:
        raise _BadRecord(f"the line has {len(line):,} bytes; the limit is {LONGEST_LINE:,}")
    if _structural(line) > MOST_STRUCTURE:
        raise _BadRecord(f"the line has more than {MOST_STRUCTURE:,} brackets, braces, colons and commas")
    try:
        record = json.loads(line.decode(), object_pairs_hook=_members, parse_constant=_refuse_constant)
        if _SURROGATE.search(line):
            json.dumps(record, ensure_ascii=False).encode()
    except UnicodeDecodeError as error:
        raise _BadRecord(f"not UTF-8: byte 0x{line[error.start]:02x}", error.start + 1) from None
    except UnicodeEncodeError:
        raise _BadRecord("not Unicode: a text has half of a surrogate pair") from None
    except json.JSONDecodeError as error:
        raise _BadRecord(f"not JSON: {error.msg}", error.colno) from None
    except RecursionError:
        raise _BadRecord("nested too deeply") from None
    except ValueError as error:
        raise _BadRecord(f"not JSON: {error}") from None
    if not isinstance(record, dict):
        raise _BadRecord("a record is a JSON object")
    return _entity(record, catalog)


def _structural(line: bytes) -> int:
    """How many characters hold the JSON of a line together; those inside of texts do not count."""
    if len(line) <= MOST_STRUCTURE:
        return 0
    bare = _TEXT.sub(b"", line)
    return len(bare) - len(bare.translate(None, _STRUCTURE))


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        repeated = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise _BadRecord(f"member '{repeated}' is repeated")
    return members


def _refuse_constant(name: str) -> Any:
    raise _BadRecord(f"{name} is not JSON")


def _entity(record: dict[str, Any], catalog: Catalog) -> tuple[NodeType | EdgeType, dict[str, Any]]:
    data = record.get("data", {})
    if not isinstance(data, dict):
        raise _BadRecord("'data' is an object")
    if ("type" in record) == ("edge" in record):
        raise _BadRecord("a record has either 'type' or 'edge'")
    entity: NodeType | EdgeType | None
    if "type" in record:
        _refuse_others(record, {"type", "data"})
        entity = catalog.nodes.get(record["type"]) if isinstance(record["type"], str) else None
        if entity is None:
            raise _BadRecord(f"unknown node type {json.dumps(record['type'])}")
        return entity, _node_values(entity, data)
    _refuse_others(record, {"edge", "from", "to", "data"})
    entity = catalog.edge(record["edge"]) if isinstance(record["edge"], str) else None
    if entity is None:
        raise _BadRecord(f"unknown edge type {json.dumps(record['edge'])}")
    values = _values(entity, data)
    for member, column in (("from", "src"), ("to", "dst")):
        if not isinstance(record.get(member), str):
            raise _BadRecord(f"'{member}' is the id of a node, a string")
        values[column] = record[member]
    return entity, values


def _refuse_others(record: Mapping[str, Any], allowed: set[str]) -> None:
    for name in record:
        if name not in allowed:
            raise _BadRecord(f"unknown member '{name}'; a record has {', '.join(sorted(allowed))}")


def _node_values(node: NodeType, data: Mapping[str, Any]) -> dict[str, Any]:
    values = _values(node, data)
    if node.key:
        try:
            canonical = node.id_of(values)
        except ValueError as error:
            raise _BadRecord(f"the key of {node.name}: {error}") from None
        if values.get("id") not in (None, canonical):
            raise _BadRecord(f"id '{values['id']}' is not the id its key gives, '{canonical}'")
        values["id"] = canonical
    return values


def _values(entity: NodeType | EdgeType, data: Mapping[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in data.items():
        prop = entity.properties.get(name)
        if name == "id":
            if not isinstance(value, str) or not value:
                raise _BadRecord("'id' is a string")
            values["id"] = value
        elif prop is None:
            raise _BadRecord(f"{entity.name} has no property '{name}'")
        elif value is not None:
            values[name] = _value(entity, prop, value)
    for prop in entity.properties.values():
        if not prop.type.nullable and values.get(prop.name) is None and prop.embed is None:
            raise _BadRecord(f"non-nullable property '{prop.name}' has null or invalid values")
    return values


def _value(entity: NodeType | EdgeType, prop: Property, value: Any) -> Any:
    wanted = prop.type
    try:
        if wanted.dimension is not None:
            return [_scalar(item, Scalar.F32) for item in _array(value, wanted.dimension)]
        if wanted.is_list:
            return [_scalar(item, wanted.scalar) for item in _array(value, None)]
        if wanted.is_blob and isinstance(value, str):
            return blob_bytes(prop.name, value)
        return _scalar(value, wanted.scalar)
    except BadValue as error:
        raise _BadRecord(error.reason) from None
    except ValueError as error:
        raise _BadRecord(f"{entity.name}.{prop.name} is {wanted}: {error}") from None


def _array(value: Any, length: int | None) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError("needs an array")
    if length is not None and len(value) != length:
        raise ValueError(f"needs {length} numbers, not {len(value)}")
    return value


def _scalar(value: Any, scalar: Scalar) -> Any:
    if scalar in INTEGER_BOUNDS:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"{_shown(value)} is not an integer")
        low, high = INTEGER_BOUNDS[scalar]
        if not low <= value <= high:
            raise ValueError(f"{_shown(value)} exceeds {scalar} range")
        return value
    if scalar in FLOATS:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{_shown(value)} is not a number")
        if not abs(value) <= _F64_MAX or (scalar is Scalar.F32 and abs(value) >= F32_MAX):
            raise ValueError(f"{_shown(value)} exceeds {scalar} range")
        return float(value)
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
    """A value as JSON, cut to what a message can bear."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _date(value: Any) -> dt.date:
    if isinstance(value, str):
        return parse_date(value)
    if isinstance(value, int) and not isinstance(value, bool):
        try:
            return dt.date(1970, 1, 1) + dt.timedelta(days=value)
        except OverflowError:
            raise ValueError(f"{value} days lie outside the years 1 to 9999") from None
    raise ValueError(f"{_shown(value)} is neither YYYY-MM-DD nor a number of days")


def _datetime(value: Any) -> dt.datetime:
    if isinstance(value, str):
        return parse_datetime(value)
    if isinstance(value, int) and not isinstance(value, bool):
        try:
            return _EPOCH + dt.timedelta(milliseconds=value)
        except OverflowError:
            raise ValueError(f"{value} milliseconds lie outside the years 1 to 9999") from None
    raise ValueError(f"{_shown(value)} is neither an ISO instant nor a number of milliseconds")
