"""`omnigraph entity`: one node or edge by its type and id."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.cli.output import Json, print_json, print_table, reports_errors
from omnigraph.cli.stores import At, Store, open_graph, parse_state

if TYPE_CHECKING:
    from collections.abc import Mapping


@reports_errors
def entity(
    type_name: Annotated[str, typer.Argument(metavar="TYPE", help="A node or edge type, such as Person.")],
    entity_id: Annotated[
        str, typer.Argument(metavar="ID", help="Its id: for a type with a key, the key's value.")
    ],
    store: Store = None,
    branch: Annotated[
        str | None, typer.Option("--branch", help="The branch to read. Default: main.", show_default=False)
    ] = None,
    at: At = None,
    as_json: Json = False,
) -> None:
    """Print all properties of one node or edge."""
    state = parse_state(at, branch)
    graph = open_graph(store, read_only=True)
    found = graph.entity(type_name, entity_id, branch=branch, at=state)
    if found is None:
        from omnigraph.errors import RequestError

        raise RequestError(f"there is no {type_name} with id '{entity_id}'")
    shown = _json_values(found)
    if as_json:
        print_json({"type": type_name, **shown})
        return
    print_table(("property", "value"), [(name, _cell(value)) for name, value in shown.items()])


def _json_values(found: Mapping[str, Any]) -> dict[str, Any]:
    """The properties as JSON writes them: times as text, bytes as `base64:…`."""
    from omnigraph.read.result.cells import json_value

    return {name: json_value(value) for name, value in found.items()}


def _cell(value: Any) -> str:
    from omnigraph.read.result.display import cell_text

    return cell_text(value)
