"""Columns become the terms that Lance makes of their texts, and the words of texts fit together."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.read.text.analysis import INDEX_OPTIONS, Word, terms_of, tokenize, words_of
from omnigraph.read.text.index import TextIndex
from omnigraph.settings import READ_DEFAULTS, ReadSettings

LAST_LETTER = 0x40000
"""No language has letters beyond."""
ANALYSIS: dict[str, Any] = {name: value for name, value in INDEX_OPTIONS.items() if name != "with_position"}
"""The options that are about analysis, which `lance.tokenize` takes as well."""

STEMS = """
weav engin univers argu happi commun gener arsen knowledg hop hopp plann tr be agre feed sk new earl e y s ski
inter succ proc organ log psych théâtr œuvr straß ŋ ½x naï 7 x86 2nd running ponies ties during others only
"""
ENDINGS = """
s es ed ing ings eed edly ly y ies ied ation ational tional izer alism fulness ousness iviti biliti ogist
ogical less lessly ical icate ative al ance ence er ic able ible ant ement ment ent ism ate iti ous ive ize
ion sion e l ll us ss sses n't é ée 1
"""
PIECES = [
    *("weaving", "Weaver", "weaves", "loom", "LOOMS", "the", "and", "of", "During", "others", "it's", "don't"),
    *("café", "cafe\u0301", "CAFÉS", "Straße", "ŒUVRE", "œuvres", "naïve", "ΣΑΣ", "σας", "İstanbul", "ﬁnding"),
    *("日本語", "テキスト", "हिन्दी", "가각", "ёлка", "Ёлки", "х²", "½", "Ⅷ", "１２３", "ⓐbc", "ﷺ", "عربي"),
    *("42", "3.14", "x86", "2nd", "foo_bar", "a-b", "user@example.org", "C++", "1,000", "#tag", "e\u200bx"),
    *("x" * 39, "x" * 40, "é" * 19, "é" * 20, "日" * 13, "日" * 14, "w" * 300, "K" * 13, "\N{KELVIN SIGN}" * 13),
    *("", " ", "\t\n", "…", "—", "\u00a0", "\u2028", "\x00", "🙂", "!?", "'"),
]


def lance_terms(text: str) -> list[str]:
    return [token.text for token in lance.tokenize(text, **ANALYSIS)]


def lance_spellings(text: str) -> list[str]:
    return [token.text for token in lance.tokenize(text, **ANALYSIS | {"stem": False, "remove_stop_words": False})]


def by_document(column: pa.Array | pa.ChunkedArray, settings: ReadSettings = READ_DEFAULTS) -> list[list[Word]]:
    """The words of each text by way of the whole column."""
    tokens = tokenize(column, settings=settings)
    words: list[list[Word]] = [[] for _ in range(len(column))]
    for document, number in zip(tokens.documents.tolist(), tokens.words.tolist(), strict=True):
        words[document].append(tokens.vocabulary[number])
    return words


def all_terms(texts: list[str]) -> list[list[str]]:
    return [[word.term for word in words] for words in by_document(pa.array(texts, pa.string()))]


class TestTerms:
    @pytest.mark.parametrize(
        ("text", "terms"),
        [
            ("Engines that compute", ["engin", "comput"]),
            ("weaving WEAVES woven", ["weav", "weav", "woven"]),
            ("to be or in it", []),
            ("", []),
            ("foo_bar, foo-bar", ["foo", "bar", "foo", "bar"]),
            ("Café, naïve Straße", ["cafe", "naiv", "strasse"]),
            ("the 3.14th x86", ["3", "14th", "x86"]),
            ("日本語 текст", ["日本語", "текст"]),
            ("x" * 39 + " " + "y" * 40, ["x" * 39]),
        ],
    )
    def test_examples(self, text: str, terms: list[str]) -> None:
        assert terms_of(text) == terms

    def test_endings_go_before_stop_words_do(self) -> None:
        assert terms_of("others during") == ["dure"]

    def test_spellings_keep_their_endings_and_lose_their_accents(self) -> None:
        assert words_of("Résumés resume") == [Word("resumes", "resume"), Word("resume", "resum")]

    def test_words_that_are_left_out_do_not_shift_the_spellings_of_others(self) -> None:
        text = f"to {'y' * 40} Weaving the {'é' * 20} others Engines, of"
        assert words_of(text) == [Word("weaving", "weav"), Word("engines", "engin")]


class TestLikeLance:
    @pytest.mark.long
    def test_every_character(self) -> None:
        """Between letters: does it separate, what is its lower case, what is its plain form?"""
        points = [point for point in range(LAST_LETTER) if not 0xD800 <= point < 0xE000]
        texts = [" ".join(f"x{chr(point)}q" for point in points[i : i + 512]) for i in range(0, len(points), 512)]
        found = by_document(pa.array(texts))
        assert [[word.term for word in words] for words in found] == list(map(lance_terms, texts))
        assert [[word.spelling for word in words] for words in found] == list(map(lance_spellings, texts))

    def test_words_with_every_ending(self) -> None:
        texts = [
            " ".join(stem + one + other for one in ["", *ENDINGS.split()] for other in ["", "s", "ed", "ly"])
            for stem in STEMS.split()
        ]
        assert all_terms(texts) == list(map(lance_terms, texts))

    @settings(deadline=None)
    @given(st.lists(st.text() | st.text(st.sampled_from("aeiouylstngd éß'_-1."))))
    def test_any_text(self, texts: list[str]) -> None:
        assert all_terms(texts) == list(map(lance_terms, texts))


class TestColumns:
    @settings(deadline=None)
    @given(st.lists(st.none() | st.lists(st.sampled_from(PIECES) | st.text(max_size=6)).map(" ".join)))
    def test_are_analysed_like_their_texts(self, texts: list[str | None]) -> None:
        expected = [words_of(text or "") for text in texts]
        assert by_document(pa.array(texts, pa.string())) == expected
        assert by_document(pa.chunked_array([texts[:1], texts[1:]], pa.large_string())) == expected

    @pytest.mark.parametrize(("size", "words"), [(1, 1), (9, 7), (40, 2)])
    def test_in_batches(self, size: int, words: int) -> None:
        texts = [*PIECES, None, *PIECES]
        expected = [words_of(text or "") for text in texts]
        small = ReadSettings(text_bytes=size, text_words=words)
        assert by_document(pa.chunked_array([texts[:7], texts[7:]]), small) == expected

    def test_part_of_an_array(self) -> None:
        part = pa.array(["one", "two", None, "three", "four"]).slice(1, 3)
        assert by_document(part) == [words_of("two"), [], words_of("three")]

    def test_text_under_a_null_is_not_seen(self) -> None:
        texts = pa.array(["one", "two"])
        hidden = pa.Array.from_buffers(pa.string(), 2, [pa.py_buffer(b"\x02"), *texts.buffers()[1:]])
        assert by_document(hidden) == [[], words_of("two")]

    @pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
    def test_every_kind_of_text(self, kind: pa.DataType) -> None:
        assert by_document(pa.array(["one two", None], kind)) == [words_of("one two"), []]
        assert by_document(pa.chunked_array([], kind)) == []
        assert by_document(pa.array([], kind)) == []
        assert by_document(pa.array([None], kind)) == [[]]

    def test_encoded_texts(self) -> None:
        texts = ["one two", None, "one two"]
        assert by_document(pa.array(texts).dictionary_encode()) == [words_of(text or "") for text in texts]


def generated(count: int, seed: int) -> list[str]:
    """Texts of ordinary and awkward words, from empty to long."""
    chance = random.Random(seed)
    words = [stem + ending for stem in STEMS.split() for ending in ENDINGS.split()]
    return [
        chance.choice([" ", ", ", "/", "—"]).join(
            chance.choice(PIECES if chance.random() < 0.5 else words)
            for _ in range(chance.choice([0, 1, 2, 5, 20]))
        )
        for _ in range(count)
    ]


def found_by_lance(table: lance.LanceDataset, query: str) -> set[int]:
    hits = table.to_table(columns=["row"], full_text_query={"columns": ["text"], "query": query})
    return set(hits["row"].to_pylist())


def rows(flags: Iterable[bool]) -> set[int]:
    return {row for row, flag in enumerate(flags) if flag}


def test_an_index_of_lance_finds_the_same_rows(tmp_path: Path) -> None:
    texts = [*generated(400, seed=1), *PIECES, None, "to be", ""]
    column = pa.array(texts, pa.string())
    content = pa.table({"row": range(len(texts)), "text": column})
    table = lance.write_dataset(content, str(tmp_path / "texts.lance"))
    table.create_scalar_index("text", "INVERTED", **INDEX_OPTIONS)
    index = TextIndex(column)
    queries = [*PIECES, *generated(200, seed=2)]
    found = {query: found_by_lance(table, query) for query in queries}
    assert {query: rows(index.matches(query)) for query in queries} == found
    assert sum(map(bool, found.values())) > 150
