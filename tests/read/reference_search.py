"""Searching and ranking in the reference interpreter: words, scores, distances and fused ranks by formula."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache

from omnigraph.read.text import analysis
from omnigraph.read.text.analysis import Word

_K1, _B = 1.2, 0.75

Embed = Callable[[str, int], Sequence[float]]
"""The vector of a text, of some dimension."""


@cache
def words_of(text: str) -> tuple[Word, ...]:
    """The words of a text: how each is spelled, endings included, and its term. Stop words are none."""
    return tuple(analysis.words_of(text))


def terms_of(text: str) -> tuple[str, ...]:
    """The words of a text without their endings."""
    return tuple(word.term for word in words_of(text))


def matches(text: str, query: str) -> bool:
    """Is any word of the query in the text?"""
    return not set(terms_of(text)).isdisjoint(terms_of(query))


def matches_fuzzily(text: str, query: str, edits: int) -> bool:
    """Is any word of the query in the text, or spelled at most some edits from a word of the text?"""
    return any(
        word.term == wanted.term or distance(word.spelling, wanted.spelling) <= edits
        for word in words_of(text)
        for wanted in words_of(query)
    )


def distance(one: str, other: str) -> int:
    """How many letters must be inserted, deleted or replaced to make one word of the other, where neighbours that
    have changed places count once."""
    rows = [list(range(len(other) + 1))]
    for i, letter in enumerate(one, start=1):
        row = [i]
        for j, against in enumerate(other, start=1):
            row.append(min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (letter != against)))
            if i > 1 and j > 1 and (letter, one[i - 2]) == (other[j - 2], against):
                row[j] = min(row[j], rows[-2][j - 2] + 1)
        rows.append(row)
    return rows[-1][-1]


def bm25(text: str, query: str, texts: Sequence[str]) -> float:
    """How well a text fits a query, among all texts of its column. A term counts as often as the query has it."""
    documents = [terms_of(one) for one in texts]
    average = sum(map(len, documents)) / len(documents)
    own = terms_of(text)
    score = 0.0
    for term, times in Counter(terms_of(query)).items():
        frequency = own.count(term)
        if not frequency:
            continue
        having = sum(term in document for document in documents)
        rarity = math.log(1 + (len(documents) - having + 0.5) / (having + 0.5))
        length = 1 - _B + _B * len(own) / average
        score += times * rarity * frequency * (_K1 + 1) / (frequency + _K1 * length)
    return score


def l2(one: Sequence[float], other: Sequence[float]) -> float:
    """The Euclidean distance."""
    return math.sqrt(math.fsum((a - b) ** 2 for a, b in zip(one, other, strict=True)))


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """One minus the cosine of the angle; a vector without length has no direction and is at distance one."""
    lengths = math.sqrt(math.fsum(a * a for a in one)) * math.sqrt(math.fsum(b * b for b in other))
    if lengths == 0:
        return 1.0
    return 1 - math.fsum(a * b for a, b in zip(one, other, strict=True)) / lengths


def ranks(scores: Iterable[tuple[str, float]], best_is_largest: bool) -> dict[str, int]:
    """The place of each entity, from 0; equal scores by id."""
    by_id = dict(scores)
    ordered = sorted(by_id, key=lambda one: (-by_id[one] if best_is_largest else by_id[one], one))
    return {one: place for place, one in enumerate(ordered)}


def fused(places: Iterable[int | None], k: int) -> float | None:
    """The score of an entity from its places in the arms; none if it is in no arm."""
    found = [1 / (k + place + 1) for place in places if place is not None]
    return sum(found) if found else None
