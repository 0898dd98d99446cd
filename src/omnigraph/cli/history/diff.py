"""`omnigraph diff`: what changed between two states of a graph."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.cli.output import Json, print_json, print_table, print_text, reports_errors, styled
from omnigraph.cli.stores import Store, open_graph, parse_at

if TYPE_CHECKING:
    from omnigraph.history.diff import Change, Diff

_MARKS = {"insert": ("+", "green"), "update": ("~", "yellow"), "delete": ("-", "red")}
Kinds = Annotated[list[str] | None, typer.Option("--kind", help="node or edge; can be repeated.")]
Types = Annotated[list[str] | None, typer.Option("--type", help="A type; can be repeated.")]
Ops = Annotated[list[str] | None, typer.Option("--op", help="insert, update or delete; can be repeated.")]


@reports_errors
def diff(
    before: Annotated[
        str, typer.Argument(help="The older state: a branch, a commit id, a tag or a manifest version.")
    ],
    after: Annotated[str, typer.Argument(help="The newer state.")] = "main",
    store: Store = None,
    stat: Annotated[bool, typer.Option("--stat", help="Only how many entities changed, by type.")] = False,
    kinds: Kinds = None,
    types: Types = None,
    ops: Ops = None,
    lines: Annotated[bool, typer.Option("--jsonl", help="Print one JSON object per change.")] = False,
    as_json: Json = False,
) -> None:
    """Show what changed from one state to another. Only what differs is read."""
    graph = open_graph(store, read_only=True)
    options: dict[str, Any] = {"kinds": kinds or None, "types": types or None, "ops": ops or None}
    found = graph.diff(parse_at(before) or before, parse_at(after) or after, **options)
    if as_json:
        print_json(found.as_json() if not stat else {"stat": found.stat})
    elif lines:
        for change in found:
            sys.stdout.write(json.dumps(change.as_json(), ensure_ascii=False) + "\n")
    elif stat:
        print_stat(found.stat)
    else:
        _print_changes(found)


def print_stat(stat: dict[str, dict[str, int]]) -> None:
    """How many entities changed, by table."""
    rows = [(key, *(str(counts[op]) for op in _MARKS)) for key, counts in stat.items()]
    print_table(("table", *_MARKS), rows)


def _print_changes(found: Diff) -> None:
    for change in found:
        print_change(change)
    total = found.stat["total"]
    print_text(", ".join(f"{count} {op}" for op, count in total.items()))


def print_change(change: Change) -> None:
    """One change on a line."""
    mark, style = _MARKS[change.op.value]
    print_text(styled(f"{mark} {change.table_key} {change.id}", style), _changed(change))


def _changed(change: Change) -> str:
    """The properties of an update, before and after, on one line."""
    if not change.changed or change.before is None or change.after is None:
        return ""
    pairs = (f"{name}: {change.before[name]!r} → {change.after[name]!r}" for name in change.changed)
    return "  " + ", ".join(pairs)
