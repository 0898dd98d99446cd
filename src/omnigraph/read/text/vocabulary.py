"""Many texts in two arrays, which can be saved and mapped into memory as they are."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from omnigraph.read.values.columns import Array, Ints


class Texts(NamedTuple):
    """Texts one behind the other: where each begins, where the last one ends, and the bytes of all."""

    offsets: Ints
    content: Array

    @classmethod
    def of(cls, texts: Iterable[str]) -> Texts:
        """Some texts as arrays."""
        parts = [text.encode() for text in texts]
        offsets = np.zeros(len(parts) + 1, dtype=np.int64)
        np.cumsum(np.fromiter(map(len, parts), dtype=np.int64, count=len(parts)), out=offsets[1:])
        return cls(offsets, np.frombuffer(b"".join(parts), dtype=np.uint8))

    def decoded(self) -> list[str]:
        """The texts themselves."""
        content, offsets = self.content.tobytes(), self.offsets.tolist()
        return [content[low:high].decode() for low, high in pairwise(offsets)]


class Vocabulary:
    """Distinct terms in ascending order. The code of a term is its place among them."""

    def __init__(self, terms: Texts) -> None:
        self.terms = terms

    def __len__(self) -> int:
        return len(self.terms.offsets) - 1

    def __getitem__(self, code: int) -> bytes:
        low, high = self.terms.offsets[code : code + 2].tolist()
        return self.terms.content[low:high].tobytes()

    @property
    def nbytes(self) -> int:
        return self.terms.offsets.nbytes + self.terms.content.nbytes

    def code(self, term: str) -> int | None:
        """The code of a term; None if it is not one of them."""
        wanted = term.encode()
        found = bisect_left(self, wanted)
        return found if found < len(self) and self[found] == wanted else None
