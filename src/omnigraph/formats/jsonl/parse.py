"""Lines of one type into rows, by Arrow's JSON reader and checks of everything about which it is lax.

Each line starts with `{` and ends with `}`. Arrow refuses a line end inside a text, so a line end is always
between two records; if there are as many rows as lines, each line is one record. Where records begin with the
member that names their type, it is overwritten with blanks, so that Arrow need not read it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from omnigraph.formats.columns import table_schema
from omnigraph.formats.jsonl.columns import Doubts, as_mask, column_of, json_type, key_ids
from omnigraph.lang.schema.catalog import EntityType, NodeType

_FEW: Final = 32
_SPLIT: Final = 8
_ESCAPED_NAME: Final = r"\\u00[67]"
"""A small letter as an escape: a member may be named by one."""
_INTEGER_ZERO: Final = r"-0[ \t\r\n,\]}]"

Named = tuple[str, str]
"""A member that names a type, and the name."""


@dataclass(frozen=True, slots=True)
class Text:
    """Lines one after the other, each with its end."""

    content: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def part(self, first: int, stop: int) -> Text:
        """Some of the lines."""
        offsets = self.offsets[first : stop + 1]
        return Text(self.content[offsets[0] : offsets[-1]], offsets - offsets[0])

    def lines(self) -> pa.Array:
        """The lines as an array over the same bytes."""
        buffers = [None, pa.py_buffer(self.offsets), pa.py_buffer(self.content)]
        return pa.Array.from_buffers(pa.large_binary(), len(self), buffers)

    def first_has(self, member: bytes) -> bool:
        """Does the first line seem to have a member of that name?"""
        return b'"%b"' % member in self.content[: self.offsets[1]].tobytes()


@dataclass(frozen=True, slots=True)
class Parsed:
    """The rows of those lines that were read, and which they are."""

    rows: list[pa.Table]
    accepted: npt.NDArray[np.bool_]


class Form(Protocol):
    """How lines of one type are laid out: what Arrow has to expect, and how its columns become rows."""

    def rows(self, text: Text, table: pa.Table, doubts: Doubts) -> pa.Table:
        """The rows of a table; those that the strict reader has to read are added to the doubts."""


@dataclass(slots=True)
class _Form:
    """The schema of the records of a type for Arrow, with or without the members that may be missing."""

    entity: EntityType
    named: Named | None
    stored: pa.Schema = field(init=False)

    def __post_init__(self) -> None:
        self.stored = pa.schema([member.with_nullable(True) for member in table_schema(self.entity)])

    @property
    def needs_data(self) -> bool:
        """Must a line have `data`? Without it, a node whose type is overwritten with blanks has no member."""
        return isinstance(self.entity, NodeType) and self.named is None

    def options(self, *, with_id: bool, with_data: bool) -> pj.ParseOptions:
        """Arrow's options: it accepts these members only, with these types."""
        members = [] if isinstance(self.entity, NodeType) else [(name, pa.string()) for name in ("from", "to")]
        if self.named is not None:
            members.append((self.named[0], pa.string()))
        if with_data:
            inner = [("id", pa.string())] if with_id else []
            inner += [(prop.name, json_type(prop.type)) for prop in self.entity.properties.values()]
            members.append(("data", pa.struct(inner)))
        return pj.ParseOptions(explicit_schema=pa.schema(members), unexpected_field_behavior="error")

    def rows(self, text: Text, table: pa.Table, doubts: Doubts) -> pa.Table:
        """The rows of records."""
        return _rows(self, text, table, doubts)


def parse(entity: EntityType, text: Text, named: Named | None) -> Parsed:
    """The rows of all lines that are certainly right."""
    found = Parsed([], np.zeros(len(text), np.bool_))
    form = _Form(entity, named)
    narrow = {"with_id": text.first_has(b"id"), "with_data": form.needs_data or text.first_has(b"data")}
    if all(narrow.values()) or not _parse(form, text, form.options(**narrow), found, 0):
        _parse_parts(form, text, form.options(with_id=True, with_data=True), found, 0)
    return found


