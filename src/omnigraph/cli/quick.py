"""Options and arguments that take plain values as they are.

Typer checks every parameter of a command, given or not, by models of pydantic, which takes longer to import than a
small query takes to run. Most values need no model: none at all, a text, a file that is there, the name of a
choice. All others, and all mistakes, are left to Typer.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Any, Final, get_args

import typer
from typer.core import TyperArgument, TyperOption

_UNKNOWN: Final = object()


_WORDS: Final = {str: "TEXT", Path: "PATH", int: "NUMBER", float: "NUMBER"}


class _QuickOption(TyperOption):
    """An option that takes plain values as they are. Help says what a value is, and nothing of a flag."""

    def display_type_rich(self, ctx: Any) -> str | None:
        if self.is_flag:
            return None
        return _described(self) or super().display_type_rich(ctx=ctx)

    def process_value(self, ctx: Any, value: Any) -> Any:
        plain = _plain(self, value)
        if plain is not _UNKNOWN:
            return _used(self, ctx, plain)
        with _plainly_worded():
            return super().process_value(ctx, value)


class _QuickArgument(TyperArgument):
    """An argument that takes plain values as they are."""

    def display_type_rich(self, ctx: Any) -> str | None:
        return _described(self) or super().display_type_rich(ctx=ctx)

    def process_value(self, ctx: Any, value: Any) -> Any:
        plain = _plain(self, value)
        if plain is not _UNKNOWN:
            return _used(self, ctx, plain)
        with _plainly_worded():
            return super().process_value(ctx, value)


@contextmanager
def _plainly_worded() -> Iterator[None]:
    """Take out of the messages of Typer what only says which kind of exception it was."""
    try:
        yield
    except typer.BadParameter as error:
        error.message = error.message.removeprefix("Value error, ")
        raise


def _described(parameter: TyperOption | TyperArgument) -> str | None:
    """What a value of a parameter is, in a word for people; None if its own description says it."""
    kind: Any = parameter.type_descriptor.annotation
    item = get_args(kind)[0] if str(kind).startswith("list[") else kind
    is_described = parameter.metavar is not None and isinstance(parameter, TyperOption)
    if is_described or not isinstance(item, type) or item not in _WORDS:
        return None
    return f"{_WORDS[item]}{'' if item is kind else '…'}"


def take_plain_values(command: Any) -> None:
    """Let the parameters of a command, `--help` included, take plain values as they are."""
    for parameter in command.get_params(typer.Context(command)):
        if type(parameter) is TyperOption:
            parameter.__class__ = _QuickOption
        elif type(parameter) is TyperArgument:
            parameter.__class__ = _QuickArgument


def _used(parameter: TyperOption | TyperArgument, ctx: Any, value: Any) -> Any:
    return value if parameter.callback is None else parameter.callback(ctx, parameter, value)


def _plain(parameter: TyperOption | TyperArgument, value: Any) -> Any:
    """What the parameter makes of a value, if that takes no model."""
    described = parameter.type_descriptor
    info, kind = described.parameter_info, described.annotation
    if parameter.multiple or parameter.nargs != 1:
        return _UNKNOWN
    if value is None:
        return _UNKNOWN if parameter.required else None
    if info.parser is not None or not isinstance(kind, type):
        return _UNKNOWN
    if issubclass(kind, Enum):
        return _choice(kind, value)
    if kind is str and type(value) is str:
        return value
    if kind is Path and type(value) is str and info.path_type is None:
        return _file(info, value)
    return _UNKNOWN


def _choice(kind: type[Enum], value: Any) -> Any:
    try:
        return kind(value)
    except ValueError:
        return _UNKNOWN


def _file(info: Any, value: str) -> Any:
    """A file that is there, if the parameter names one that is to be read."""
    is_plain = (
        info.exists
        and info.file_okay
        and info.readable
        and not (info.writable or info.resolve_path or info.allow_dash)
    )
    return Path(value) if is_plain and Path(value).is_file() and os.access(value, os.R_OK) else _UNKNOWN
