"""How files of one type are laid out: which column becomes which property, and how cells of CSV are written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from omnigraph.errors import RequestError, SourceUnusable
from omnigraph.lang.diagnostics import nearest_name
from omnigraph.lang.schema.catalog import EdgeType, EntityType, NodeType

DELIMITERS: Final = ("\t", ";", "|", ",")
"""What is between the cells of most files."""
_ENDS: Final = {"from": "src", "to": "dst"}
_NAME_ENDS: Final = "name those with the ends, TYPE=PATH:from=COLUMN,to=COLUMN or Source(…, from_=…, to=…)"
_NAME_COLUMNS: Final = "name those to read, TYPE=PATH:PROPERTY=COLUMN or Source(…, columns=…)"


@dataclass(frozen=True, slots=True)
class Dialect:
    """How the cells of a CSV file are written. ``names`` are its columns if it has no header."""

    delimiter: str = ","
    quote: str = '"'
    nulls: tuple[str, ...] = ("",)
    list_separator: str = ";"
    names: tuple[str, ...] | None = None


PLAIN: Final = Dialect()


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a table and the columns of the source that they are read from.

    If a layout ``is_all``, columns that it does not name are read by their own names, and all have to fit.
    """

    table_key: str
    chosen: tuple[tuple[str, str], ...] = ()
    is_all: bool = True

    def require_needed(self, entity: EntityType, source: str, known: Iterable[str] | None = None) -> None:
        """Refuse rows without the ends of edges, a key or a value that every row needs."""
        have = {name for name, _ in self.chosen} if known is None else set(known)
        if isinstance(entity, EdgeType) and not {"src", "dst"} <= have:
            raise _refusal(source, f"{_no_ends(entity)}; {_NAME_ENDS}")
        keys = entity.key if isinstance(entity, NodeType) else ()
        needed = [prop.name for prop in entity.required if prop.embed is None]
        for name in dict.fromkeys((*keys, *needed)):
            if name not in have:
                what = "its key" if name in keys else "which is never null"
                raise _refusal(source, f"{entity.name} needs '{name}', {what}, and no column gives it")

    def columns(self, entity: EntityType, names: Sequence[str], source: str) -> Mapping[str, str]:
        """The column of the source for each column of the table that it has, by the names it has.

        SourceUnusable names a column that is missing, or one that is no property, with the nearest name.
        """
        if len(set(names)) < len(names):
            raise SourceUnusable(source, f"a column is there twice: {', '.join(names)}")
        found = dict(self.chosen)
        for name, column in found.items():
            if column not in names:
                raise SourceUnusable(source, f"it has no column '{column}' for {name}{_nearest(column, names)}")
        if self.is_all:
            used = set(found.values())
            if isinstance(entity, EdgeType) and not {"src", "dst"} <= {*found, *(_ENDS.get(n, n) for n in names)}:
                raise SourceUnusable(source, f"{_no_ends(entity)}; it has {', '.join(names)}: {_NAME_ENDS}")
            for column in names:
                if column in used:
                    continue
                own = _ENDS.get(column, column) if isinstance(entity, EdgeType) else column
                if own in found:
                    raise SourceUnusable(source, f"a column is there twice: {', '.join(names)}")
                if own not in entity.columns:
                    raise SourceUnusable(source, _unknown(entity, column))
                found[own] = column
        self.require_needed(entity, source, found)
        return found

    def members(self, entity: EntityType, names: Sequence[str]) -> Mapping[str, str]:
        """The member of a JSON object for each column of the table, by the members of the first object.

        Members may be missing, so only the names of the ends are told by the first object.
        """
        found = dict(self.chosen)
        if self.is_all:
            ends = {column: member for member, column in _ENDS.items() if member in names}
            own = {column: ends.get(column, column) for column in entity.columns}
            found |= {column: member for column, member in own.items() if column not in found}
        return found


def _unknown(entity: EntityType, column: str) -> str:
    known = ", ".join(entity.columns)
    hint = _nearest(column, entity.columns) or f"; {_NAME_COLUMNS}"
    called = f"property '{column}'" if column else "property for a column without a name"
    return f"{entity.name} has no {called}; its columns are {known}{hint}"


def _no_ends(entity: EdgeType) -> str:
    return f"rows of edge {entity.name} need the columns src and dst (or from and to)"


def _nearest(name: str, known: Iterable[str]) -> str:
    close = nearest_name(name, sorted(known))
    return f"; did you mean '{close}'?" if close is not None else ""


def _refusal(source: str, reason: str) -> RequestError | SourceUnusable:
    return RequestError(reason) if source == "columns" else SourceUnusable(source, reason)
