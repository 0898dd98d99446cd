"""Comparing trees and comments: what must survive printing, parsing and formatting."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields, is_dataclass

from omnigraph.lang.diagnostics import Diagnostics
from omnigraph.lang.source import Source
from omnigraph.lang.tokens import lex


def essence(tree: object) -> object:
    """The part of a tree that counts, with the types of its values, so that 1, 1.0 and true differ."""
    if is_dataclass(tree):
        return type(tree).__name__, *(essence(getattr(tree, f.name)) for f in fields(tree) if f.compare)
    if isinstance(tree, tuple):
        return tuple(essence(item) for item in tree)
    return type(tree).__name__, tree


def comment_texts(text: str) -> Counter[str]:
    """The comments of a text and how often each occurs; blanks at the end of a line say nothing."""
    return Counter(
        c.text.rstrip() if c.text.startswith("//") else c.text for c in lex(Diagnostics(Source(text))).comments
    )