def parse_form(form: Form, text: Text, options: pj.ParseOptions) -> Parsed:
    """The rows of all lines of a form that are certainly right."""
    found = Parsed([], np.zeros(len(text), np.bool_))
    _parse_parts(form, text, options, found, 0)
    return found


def _parse_parts(form: Form, text: Text, options: pj.ParseOptions, found: Parsed, first: int) -> None:
    """Read lines; if that fails, read them in smaller parts, down to a few that are left to the strict reader."""
    if _parse(form, text, options, found, first) or len(text) <= _FEW:
        return
    cuts = np.linspace(0, len(text), _SPLIT + 1).astype(np.int64).tolist()
    for start, stop in pairwise(cuts):
        _parse_parts(form, text.part(start, stop), options, found, first + start)


def _parse(form: Form, text: Text, options: pj.ParseOptions, found: Parsed, first: int) -> bool:
    """Read lines in one go; False if they cannot be."""
    reading = pj.ReadOptions(use_threads=False, block_size=len(text.content) + 1)
    try:
        table = pj.read_json(pa.BufferReader(pa.py_buffer(text.content)), reading, options)
    except pa.ArrowInvalid:
        return False
    if table.num_rows != len(text):
        return False
    doubts = Doubts.none(len(text))
    rows = form.rows(text, table, doubts)
    if doubts.zeros.any():
        at = np.flatnonzero(doubts.zeros)
        doubts.rows[at] |= as_mask(pc.match_substring_regex(text.lines().take(pa.array(at)), _INTEGER_ZERO))
    sure = ~doubts.rows
    found.rows.append(rows if sure.all() else rows.filter(pa.array(sure)))
    found.accepted[first : first + len(text)] = sure
    return True


def _rows(form: _Form, text: Text, table: pa.Table, doubts: Doubts) -> pa.Table:
    entity = form.entity
    members: dict[str, pa.Array] = {name: table[name].combine_chunks() for name in table.column_names}
    if form.named is not None:
        member, name = form.named
        doubts.mark(pc.fill_null(pc.not_equal(members[member], name), True))
    data = members.pop("data", None)
    read: dict[str, pa.Array] = {}
    if data is not None:
        if data.null_count:
            if form.needs_data:
                doubts.mark(data.is_null())
            else:
                _doubt_mentions(text, data, "data", doubts)
        children = data.flatten() if data.null_count else [data.field(i) for i in range(data.type.num_fields)]
        read = {data.type.field(i).name: child for i, child in enumerate(children)}
    absent = pa.nulls(len(text))
    columns = _own_columns(text, read, members, doubts)
    for prop in entity.properties.values():
        values = read.get(prop.name, absent)
        columns[prop.name] = column_of(prop, values, form.stored.field(prop.name).type, doubts)
    if entity.key:
        ids = key_ids(entity, columns)
        if "id" in read:
            doubts.mark(pc.not_equal(columns["id"], ids))
        columns["id"] = ids
    return pa.Table.from_arrays([columns[name] for name in form.stored.names], schema=form.stored)


def _own_columns(
    text: Text, read: dict[str, pa.Array], members: dict[str, pa.Array], doubts: Doubts
) -> dict[str, pa.Array]:
    """The columns that are no properties: the id, and the ends of an edge."""
    columns: dict[str, Any] = {}
    ids = read.get("id")
    if ids is None:
        columns["id"] = pa.nulls(len(text), pa.string())
    else:
        columns["id"] = ids
        doubts.mark(pc.equal(ids, ""))
        if ids.null_count:
            _doubt_mentions(text, ids, "id", doubts)
    for member, column in (("from", "src"), ("to", "dst")):
        if member in members:
            columns[column] = members[member]
            if members[member].null_count:
                doubts.mark(members[member].is_null())
    return columns


def _doubt_mentions(text: Text, values: pa.Array, member: str, doubts: Doubts) -> None:
    """Doubt rows without a value whose line seems to have the member: it may be null, which is an error."""
    at = np.flatnonzero(as_mask(values.is_null()))
    lines = text.lines().take(pa.array(at))
    doubts.rows[at] |= as_mask(pc.match_substring_regex(lines, f'"{member}"|{_ESCAPED_NAME}'))
