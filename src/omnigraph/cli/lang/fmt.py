"""`omnigraph fmt`: one layout for schemas and queries."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from omnigraph.cli.output import Json, print_error, print_json, print_text, reports_errors, styled
from omnigraph.errors import LanguageError


class Language(StrEnum):
    """The two languages, by file extension."""

    SCHEMA = "pg"
    QUERY = "gq"


@dataclass(frozen=True, slots=True)
class Formatted:
    """What became of one file."""

    path: Path
    changed: bool = False
    error: LanguageError | None = None

    def as_json(self) -> dict[str, Any]:
        status = "error" if self.error else "changed" if self.changed else "unchanged"
        return {"path": str(self.path), "status": status} | (self.error.as_json() if self.error else {})


@reports_errors
def fmt(
    files: Annotated[list[str], typer.Argument(help="Files or directories; `-` reads standard input.")],
    check: Annotated[bool, typer.Option("--check", help="Change nothing; exit 1 if a file would change.")] = False,
    language: Annotated[
        Language | None, typer.Option("--language", help="The language of standard input.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Rewrite schemas and queries in the standard layout, in place. Comments are kept."""
    if files == ["-"]:
        _format_stdin(language)
        return
    results = [_format_file(path, check) for path in _expand(files)]
    changed = sum(result.changed for result in results)
    failed = any(result.error for result in results)
    if as_json:
        print_json({"checked_only": check, "changed": changed, "files": [r.as_json() for r in results]})
    else:
        _print_results(results, check)
    if failed or (check and changed):
        raise typer.Exit(1)


def _format_stdin(language: Language | None) -> None:
    if language is None:
        raise typer.BadParameter("standard input needs `--language pg` or `--language gq`")
    from omnigraph.lang.source import decode

    source = decode(sys.stdin.buffer.read(), "<stdin>")
    sys.stdout.write(_formatted(source.text, source.name, language))


def _expand(names: list[str]) -> Iterator[Path]:
    """The files to format: those named, and those with our endings in the directories named."""
    endings = tuple(f".{language.value}" for language in Language)
    for name in names:
        path = Path(name)
        if path.is_dir():
            yield from sorted(p for p in path.rglob("*") if p.suffix in endings and p.is_file())
        elif not path.is_file():
            raise typer.BadParameter(f"{name} is not a file or a directory")
        elif path.suffix not in endings:
            raise typer.BadParameter(f"{name} ends neither in .pg nor in .gq")
        else:
            yield path


def _format_file(path: Path, check: bool) -> Formatted:
    """Format one file; a file that does not parse is left alone and does not stop the others."""
    from omnigraph.cli.sources import read_source

    try:
        source = read_source(path)
        formatted = _formatted(source.text, source.name, Language(path.suffix[1:]))
    except LanguageError as error:
        return Formatted(path, error=error)
    if formatted == source.text:
        return Formatted(path)
    if not check:
        _replace(path, formatted)
    return Formatted(path, changed=True)


def _replace(path: Path, text: str) -> None:
    """Put a new text in a file's place, so that a crash leaves the old or the new one."""
    draft = path.with_name(f".{path.name}.formatting")
    draft.write_text(text, encoding="utf-8", newline="")
    shutil.copymode(path, draft)
    draft.replace(path)


def _formatted(text: str, name: str, language: Language) -> str:
    if language is Language.SCHEMA:
        from omnigraph.lang.schema.format import format_schema

        return format_schema(text, name)
    from omnigraph.lang.query.format import format_queries

    return format_queries(text, name)


def _print_results(results: list[Formatted], check: bool) -> None:
    for result in results:
        if result.error is not None:
            print_error(result.error)
        elif result.changed:
            print_text(styled("would change " if check else "changed ", "yellow"), str(result.path))
    changed = sum(result.changed for result in results)
    files = "file" if len(results) == 1 else "files"
    print_text(f"{changed} of {len(results)} {files} {'would change' if check else 'changed'}")
