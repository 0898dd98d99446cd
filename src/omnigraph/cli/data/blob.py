"""`omnigraph blob`: the bytes of one property of one node or edge."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.output import Json, lost_race, print_json, print_table, print_text, reports_errors, styled
from omnigraph.cli.stores import Actor, At, Store, open_graph, parse_state
from omnigraph.errors import BlobChanged, PreconditionFailed, RequestError

if TYPE_CHECKING:
    from typing import BinaryIO

    from omnigraph.read.blobs import Blob

app = typer.Typer(help="Read and write the bytes of blobs.", no_args_is_help=True)

TypeName = Annotated[str, typer.Argument(metavar="TYPE", help="A node or edge type, such as Document.")]
EntityId = Annotated[str, typer.Argument(metavar="ID", help="Its id: for a type with a key, the key's value.")]
Property = Annotated[str, typer.Argument(metavar="PROPERTY", help="The property that is a Blob.")]
Branch = Annotated[
    str | None, typer.Option("--branch", help="The branch to read. Default: main.", show_default=False)
]
WrittenBranch = Annotated[str, typer.Option("--branch", help="The branch to write.")]


@app.command()
@reports_errors
def get(
    type_name: TypeName,
    entity_id: EntityId,
    name: Property,
    offset: Annotated[int, typer.Option("--offset", min=0, help="The first byte.")] = 0,
    length: Annotated[
        int | None,
        typer.Option("--length", min=1, help="How many bytes. Default: all.", show_default=False),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="A file for the bytes. Default: standard output.")
    ] = None,
    store: Store = None,
    branch: Branch = None,
    at: At = None,
) -> None:
    """Write the bytes of a blob, or a part of them, to a file or to standard output."""
    state = parse_state(at, branch)
    blob = open_graph(store, read_only=True).blob(type_name, entity_id, name, branch=branch, at=state)
    if out is None:
        _copy(blob, offset, length, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    try:
        with out.open("wb") as file:
            _copy(blob, offset, length, file)
    except OSError as error:
        raise RequestError(f"the file {out} cannot be written: {error.strerror or error}") from None


def _copy(blob: Blob, offset: int, length: int | None, target: BinaryIO) -> None:
    from omnigraph.read.blobs import PIECE

    end = blob.size if length is None else min(blob.size, offset + length)
    target.writelines(blob.read_range(start, min(PIECE, end - start)) for start in range(offset, end, PIECE))


@app.command()
@reports_errors
def stat(
    type_name: TypeName,
    entity_id: EntityId,
    name: Property,
    store: Store = None,
    branch: Branch = None,
    at: At = None,
    as_json: Json = False,
) -> None:
    """Print the size and the ETag of a blob."""
    state = parse_state(at, branch)
    found = open_graph(store, read_only=True).blob(type_name, entity_id, name, branch=branch, at=state).as_json()
    if as_json:
        print_json(found)
    else:
        print_table(("property", "value"), [(key, str(value)) for key, value in found.items()])


@app.command()
@reports_errors
def put(
    type_name: TypeName,
    entity_id: EntityId,
    name: Property,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="The file with the bytes. Default: standard input.")
    ] = None,
    null: Annotated[bool, typer.Option("--null", help="Write no bytes, but null.")] = False,
    if_match: Annotated[
        str | None, typer.Option("--if-match", help="Only if the blob has this ETag; else exit code 4.")
    ] = None,
    if_commit: Annotated[
        str | None, typer.Option("--if-commit", help="Only if the branch is at this commit; else exit code 4.")
    ] = None,
    message: Annotated[str | None, typer.Option("--message", "-m", help="Kept with the commit.")] = None,
    store: Store = None,
    branch: WrittenBranch = "main",
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Give a blob the bytes of a file, or of standard input, as one commit."""
    if null and file is not None:
        raise typer.BadParameter("give --file or --null, not both")
    data = None if null else file if file is not None else sys.stdin.buffer.read()
    graph = open_graph(store, read_only=False, actor=actor)
    try:
        done = graph.put_blob(
            type_name,
            entity_id,
            name,
            data,
            branch=branch,
            message=message,
            if_match=if_match,
            if_commit=if_commit,
        )
    except (BlobChanged, PreconditionFailed) as error:
        raise lost_race(error, as_json=as_json) from None
    if as_json:
        print_json(done.as_json())
    elif done.commit is not None:
        shown = f"{name} of {type_name} {entity_id} on {done.branch} as {done.commit.graph_commit_id}"
        print_text(styled("committed ", "green"), shown)
