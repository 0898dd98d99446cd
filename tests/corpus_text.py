"""How scenario files write things down: errors, catalogs, findings, rows and lists of tables as lines of text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from tests.corpus_format import Section

from omnigraph.errors import (
    ConstraintViolation,
    DataError,
    Diagnostic,
    KeyConflict,
    LanguageError,
    ParameterError,
    RecordError,
)
from omnigraph.lang.schema.shape import AnnotationShape, PropertyShape, Shape, TypeShape

_DIAGNOSTIC: Final = re.compile(r"(?P<code>[A-Z][A-Z0-9-]*) (?P<line>\d+):(?P<column>\d+)(?:\s+(?P<part>.*))?")
_PARAMETER: Final = re.compile(r"param (?P<name>\w+)(?:\s+(?P<part>.*))?")


def refusal_lines(error: DataError) -> list[str]:
    """A refused write as an `--- error` section would expect it."""
    lines: list[str]
    if isinstance(error, ConstraintViolation):
        lines = [f"violation {v.rule} {v.message}" for v in error.violations]
        more = error.total - len(lines)
    elif isinstance(error, RecordError):
        lines = [f"record {p.line} {p.message}" for p in error.problems]
        more = error.total - len(lines)
    else:
        lines, more = [f"{'conflict' if isinstance(error, KeyConflict) else 'refused'} {error}"], 0
    return [*lines, f"more {more}"] if more else lines


def matches_refusal(expected: Section, error: DataError) -> bool:
    """Does the section list exactly what the error says: the leading words as they are, and a part of the rest?"""
    wanted, actual = expected.lines, refusal_lines(error)
    return len(wanted) == len(actual) and all(map(_refuses, wanted, actual))


def _refuses(wanted: str, actual: str) -> bool:
    words = 2 if wanted.split()[0] in ("violation", "record", "more") else 1
    want, said = wanted.split(maxsplit=words), actual.split(maxsplit=words)
    return want[:words] == said[:words] and " ".join(want[words:]) in " ".join(said[words:])


def error_lines(error: LanguageError | ParameterError) -> list[str]:
    """An error as an `--- error` section would expect it."""
    if isinstance(error, ParameterError):
        return [f"param {name}  {reason}" for name, reason in error.problems.items()]
    return [
        f"{d.code} {d.line}:{d.column}  {d.message}" + (f"  [help: {d.help}]" if d.help else "")
        for d in error.diagnostics
    ]


def matches_error(expected: Section, error: LanguageError | ParameterError) -> bool:
    """Does the section list exactly the problems of the error, in their order?"""
    pattern = _PARAMETER if isinstance(error, ParameterError) else _DIAGNOSTIC
    wanted = [_read(pattern, expected, line) for line in expected.lines]
    if isinstance(error, ParameterError):
        fits = [
            want["name"] == name and _says(reason, want["part"])
            for want, (name, reason) in zip(wanted, error.problems.items(), strict=False)
        ]
        return len(wanted) == len(error.problems) and all(fits)
    fits = [_is(diagnostic, want) for diagnostic, want in zip(error.diagnostics, wanted, strict=False)]
    return len(wanted) == len(error.diagnostics) and all(fits)


def _is(diagnostic: Diagnostic, want: Mapping[str, str | None]) -> bool:
    place = (diagnostic.code, str(diagnostic.line), str(diagnostic.column))
    said = f"{diagnostic.headline}\n{diagnostic.help or ''}"
    return place == (want["code"], want["line"], want["column"]) and _says(said, want["part"])


def _says(text: str, part: str | None) -> bool:
    return (part or "").strip() in text


def _read(pattern: re.Pattern[str], section: Section, line: str) -> dict[str, str | None]:
    found = pattern.fullmatch(line.strip())
    if found is None:
        raise section.wrong(f"neither `CODE line:column  text` nor `param NAME  text`: {line}")
    return found.groupdict()


def catalog_lines(shape: Shape) -> list[str]:
    """What a schema declares, once everything implied is written out."""
    return [line for declared in shape.types for line in _type_lines(declared)]


def _type_lines(shape: TypeShape) -> Iterator[str]:
    head = f"{shape.kind} {shape.name}"
    if shape.kind == "edge":
        head += f": {shape.source} -> {shape.target}"
        if (shape.minimum, shape.maximum) != (0, None):
            head += f" @card({shape.minimum}..{'' if shape.maximum is None else shape.maximum})"
    if shape.implements:
        head += f" implements {', '.join(shape.implements)}"
    yield head + "".join(_annotation(a) for a in shape.annotations)
    for prop in shape.properties:
        yield f"  {_property(prop)}"
    for constraint in shape.constraints:
        yield f"  {constraint}"


def _property(prop: PropertyShape) -> str:
    line = f"{prop.name}: {prop.type}"
    if prop.embed is not None:
        model = f', model="{prop.embed.model}"' if prop.embed.model else ""
        line += f" @embed({prop.embed.source}{model})"
    line += "".join(_annotation(a) for a in prop.annotations)
    return line + (f"  (from {', '.join(prop.satisfies)})" if prop.injected else "")


def _annotation(annotation: AnnotationShape) -> str:
    if annotation.value is None:
        return f" @{annotation.name}"
    options = "".join(f', {key}="{value}"' for key, value in annotation.options)
    return f' @{annotation.name}("{annotation.value}"{options})'


def finding_lines(report: Mapping[str, Any]) -> list[str]:
    """A lint report as `severity code message`: errors and warnings of each query, then the findings.

    A warning of a query that is no finding has no code, which is written `-`.
    """
    errors = [d for result in report["results"] for d in result.get("diagnostics", ())]
    found = {f["message"] for f in report["findings"]}
    remarks = [w for result in report["results"] for w in result.get("warnings", ()) if w not in found]
    return [
        *(f"error {d['code']} {d['message']}" for d in errors),
        *(f"warning - {remark}" for remark in remarks),
        *(f"{f['severity']} {f['code']} {f['message']}" for f in report["findings"]),
    ]


def table_list(tables: Iterable[Mapping[str, str]]) -> str:
    """Tables as `edge:Knows, node:Person`, sorted."""
    return ", ".join(sorted(f"{table['kind']}:{table['type_name']}" for table in tables))


def row_lines(rows: Iterable[Mapping[str, Any]], ordered: bool) -> list[str]:
    """Rows as JSON with sorted fields; rows whose order does not matter are sorted too."""
    lines = [json.dumps(row, sort_keys=True, ensure_ascii=False) for row in rows]
    return lines if ordered else sorted(lines)
