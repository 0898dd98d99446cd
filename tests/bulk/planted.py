"""An input of many records in several files, in which errors can be planted and found again."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from tests.bulk.loading import edge, node

SCHEMA: Final = """
node Person { name: String @key  mail: String? @unique  age: I32?  mood: enum(happy, sad)?  @range(age, 0..150) }
node Base { code: String @key }
edge Knows: Person -> Person { since: Date? }
edge Leads: Person -> Base @card(0..1)
"""
PLAIN, CRLF, UNENDED, GZIP, ZSTD = "a.jsonl", "b.jsonl", "c.jsonl", "d.jsonl.gz", "e.jsonl.zst"
SPARE: Final = "// room"
FILES: Final = (PLAIN, CRLF, UNENDED, GZIP, ZSTD)
PEOPLE_PER_FILE: Final = 1500
EDGES_PER_FILE: Final = 2500
BASE: Final = tuple(node("Person", name=f"old{index}", mail=f"old{index}@x") for index in range(10))


def person(file: str, index: int) -> str:
    """The name of one of a file's people; the letters take two, three and four bytes."""
    return f"{file[0]}{index}-é€😀"


@dataclass
class Field:
    """All lines of all files, by file and line number. Every hundredth line is a comment: room to plant."""

    lines: dict[tuple[str, int], bytes] = field(default_factory=dict)
    planted: set[tuple[str, int]] = field(default_factory=set)

    def sow(self, file: str, number: int, line: Mapping[str, Any] | str | bytes) -> None:
        """Put a good record in place of a comment."""
        assert self.lines[file, number] == _line(SPARE), number
        self.lines[file, number] = _line(line)

    def plant(self, file: str, number: int, line: Mapping[str, Any] | str | bytes) -> None:
        """Put a bad record in place of a comment."""
        self.sow(file, number, line)
        self.planted.add((file, number))

    def write(self, folder: Path) -> Path:
        """Write every file in its own way."""
        folder.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            numbers = sorted(number for file, number in self.lines if file == name)
            end = b"\r\n" if name == CRLF else b"\n"
            content = end.join(self.lines[name, number] for number in numbers) + (b"" if name == UNENDED else end)
            if name == GZIP:
                content = gzip.compress(content, 1)
            elif name == ZSTD:
                content = pa.compress(content, codec="zstd", asbytes=True)
            (folder / name).write_bytes(content)
        return folder

    def records(self) -> list[dict[str, Any]]:
        """The records of all lines that nothing was planted in, in order."""
        kept = sorted(self.lines.keys() - self.planted)
        texts = (self.lines[place].decode() for place in kept)
        return [json.loads(text) for text in texts if text and not text.startswith("//")]


def fresh_field() -> Field:
    """Twenty thousand good records: people, whom they know, and two bases."""
    made = Field()
    for name in FILES:
        others = [person(other, index) for other in FILES for index in range(0, PEOPLE_PER_FILE, 7)]
        lines: list[Mapping[str, Any] | str] = [
            node("Person", name=person(name, i), mail=f"{name}{i}@x" if i % 3 else None, age=i % 100, mood="happy")
            for i in range(PEOPLE_PER_FILE)
        ]
        lines += [
            edge("Knows", person(name, i % PEOPLE_PER_FILE), others[i % len(others)])
            for i in range(EDGES_PER_FILE)
        ]
        lines.append(node("Base", code=f"base {name}"))
        for index, line in enumerate(lines):
            made.lines[name, 1 + index + index // 99] = _line(line)
        for number in range(100, len(lines), 100):
            made.lines[name, number] = _line(SPARE)
    return made


def _line(line: Mapping[str, Any] | str | bytes) -> bytes:
    if isinstance(line, bytes):
        return line
    return (line if isinstance(line, str) else json.dumps(line, ensure_ascii=False)).encode()
