"""Text search by its definition, one document after the other, to compare the index with."""

from __future__ import annotations

import math
from collections.abc import Sequence

from omnigraph.read.text.analysis import terms_of, words_of

Texts = Sequence[str | None]


def matches(texts: Texts, query: str) -> list[bool]:
    """Has the text any term of the query?"""
    return [not set(terms_of(text or "")).isdisjoint(terms_of(query)) for text in texts]


def fuzzy_matches(texts: Texts, query: str, edits: int) -> list[bool]:
    """Has the text a word with the term of a word of the query, or one spelled almost like it?"""
    return [
        any(
            word.term == wanted.term or distance(word.spelling, wanted.spelling) <= edits
            for word in words_of(text or "")
            for wanted in words_of(query)
        )
        for text in texts
    ]


def distance(one: str, other: str) -> int:
    """Letters inserted, deleted or replaced, and neighbours exchanged that are not edited again."""
    table = {(i, 0): i for i in range(len(one) + 1)} | {(0, j): j for j in range(len(other) + 1)}
    for i in range(1, len(one) + 1):
        for j in range(1, len(other) + 1):
            replaced = table[i - 1, j - 1] + (one[i - 1] != other[j - 1])
            table[i, j] = min(table[i - 1, j] + 1, table[i, j - 1] + 1, replaced)
            if i > 1 and j > 1 and one[i - 2 : i] == other[j - 2 : j][::-1]:
                table[i, j] = min(table[i, j], table[i - 2, j - 2] + 1)
    return table[len(one), len(other)]


def scores(texts: Texts, query: str) -> list[float]:
    """BM25 with k1 = 1.2 and b = 0.75 among the texts that there are."""
    documents = [terms_of(text) for text in texts if text is not None]
    average = sum(map(len, documents)) / max(len(documents), 1)
    return [
        math.fsum(_share(terms_of(text or ""), term, documents, average) for term in terms_of(query))
        for text in texts
    ]


def _share(own: list[str], term: str, documents: list[list[str]], average: float) -> float:
    """What one term of the query adds to the score of a document."""
    frequency = own.count(term)
    if not frequency:
        return 0.0
    having = sum(term in document for document in documents)
    rarity = math.log(1 + (len(documents) - having + 0.5) / (having + 0.5))
    return rarity * frequency * 2.2 / (frequency + 1.2 * (0.25 + 0.75 * len(own) / average))
