"""An index over a column answers as its definition does, for all documents and for any choice of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.read.text import naive

from omnigraph.read.text.index import TextIndex
from omnigraph.read.text.postings import Postings
from omnigraph.read.text.spelling import Spelling
from omnigraph.read.values.segments import Segment

TITLES = ["Engines that compute", "Weaving patterns", None, "", "Of the engine, and an Engine", "to be"]
WORDS = [
    "weave",
    "weaves",
    "weaving",
    "wave",
    "Engine",
    "engines",
    "engine's",
    "café",
    "cafe",
    "the",
    "of",
    "日本",
    "x1",
]
TEXT = st.lists(st.sampled_from(WORDS) | st.text("abé ", max_size=4), max_size=8).map(" ".join)
TEXTS = st.lists(st.none() | TEXT, max_size=12)


@pytest.fixture(scope="module")
def titles() -> TextIndex:
    return TextIndex(pa.array(TITLES))


def rows(flags: Any) -> list[int]:
    return [int(row) for row in np.flatnonzero(flags)]


class TestMatches:
    def test_any_term_suffices(self, titles: TextIndex) -> None:
        assert rows(titles.matches("engine")) == [0, 4]
        assert rows(titles.matches("weaving ENGINES")) == [0, 1, 4]
        assert rows(titles.matches("steam engine")) == [0, 4]

    @pytest.mark.parametrize("query", ["", "the of", "?!", "steam", "y" * 40])
    def test_nothing_to_look_for(self, titles: TextIndex, query: str) -> None:
        assert rows(titles.matches(query)) == []
        assert rows(titles.fuzzy_matches(query, 0)) == []
        assert titles.scores(query).tolist() == [0.0] * len(TITLES)

    def test_answers_follow_the_documents_asked_for(self, titles: TextIndex) -> None:
        asked = np.array([4, 1, 4, 2])
        assert titles.matches("engine", asked).tolist() == [True, False, True, False]
        assert titles.matches("engine", np.array([], dtype=np.int64)).tolist() == []

    def test_nulls_are_told_apart_from_empty_texts(self, titles: TextIndex) -> None:
        assert rows(titles.is_null) == [2]
        assert len(titles) == len(TITLES)


class TestFuzzyMatches:
    def test_typing_mistakes(self, titles: TextIndex) -> None:
        assert rows(titles.fuzzy_matches("weavnig", 2)) == [1]
        assert rows(titles.fuzzy_matches("weavnig", 1)) == [1]
        assert rows(titles.fuzzy_matches("engimes", 1)) == [0]
        assert rows(titles.fuzzy_matches("engimes", 2)) == [0, 4]
        assert rows(titles.fuzzy_matches("egnimes", 1)) == []

    def test_finds_what_a_search_finds(self, titles: TextIndex) -> None:
        assert rows(titles.fuzzy_matches("compute engineered", 0)) == rows(titles.matches("compute engineered"))
        assert rows(titles.fuzzy_matches("engine", 0)) == [0, 4]

    def test_a_document_is_judged_by_its_own_words(self) -> None:
        """The second text has the term of `engines`, but not that word, which is the one a letter away."""
        assert rows(TextIndex(pa.array(["engines", "engine"])).fuzzy_matches("engimes", 1)) == [0]

    def test_stop_words_are_not_similar_to_anything(self, titles: TextIndex) -> None:
        assert rows(titles.fuzzy_matches("the", 2)) == []
        assert rows(titles.fuzzy_matches("thee", 1)) == []

    def test_enough_edits_make_any_word_of_another(self, titles: TextIndex) -> None:
        assert rows(titles.fuzzy_matches("x", 50)) == [0, 1, 4]


class TestScores:
    def test_rare_words_and_short_texts_weigh_more(self) -> None:
        index = TextIndex(pa.array(["steam engine", "steam engine of great size", "steam train", "steam steam"]))
        score = index.scores("steam engine")
        assert score[0] > score[1] > score[3] > score[2] > 0

    def test_repeated_words_of_a_query_count_each_time(self, titles: TextIndex) -> None:
        assert titles.scores("engine engines").tolist() == (2 * titles.scores("engine")).tolist()

    def test_statistics_are_of_the_whole_column(self, titles: TextIndex) -> None:
        asked = np.array([4], dtype=np.int32)
        assert titles.scores("engine", asked).tolist() == titles.scores("engine")[asked].tolist()

    def test_answers_belong_to_the_caller(self, titles: TextIndex) -> None:
        before = titles.scores("engine")
        titles.scores("engine")[:] = np.nan
        titles.matches("engine")[:] = False
        assert titles.scores("engine").tolist() == before.tolist()
        assert rows(titles.matches("engine")) == [0, 4]


def best_by_definition(scores: Any, among: list[int], count: int) -> list[int]:
    ranked = sorted((scores[row] for row in among if scores[row] > 0), reverse=True)
    return [row for row in among if scores[row] > 0 and scores[row] >= ranked[: max(count, 1)][-1]]


class TestBest:
    """The best few are found without scoring every text that has a common word."""

    @pytest.mark.parametrize("count", [1, 3, 10, 400])
    @pytest.mark.parametrize("share", [1.0, 0.6, 0.02])
    def test_rare_and_common_words_in_segments_with_deleted_rows(self, count: int, share: float) -> None:
        chance = np.random.default_rng(count)
        words = [f"w{number}x" for number in range(300)]
        drawn = (np.minimum(chance.zipf(1.3, 12) - 1, 299) for _ in range(3_000))
        texts = [" ".join(words[number] for number in row) for row in drawn]
        parts = [(0, 2_000), (2_000, 2_900), (2_900, 3_000)]
        segments = [Segment(low, high, Postings.of(pa.array(texts[low:high]))) for low, high in parts]
        for live in (None, chance.random(2_950) < 0.9):
            index = TextIndex.over(segments, 2_950, live)
            among = np.flatnonzero((chance.random(2_950) < share) & (True if live is None else live))
            given = None if share == 1 else among
            for query in ("w0x", "w0x w1x", "w250x w0x", "w40x w3x w0x w0x", "w120x w121x", "nothing", ""):
                scores = index.scores(query)
                expected = best_by_definition(scores, among.tolist(), count)
                assert index.best(query, count, given).tolist() == expected


class TestSpelling:
    @settings(deadline=None)
    @given(st.lists(st.text("abcé日", max_size=7)), st.text("abcé日", max_size=7), st.integers(0, 4))
    def test_distances(self, vocabulary: list[str], word: str, edits: int) -> None:
        expected = [number for number, one in enumerate(vocabulary) if naive.distance(one, word) <= edits]
        assert sorted(Spelling(vocabulary).near(word, edits).tolist()) == expected


class TestByDefinition:
    @settings(deadline=None)
    @given(TEXTS, TEXT, st.integers(0, 3), st.data())
    def test_everything(self, texts: list[str | None], query: str, edits: int, data: st.DataObject) -> None:
        index = TextIndex(pa.array(texts, pa.string()))
        matches, fuzzy, scores = index.matches(query), index.fuzzy_matches(query, edits), index.scores(query)
        assert matches.tolist() == naive.matches(texts, query)
        assert fuzzy.tolist() == naive.fuzzy_matches(texts, query, edits)
        assert scores.tolist() == pytest.approx(naive.scores(texts, query))
        assert index.is_null.tolist() == [text is None for text in texts]
        asked = data.draw(st.lists(st.integers(0, len(texts) - 1))) if texts else []
        chosen = np.array(asked, dtype=data.draw(st.sampled_from([np.int32, np.int64])))
        assert index.matches(query, chosen).tolist() == matches[chosen].tolist()
        assert index.fuzzy_matches(query, edits, chosen).tolist() == fuzzy[chosen].tolist()
        assert index.scores(query, chosen).tolist() == scores[chosen].tolist()

    @pytest.mark.parametrize("asked", [0, 1, 7, 300, 5_000])
    def test_few_and_many_documents(self, asked: int) -> None:
        """Enough documents that few are looked up and many are read off."""
        chance = np.random.default_rng(asked)
        texts = [" ".join(WORDS[number] for number in chance.integers(0, len(WORDS), 6)) for _ in range(2_000)]
        index = TextIndex(pa.array(texts))
        chosen = chance.integers(0, len(texts), asked)
        for query in ("weave", "weave engine", "cafe 日本 nothing", "x1 x1"):
            assert index.matches(query, chosen).tolist() == index.matches(query)[chosen].tolist()
            assert index.scores(query, chosen).tolist() == index.scores(query)[chosen].tolist()
            assert index.fuzzy_matches(query, 1, chosen).tolist() == index.fuzzy_matches(query, 1)[chosen].tolist()


def test_size_grows_with_the_column() -> None:
    small, large = (TextIndex(pa.array([f"text {number}" for number in range(n)])).nbytes for n in (10, 1_000))
    assert 0 < small < large


@given(TEXTS, st.lists(TEXT, min_size=1, max_size=3), st.data())
def test_texts_that_were_moved_score_as_if_indexed_there(
    texts: list[str | None], queries: list[str], data: st.DataObject
) -> None:
    """Postings that were saved are used at other positions, without some of their texts."""
    places = data.draw(st.lists(st.sampled_from(("stay", "gap", "go")), min_size=len(texts), max_size=len(texts)))
    positions, there = [], list[str | None]()
    for text, place in zip(texts, places, strict=True):
        there += [None] if place == "gap" else []
        positions.append(-1 if place == "go" else len(there))
        there += [] if place == "go" else [text]
    moved = Postings.of(pa.array(texts, pa.string())).moved(np.array(positions, dtype=np.int32), len(there))
    found = TextIndex.over([Segment(0, len(there), moved)], len(there), None)
    expected = TextIndex(pa.array(there, pa.string()))
    assert found.is_null.tolist() == expected.is_null.tolist()
    for query in queries:
        assert found.scores(query).tolist() == expected.scores(query).tolist()
        assert found.matches(query).tolist() == expected.matches(query).tolist()
        assert found.fuzzy_matches(query, 1).tolist() == expected.fuzzy_matches(query, 1).tolist()
