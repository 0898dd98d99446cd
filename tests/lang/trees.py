"""Comparing trees and comments: what must survive printing, parsing and formatting."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields, is_dataclass
from types import ModuleType

from omnigraph.lang.diagnostics import Diagnostics
from omnigraph.lang.source import Source, Span
from omnigraph.lang.tokens import lex


def essence(tree: object) -> object:
    """The part of a tree that counts, with the types of its values, so that 1, 1.0 and true differ."""
    if is_dataclass(tree):
        return type(tree).__name__, *(essence(getattr(tree, f.name)) for f in fields(tree) if f.compare)
    if isinstance(tree, tuple):
        return tuple(essence(item) for item in tree)
    return type(tree).__name__, tree


def kinds_in(tree: object) -> set[type]:
    """The classes of all nodes of a tree."""
    if is_dataclass(tree):
        return {type(tree)}.union(*(kinds_in(getattr(tree, f.name)) for f in fields(tree)))
    if isinstance(tree, tuple) and not isinstance(tree, Span):
        return set().union(*(kinds_in(item) for item in tree))
    return set()


def kinds_of(module: ModuleType) -> set[type]:
    """The classes of nodes that a module defines."""
    return {
        kind
        for kind in vars(module).values()
        if isinstance(kind, type) and is_dataclass(kind) and kind.__module__ == module.__name__
    }


def comment_texts(text: str) -> Counter[str]:
    """The comments of a text and how often each occurs; blanks at the end of a line say nothing."""
    return Counter(
        c.text.rstrip() if c.text.startswith("//") else c.text for c in lex(Diagnostics(Source(text))).comments
    )
