"""A schema as text, from its shape: for schemas that no author wrote, because two were put together."""

from __future__ import annotations

import json
from collections.abc import Iterator

from omnigraph.lang.schema.shape import AnnotationShape, PropertyShape, Shape, TypeShape


def render(shape: Shape) -> str:
    """The text of a schema with this shape, which compiles to the same shape."""
    return "\n".join("\n".join(_type_lines(one)) + "\n" for one in shape.types)


def _type_lines(shape: TypeShape) -> Iterator[str]:
    head = f"{shape.kind} {shape.name}"
    if shape.kind == "edge":
        head += f": {shape.source} -> {shape.target}"
        if shape.minimum or shape.maximum is not None:
            head += f" @card({shape.minimum}..{'' if shape.maximum is None else shape.maximum})"
    if shape.implements:
        head += f" implements {', '.join(shape.implements)}"
    head += "".join(f" {_annotation(one)}" for one in shape.annotations)
    body = [_property(prop) for prop in shape.properties if not prop.injected]
    inherited = {prop.name for prop in shape.properties if prop.injected}
    body += [
        str(constraint)
        for constraint in shape.constraints
        if not (inherited and set(constraint.columns) <= inherited)
    ]
    if not body:
        yield head + ("" if shape.kind == "edge" else " {}")
        return
    yield head + " {"
    yield from (f"    {line}" for line in body)
    yield "}"


def _property(prop: PropertyShape) -> str:
    text = f"{prop.name}: {prop.type.spell()}"
    if prop.embed is not None:
        model = "" if prop.embed.model is None else f", model={_quoted(prop.embed.model)}"
        text += f" @embed({_quoted(prop.embed.source)}{model})"
    return text + "".join(f" {_annotation(one)}" for one in prop.annotations)


def _annotation(shape: AnnotationShape) -> str:
    arguments = [] if shape.value is None else [_quoted(shape.value)]
    arguments += [f"{name}={_quoted(value)}" for name, value in shape.options]
    return f"@{shape.name}({', '.join(arguments)})" if arguments else f"@{shape.name}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
