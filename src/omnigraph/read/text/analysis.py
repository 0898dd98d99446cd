"""How texts become terms: by the analyzer of Lance, so that texts are found as a Lance index would find them.

Lance cuts into words, drops the long ones, lowers the case, cuts endings, drops stop words and replaces accented
letters, in this order. So "others" is a stop word (it becomes "other") and "during" is none (it becomes "dure").

Columns are cut into words here, by looking at their bytes, and Lance analyses each distinct word once. Whether a
character separates words does not depend on its neighbours: for those beyond ASCII that occur, Lance decides.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.read.values.columns import Array, Bools, Ints, Positions
from omnigraph.records import dataclass
from omnigraph.settings import READ_DEFAULTS, ReadSettings

ANALYSIS: Final[Mapping[str, Any]] = {
    "base_tokenizer": "simple",
    "language": "English",
    "max_token_length": 40,
    "lower_case": True,
    "stem": True,
    "remove_stop_words": True,
    "ascii_folding": True,
}
"""How Lance turns a text into terms, as options of its analyzer."""

_SPELLINGS: Final = {**ANALYSIS, "stem": False, "remove_stop_words": False}
_AS_WRITTEN: Final = {**_SPELLINGS, "lower_case": False, "ascii_folding": False}


def _kept_bytes() -> Array:
    """For each byte what becomes of it in lower case, 0 if it separates words. Those beyond ASCII all stay."""
    kept = np.arange(256, dtype=np.uint8)
    kept[ord("A") : ord("Z") + 1] += 32
    separators = [byte for byte in range(128) if not chr(byte).isalnum()]
    kept[separators] = 0
    return kept


_KEPT: Final = _kept_bytes()


class Word(NamedTuple):
    """A word that can be searched for: as it is spelled, in lower case and plain letters, and its term, the part
    that has to be equal."""

    spelling: str
    term: str


@dataclass(frozen=True, slots=True)
class Tokens:
    """The words of a column in order: of each the document and its number in the vocabulary."""

    documents: Ints
    words: Positions
    vocabulary: list[Word]


def terms_of(text: str) -> list[str]:
    """The terms of a text in order, repetitions included."""
    return [token.text for token in lance.tokenize(text, **ANALYSIS)]


def words_of(text: str) -> list[Word]:
    """The words of a text that an index keeps, in order."""
    spellings = dict(_analysed(text, _SPELLINGS))
    return [Word(spellings[place], term) for place, term in _analysed(text, ANALYSIS)]


def _analysed(text: str, options: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    """The words of a text that an analysis keeps, each with its place among all words.

    Lance counts places from the first word that it keeps, so a word that it always keeps goes in front.
    """
    for token in lance.tokenize(f"x {text}", **options)[1:]:
        yield token.position - 1, token.text


def go_on() -> None:
    """The check of a caller that never stops: nothing."""


def tokenize(
    column: pa.ChunkedArray | pa.Array,
    check: Callable[[], None] = go_on,
    settings: ReadSettings = READ_DEFAULTS,
) -> Tokens:
    """The words of a whole column; what `words_of` gives for each text. A document is a row number.

    ``check`` is called between two batches, and may raise to stop the work.
    """
    pieces, documents = [], [np.empty(0, dtype=np.int64)]
    for first, texts in _batches(column, settings.text_bytes):
        check()
        tokens, owners = _cut(texts)
        pieces.append(tokens)
        documents.append(owners + first)
    encoded = pa.chunked_array(pieces, pa.large_string()).dictionary_encode()
    distinct = encoded.chunk(0).dictionary.to_pylist() if encoded.num_chunks else []
    codes = [np.asarray(chunk.indices) for chunk in encoded.chunks]
    numbers, vocabulary = _numbered(distinct, check, settings.text_words)
    words = numbers[np.concatenate(codes or [np.empty(0, np.int32)])]
    kept = words >= 0
    return Tokens(np.concatenate(documents)[kept], words[kept], vocabulary)


def _batches(column: pa.ChunkedArray | pa.Array, size: int) -> Iterator[tuple[int, pa.LargeStringArray]]:
    """The texts in parts of about that size in bytes, each with the number of its first row; nulls are empty."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    first = 0
    for chunk in chunks:
        texts = pc.fill_null(chunk.cast(pa.large_string()), "")
        offsets = _offsets(texts)
        start = 0
        while start < len(texts):
            stop = int(np.searchsorted(offsets, offsets[start] + size, side="right")) - 1
            stop = max(stop, start + 1)
            yield first + start, texts.slice(start, stop - start)
            start = stop
        first += len(texts)


def _offsets(texts: pa.LargeStringArray) -> Ints:
    """Where each text begins in the bytes, and where the last one ends."""
    return np.frombuffer(texts.buffers()[1], dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]


def _cut(texts: pa.LargeStringArray) -> tuple[pa.LargeStringArray, Ints]:
    """The texts cut into words, which are in ASCII lower case, and from which text each word is."""
    bounds = _offsets(texts)
    content = texts.buffers()[2]
    raw = np.frombuffer(content or b"", dtype=np.uint8)[bounds[0] : bounds[-1]]
    bounds = bounds - bounds[0]
    kept = _KEPT[raw]
    wide = np.flatnonzero(raw >= 0x80)
    if len(wide):
        kept[wide[_separate(raw[wide])]] = 0
    inside = kept != 0
    begins = inside.copy()
    begins[1:] &= ~inside[:-1]
    edges = bounds[:-1][bounds[:-1] < len(raw)]
    begins[edges] = inside[edges]
    counts = np.diff(np.searchsorted(np.flatnonzero(begins), bounds))
    joined = kept[inside]
    offsets = np.append(np.flatnonzero(begins[inside]), len(joined))
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(joined)]
    tokens = pa.Array.from_buffers(pa.large_string(), len(offsets) - 1, buffers)
    return tokens, np.repeat(np.arange(len(texts)), counts)


def _separate(wide: Array) -> Bools:
    """Which bytes, of those of all characters beyond ASCII, are of characters that separate words."""
    points = np.frombuffer(wide.tobytes().decode().encode("utf-32-le"), dtype=np.uint32)
    separates = np.zeros(sys.maxunicode + 1, dtype=np.bool_)
    separates[points] = True
    listed = " ".join(map(chr, np.flatnonzero(separates).tolist()))
    separates[[ord(token.text) for token in lance.tokenize(listed, **_AS_WRITTEN)]] = False
    sizes = np.diff(np.flatnonzero(wide >= 0xC0), append=len(wide))
    return np.repeat(separates[points], sizes)


def _numbered(distinct: list[str], check: Callable[[], None], size: int) -> tuple[Positions, list[Word]]:
    """For each token the number of its word, -1 if the analysis drops it; and the words."""
    numbers: dict[Word, int] = {}
    found = np.full(len(distinct), -1, dtype=np.int32)
    for first in range(0, len(distinct), size):
        check()
        words = dict(_words(distinct[first : first + size]))
        places = np.fromiter(words, dtype=np.int64, count=len(words))
        found[first + places] = [numbers.setdefault(word, len(numbers)) for word in words.values()]
    return found, list(numbers)


def _words(tokens: list[str]) -> Iterator[tuple[int, Word]]:
    """The words of tokens, each with the place of its token. ASCII tokens are spelled as they are."""
    accented = [token for token in tokens if not token.isascii()]
    spellings = {accented[place]: spelling for place, spelling in _analysed(" ".join(accented), _SPELLINGS)}
    for place, term in _analysed(" ".join(tokens), ANALYSIS):
        token = tokens[place]
        yield place, Word(spellings.get(token, token), term)
