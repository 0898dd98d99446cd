"""Records as rows of text, as Kafka and text files have them: one record of any type per row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from omnigraph.bulk.load.staging.stager import BlockReader
from omnigraph.errors import SourceUnusable
from omnigraph.formats.jsonl.blocks import Block, Unreadable, read_block
from omnigraph.lang.schema.catalog import Catalog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

VALUE: Final = "value"
_BLANK: Final = b""


@dataclass(frozen=True, slots=True)
class RecordFrame:
    """A DataFrame whose column `value` has a JSON record per row, each with its own type."""

    frame: DataFrame
    title: str

    @property
    def name(self) -> str:
        return self.title

    @property
    def content(self) -> str:
        return "records"

    def check(self) -> None:
        """Refuse a DataFrame without the column."""
        check_record_columns(self.frame.dtypes, self.title)

    def reader(self, catalog: Catalog) -> BlockReader:
        return partial(read_values, catalog)


def check_record_columns(types: Sequence[tuple[str, str]], source: str) -> None:
    """Refuse rows without a column of records. Other columns, such as a topic or an offset, are not read."""
    kind = dict(types).get(VALUE)
    if kind not in ("string", "binary"):
        found = ", ".join(f"{name} {own}" for name, own in types)
        raise SourceUnusable(source, f"records come in a column '{VALUE}' of strings or bytes; there is {found}")


def read_values(catalog: Catalog, batch: pa.RecordBatch) -> Block:
    """The records of a batch, read as strictly as the lines of a file; line numbers are row numbers, from 1."""
    texts: list[bytes] = []
    bad: list[Unreadable] = []
    for number, value in enumerate(batch.column(VALUE).to_pylist(), 1):
        text, reason = _line(value)
        texts.append(text)
        if reason is not None:
            bad.append(Unreadable(number, 1, reason))
    block = read_block(b"\n".join(texts), catalog)
    unreadable = sorted([*block.unreadable, *bad], key=lambda found: found.line)
    return replace(block, unreadable=unreadable, lines=batch.num_rows)


def _line(value: Any) -> tuple[bytes, str | None]:
    """A value as a line of a file, or why it is none."""
    if value is None:
        return _BLANK, "there is no record, only null"
    text = (value if isinstance(value, bytes) else value.encode(errors="surrogatepass")).rstrip(b"\r\n")
    if b"\n" in text:
        return _BLANK, "a record is written on one line; this one has a line break"
    return text, None
