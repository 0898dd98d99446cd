"""Python values in JSON and back, without loss: errors and results, and what their fields are made of.

Texts, numbers, lists and null are as JSON has them. Everything else is an object with the member `$`, which names
its type.
"""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, Final

from omnigraph import errors
from omnigraph.bulk.load.options import LoadResult
from omnigraph.errors import (
    ClusterProblem,
    Conflict,
    ConflictKind,
    Diagnostic,
    ErrorGroup,
    OmniError,
    RecordProblem,
    Violation,
)
from omnigraph.history.blame import Blame, PropertyBlame
from omnigraph.history.diff import Change, Op
from omnigraph.history.feed.blocks import ChangeBlock
from omnigraph.history.feed.pages import ChangePage, CommitChanges
from omnigraph.history.log import LogEntry
from omnigraph.history.merging.plans import MergeOutcome, MergePlan, MergeResult
from omnigraph.history.merging.sides import Decisions
from omnigraph.history.merging.undo import UndoResult
from omnigraph.history.schemas import SchemaVersion
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.identity import SchemaIR
from omnigraph.lang.schema.steps import MigrationPlan, Step
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.refs.tags import Tag
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.manifest.state import Commit, TablePin
from omnigraph.manifest.streams import Batch, StreamMark
from omnigraph.recovery.audit import Recovery
from omnigraph.storage.address import Address, Scheme
from omnigraph.write.evolution.apply import SchemaResult
from omnigraph.write.evolution.plan import SchemaPlan, TableWork
from omnigraph.write.mutations.requests import MutationResult

MEDIA_TYPE: Final = "application/vnd.omnigraph.values+json"
_TYPE: Final = "$"
_ERROR: Final = "error"
_KNOWN: Final = (
    Batch,
    Blame,
    Branch,
    Change,
    ChangeBlock,
    ChangePage,
    ClusterProblem,
    Commit,
    CommitChanges,
    Conflict,
    Decisions,
    Diagnostic,
    LoadResult,
    LogEntry,
    MergePlan,
    MergeResult,
    MigrationPlan,
    MutationResult,
    PropertyBlame,
    RecordProblem,
    ErrorGroup,
    Recovery,
    SchemaPlan,
    SchemaResult,
    SchemaVersion,
    Snapshot,
    Step,
    StreamMark,
    TablePin,
    TableWork,
    Tag,
    UndoResult,
    Violation,
)
_DATA: Final[Mapping[str, type[Any]]] = {kind.__name__: kind for kind in _KNOWN}
_FROM_TEXT: Final[Mapping[str, Callable[[str], Any]]] = {
    "date": dt.date.fromisoformat,
    "datetime": dt.datetime.fromisoformat,
    "bytes": base64.b64decode,
    "ConflictKind": ConflictKind,
    "MergeOutcome": MergeOutcome,
    "Op": Op,
    "Scheme": Scheme,
}


def encode_value(value: Any) -> Any:
    """A value as JSON has it; one of an unknown type is its text."""
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, Enum):
        return {_TYPE: type(value).__name__, "text": value.value}
    if isinstance(value, str | int):
        return value
    if isinstance(value, bytes):
        return {_TYPE: "bytes", "text": base64.b64encode(value).decode()}
    if isinstance(value, dt.date):
        return {_TYPE: type(value).__name__, "text": value.isoformat()}
    if isinstance(value, tuple):
        return {_TYPE: "tuple", "items": [encode_value(item) for item in value]}
    if isinstance(value, list):
        return [encode_value(item) for item in value]
    if isinstance(value, Mapping):
        return {_TYPE: "dict", "items": [[encode_value(k), encode_value(v)] for k, v in value.items()]}
    if isinstance(value, OmniError):
        return {
            _TYPE: _ERROR,
            "type": type(value).__name__,
            "arguments": [encode_value(each) for each in value.args],
            "fields": {name: encode_value(each) for name, each in _later_fields(value).items()},
        }
    if isinstance(value, SchemaIR | Catalog):
        ir = value.ir if isinstance(value, Catalog) else value
        return {_TYPE: type(value).__name__, "ir": ir.as_json()}
    if isinstance(value, Address):
        # The other fields are how this process reaches the store: keys and endpoints stay here.
        return {_TYPE: "Address", "scheme": value.scheme.value, "root": value.root}
    if is_dataclass(value) and type(value).__name__ in _DATA:
        held = {each.name: encode_value(getattr(value, each.name)) for each in fields(value)}
        return {_TYPE: type(value).__name__, "fields": held}
    return str(value)


def decode_value(stored: Any) -> Any:
    """The value that `encode_value` made JSON of; ValueError if the JSON is nothing of the kind."""
    if isinstance(stored, list):
        return [decode_value(item) for item in stored]
    if not isinstance(stored, dict):
        return stored
    try:
        kind = stored[_TYPE]
        if kind == "tuple":
            return tuple(decode_value(item) for item in stored["items"])
        if kind == "dict":
            return {decode_value(name): decode_value(item) for name, item in stored["items"]}
        if kind == _ERROR:
            return _error(stored["type"], stored["arguments"], stored.get("fields", {}))
        if kind == "SchemaIR":
            return SchemaIR.from_json(stored["ir"])
        if kind == "Catalog":
            return Catalog(SchemaIR.from_json(stored["ir"]))
        if kind == "Address":
            return Address(Scheme(stored["scheme"]), stored["root"])
        if kind in _FROM_TEXT:
            return _FROM_TEXT[kind](stored["text"])
        return _DATA[kind](**{name: decode_value(item) for name, item in stored["fields"].items()})
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not an encoded value: {error!r}") from error


def _later_fields(error: OmniError) -> dict[str, Any]:
    """The fields of an error that it got after it was made, such as a hint."""
    made = vars(type(error)(*error.args))
    return {name: each for name, each in vars(error).items() if name not in made or made[name] != each}


def _error(name: object, arguments: object, later: Mapping[str, Any]) -> OmniError:
    """An error from the name of its class, its arguments and later fields; ValueError if this release does not
    know it."""
    kind = getattr(errors, name, None) if isinstance(name, str) and name in errors.__all__ else None
    if not isinstance(kind, type) or not issubclass(kind, OmniError) or not isinstance(arguments, list):
        raise ValueError(f"{name!r:.60} is no error of this release")
    made = kind(*(decode_value(each) for each in arguments))
    for field, value in later.items():
        if field == "__notes__" or not field.startswith("_"):
            setattr(made, field, decode_value(value))
    return made
