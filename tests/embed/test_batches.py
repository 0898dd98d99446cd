"""How texts are cut into requests."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from omnigraph.embed.batches import BatchLimits, cut, distinct

TEXTS = st.lists(st.text(max_size=12), max_size=40)


@given(TEXTS, st.integers(1, 9), st.integers(1, 30))
def test_batches_are_full_and_never_too_large(texts: list[str], most: int, characters: int) -> None:
    batches = cut(texts, BatchLimits(most, characters))
    assert [text for batch in batches for text in batch] == texts
    for batch in batches:
        assert 1 <= len(batch) <= most
        assert len(batch) == 1 or sum(map(len, batch)) <= characters
    for batch, following in pairwise(batches):
        assert len(batch) == most or sum(map(len, batch)) + len(following[0]) > characters


@given(TEXTS)
def test_every_text_has_a_place_among_the_different_ones(texts: list[str]) -> None:
    different, which = distinct(texts)
    assert len(set(different)) == len(different)
    assert [different[place] for place in which] == texts
