"""What a query returns: a table that remembers which query, on which state of the graph."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any, Final, overload

import pyarrow as pa

from omnigraph.errors import MissingExtra
from omnigraph.read.result.cells import javascript_safe as javascript_safe
from omnigraph.read.result.cells import json_values, python_values
from omnigraph.read.result.display import aligned, html_table
from omnigraph.records import dataclass

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

BATCH_ROWS: Final = 16_384
"""How many rows are turned into Python values at a time, where not all are needed at once."""
_TEXT_ROWS: Final = 10
_HTML_ROWS: Final = 20
_TEXT_WIDTH: Final = 40
_HTML_WIDTH: Final = 200


@dataclass(frozen=True, slots=True)
class Target:
    """The state of the graph that a query read: the newest of a branch, or a snapshot."""

    branch: str | None
    snapshot: str | int | None

    def __str__(self) -> str:
        return f"branch {self.branch}" if self.snapshot is None else f"snapshot {self.snapshot}"

    def as_json(self) -> dict[str, Any]:
        return {"branch": self.branch} if self.snapshot is None else {"snapshot": self.snapshot}


@dataclass(frozen=True, eq=False)
class Result:
    """The rows of a query, in order. ``graph_commit_id`` names the commit whose state was read.

    Two columns may have the same name. Tables (Arrow, pandas) keep both; rows are dictionaries, in which the last
    one stays.
    """

    query_name: str
    target: Target
    graph_commit_id: str | None
    table: pa.Table

    @property
    def columns(self) -> list[str]:
        """The names of the columns, in the order of the query."""
        return list(self.table.column_names)

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """All rows as dictionaries of Python values."""
        return list(self)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The rows as dictionaries of Python values, without holding all of them in memory."""
        last = {name: index for index, name in enumerate(self.columns)}
        for part in self.parts():
            lists = [python_values(part.column(index)) for index in last.values()]
            for cells in zip(*lists, strict=True):
                yield dict(zip(last, cells, strict=True))

    @overload
    def __getitem__(self, key: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, key: slice) -> list[dict[str, Any]]: ...
    @overload
    def __getitem__(self, key: str) -> list[Any]: ...
    def __getitem__(self, key: int | slice | str) -> dict[str, Any] | list[dict[str, Any]] | list[Any]:
        """A row by its number, some rows by a slice, or all values of a column by its name."""
        if isinstance(key, slice):
            return self.rows[key]
        if isinstance(key, int):
            return self.rows[key]
        if key not in self.columns:
            raise KeyError(f"there is no column '{key}'; there are {', '.join(self.columns)}")
        last = len(self.columns) - 1 - self.columns[::-1].index(key)
        return python_values(self.table.column(last))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows for any library that takes Arrow streams: polars, pandas, DuckDB, pyarrow itself."""
        return self.table.__arrow_c_stream__(requested_schema)

    def parts(self) -> Iterator[pa.Table]:
        """The table in pieces of a size that can be converted in one go."""
        for start in range(0, len(self), BATCH_ROWS):
            yield self.table.slice(start, BATCH_ROWS)

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table, without a copy."""
        return self.table

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a pandas data frame. Integers and booleans keep their type where there are nulls."""
        pandas = _installed("pandas")
        nullable = {
            pa.bool_(): pandas.BooleanDtype(),
            pa.int32(): pandas.Int32Dtype(),
            pa.int64(): pandas.Int64Dtype(),
            pa.uint32(): pandas.UInt32Dtype(),
            pa.uint64(): pandas.UInt64Dtype(),
        }
        frame = self.table.to_pandas(types_mapper=nullable.get)
        for index, column in enumerate(self.table.columns):
            if pa.types.is_struct(column.type):
                frame.isetitem(index, pandas.Series(python_values(column), dtype=object))
        return frame

    def to_polars(self) -> pl.DataFrame:
        """The rows as a polars data frame. A repeated column name gets a number, since polars wants them apart."""
        frame: pl.DataFrame = _installed("polars").from_arrow(with_distinct_names(self.table))
        return frame

    def as_json(self) -> dict[str, Any]:
        """The result as a JSON object."""
        return {
            "query_name": self.query_name,
            "target": self.target.as_json(),
            "row_count": len(self),
            "columns": self.columns,
            "rows": self.json_rows(),
            "graph_commit_id": self.graph_commit_id,
        }

    def json_rows(self) -> list[dict[str, Any]]:
        """The rows as JSON objects, their names in alphabetical order."""
        return list(self.iter_json_rows())

    def iter_json_rows(self) -> Iterator[dict[str, Any]]:
        """The rows as JSON objects, without holding all of them in memory."""
        last = dict(sorted({name: index for index, name in enumerate(self.columns)}.items()))
        for part in self.parts():
            lists = [json_values(part.column(index)) for index in last.values()]
            for cells in zip(*lists, strict=True):
                yield dict(zip(last, cells, strict=True))

    def __repr__(self) -> str:
        lines = [f"<Result of {self.query_name} on {self.target}: {_counted(len(self))}>"]
        if len(self):
            lines += aligned(self.columns, self._first(_TEXT_ROWS), _TEXT_WIDTH)
        if len(self) > _TEXT_ROWS:
            lines.append(f"… and {len(self) - _TEXT_ROWS} more")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        shown = f", the first {_HTML_ROWS} shown" if len(self) > _HTML_ROWS else ""
        caption = f"{_counted(len(self))} from {self.target} via {self.query_name}{shown}"
        return html_table(self.columns, self._first(_HTML_ROWS), _HTML_WIDTH, caption)

    def _first(self, count: int) -> list[list[Any]]:
        return [json_values(column) for column in self.table.slice(0, count).columns]


def with_distinct_names(table: pa.Table) -> pa.Table:
    """The table with a number behind repeated column names, for formats that need distinct names."""
    names: list[str] = list(table.column_names)
    if len(set(names)) == len(names):
        return table
    distinct: dict[str, None] = {}
    for name in names:
        chosen, numbers = name, count(2)
        while chosen in distinct or (chosen != name and chosen in names):
            chosen = f"{name}_{next(numbers)}"
        distinct[chosen] = None
    return table.rename_columns(list(distinct))


def _counted(rows: int) -> str:
    return "1 row" if rows == 1 else f"{rows} rows"


def _installed(package: str) -> Any:
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError:
        raise MissingExtra(package, package, f"converting a result to {package}") from None
