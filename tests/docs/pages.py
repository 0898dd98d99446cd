"""The pages of the documentation as blocks, in the order in which a reader meets them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_FENCE = re.compile(r"^```(\S+)(?: (\w+))?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_STEP = re.compile(r"^\$ ([^\n]+(?:(?<=\\)\n[^\n]+)*)\n((?:(?!\$ )[^\n]*\n)*)", re.MULTILINE)
_ID = re.compile(r"\b[0-9A-HJKMNP-TV-Z]{26}\b")
_TIME = re.compile(r"\b20\d\d-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)?")
_ANYTHING = "…"


@dataclass(frozen=True, slots=True)
class Block:
    """A block of code, and the block of text behind it that shows what it prints."""

    language: str
    text: str
    line: int
    is_long: bool
    """Is it marked by a second word, as in "python long"? Then only `make long` runs it."""
    said: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """A line behind a prompt, and what a page shows under it; nothing, if it shows nothing."""

    command: str
    said: str


def blocks_of(page: Path) -> list[Block]:
    """All blocks of a page."""
    text = page.read_text(encoding="utf-8")
    fences = list(_FENCE.finditer(text))
    found = []
    for number, fence in enumerate(fences):
        language, mark, body = fence.groups()
        assert mark in (None, "long"), f"{page.name}: a block can be marked `long`, not `{mark}`"
        after = fences[number + 1] if number + 1 < len(fences) else None
        is_shown = after is not None and after[1] == "text" and text[fence.end() : after.start()] == "\n\n"
        said = after[3] if after is not None and is_shown else None
        found.append(Block(language, body, text.count("\n", 0, fence.start()) + 1, mark == "long", said))
    return found


def steps_of(block: Block) -> Iterator[Step]:
    """The steps of a block with prompts; every line of it belongs to one."""
    end = 0
    for step in _STEP.finditer(block.text):
        assert step.start() == end, f"line {block.line}: {block.text[end : step.start()]!r} belongs to no command"
        end = step.end()
        yield Step(step[1], step[2])
    assert end == len(block.text), f"line {block.line}: no command begins with a prompt"


def alike(said: str, printed: str, place: Path) -> bool:
    """Is this what the page says? Ids and times differ from run to run, paths are told without the folder in which
    the page runs, and a line `…` stands for any lines."""
    wanted, found = (_normal(text.replace(f"{place}/", "")) for text in (said, printed))
    parts = (re.escape(part) for part in re.split(rf"(?m)^{_ANYTHING}\n", wanted))
    return re.fullmatch("(?s:.*)".join(parts), found) is not None


def _normal(text: str) -> str:
    return _TIME.sub("TIME", _ID.sub("ID", text))
