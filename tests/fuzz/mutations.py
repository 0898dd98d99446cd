"""Changing texts at random: bits, bytes, tokens, and pieces of other texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random
from typing import Final

MAX_BYTES: Final = 20_000

DICTIONARY: Final = [
    token.encode()
    for token in re.findall(
        r"\S+",
        """
        { } ( ) [ ] : , . @ ? < > = - -> .. >= <= != // /* */ " ' # $ $_ $x $p.name \\ \\n 0 1 -1 007 1.5 1..2
        9223372036854775807 9223372036854775808 99999999999999999999 0.0000001 true false null
        interface node edge implements enum(a,b-c,1) Vector(3) [String] String Blob Bool I32 U64 F32 Date DateTime
        @key @unique @index @key(name) @unique(src,dst) @range(age,0..) @check(name,"^a") @card(0..1) @embed(name)
        @description("x") @instruction("x") @rename_from("x") query match return distinct order limit offset
        not optional is in and or as asc desc contains starts_with insert update delete set where now() date(
        datetime( count(distinct sum( avg( min( max( search( fuzzy( match_text( bm25( nearest( rrf( {1,3} {2,} <e>
        é 日本 🦊 \u2028 \ufeff \x00
        """,
    )
]

Mutation = Callable[[bytes, Sequence[bytes], Random], bytes]


def mutate(data: bytes, others: Sequence[bytes], random: Random) -> bytes:
    """A text changed in one place or several."""
    for _ in range(random.choice([1, 1, 1, 2, 2, 3, 6])):
        data = random.choice(_MUTATIONS)(data, others, random)
    return data[:MAX_BYTES]


def _stretch(data: bytes, random: Random, longest: int = 40) -> tuple[int, int]:
    start = random.randint(0, len(data))
    return start, min(len(data), start + random.randint(1, longest))


def _flip(data: bytes, others: Sequence[bytes], random: Random) -> bytes:
    if not data:
        return data
    at = random.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << random.choice([0, 1, 2, 3, 4, 5, 6, 6, 7]))]) + data[at + 1 :]


def _delete(data: bytes, others: Sequence[bytes], random: Random) -> bytes:
    start, end = _stretch(data, random)
    return data[:start] + data[end:]


def _duplicate(data: bytes, others: Sequence[bytes], random: Random) -> bytes:
    start, end = _stretch(data, random, 200)
    return data[:end] + data[start:end] * random.choice([1, 1, 2, 50]) + data[end:]


def _insert_token(data: bytes, others: Sequence[bytes], random: Random) -> bytes:
    at = random.randint(0, len(data))
    space = random.choice([b"", b" ", b"\n"])
    token: bytes = random.choice(DICTIONARY)
    return data[:at] + space + token + space + data[at:]


def _insert_bytes(data: bytes, others: Sequence[bytes], random: Random) -> bytes:
    at = random.randint(0, len(data))
    largest = random.choice([127, 127, 127, 255])
    return data[:at] + bytes(random.randint(0, largest) for _ in range(random.randint(1, 4))) + data[at:]


def _splice(data: bytes, others: Sequence[bytes], random: Random) -> bytes:
    other = random.choice(others)
    start, end = _stretch(other, random, 300)
    at, gap = _stretch(data, random)
    return data[:at] + other[start:end] + data[random.choice([at, gap]) :]


_TOKEN: Final = re.compile(rb'"[^"]*"|\w+|\s+|.', re.DOTALL)


def _swap_tokens(data: bytes, others: Sequence[bytes], random: Random) -> bytes:
    tokens = _TOKEN.findall(data)
    if len(tokens) > 1:
        left, right = random.randrange(len(tokens)), random.randrange(len(tokens))
        tokens[left], tokens[right] = tokens[right], tokens[left]
    return b"".join(tokens)


def _replace_token(data: bytes, others: Sequence[bytes], random: Random) -> bytes:
    tokens = _TOKEN.findall(data)
    if tokens:
        tokens[random.randrange(len(tokens))] = random.choice([random.choice(tokens), random.choice(DICTIONARY)])
    return b"".join(tokens)


_MUTATIONS: Final[Sequence[Mutation]] = [
    _flip,
    _delete,
    _duplicate,
    _insert_token,
    _insert_bytes,
    _splice,
    _swap_tokens,
    _replace_token,
]
