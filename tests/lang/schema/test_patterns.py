"""`@check` patterns mean what they mean in Rust, whose regular expressions polars has, or they are refused."""

from __future__ import annotations

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.sampling import examples

from omnigraph.lang.schema.patterns import matches, pattern_problem


def matched(pattern: str, *texts: str | None) -> list[bool | None]:
    found: list[bool | None] = matches(pa.chunked_array([pa.array(texts, pa.string())]), pattern).to_pylist()
    return found


class TestUnicode:
    @pytest.mark.parametrize(
        ("pattern", "inside", "outside"),
        [
            (r"^\w$", "aé中_0٣\u0301Ⓐ", "- !\u00a0€½"),
            (r"^\d$", "07٣𝟘", "a½²Ⅳ"),
            (r"^\s$", " \t\n\u00a0\u2003\u3000\u0085", "a_\u200b"),
            (r"^\W$", "- !€", "aé_"),
            (r"^\D$", "a½", "0٣"),
            (r"^\S$", "a\u200b", " \u00a0"),
            (r"^[\w-]$", "é-", " "),
            (r"^[^\w-]$", " !", "é-"),
            (r"^[^\W\d_]$", "aé中", "0٣_ "),
            (r"^[\W_]$", "_ !", "aé0"),
            (r"^\PC$", "aé ", "\u0007\u0378"),
        ],
    )
    def test_classes(self, pattern: str, inside: str, outside: str) -> None:
        assert matched(pattern, *inside) == [True] * len(inside)
        assert matched(pattern, *outside) == [False] * len(outside)

    def test_a_word_of_any_script_has_its_boundaries(self) -> None:
        assert matched(r"\bété\b", "un été ici", "été", "l'été!", "étés", "dété") == [
            True,
            True,
            True,
            False,
            False,
        ]
        assert matched(r"\Bé", "été", "é", "aé") == [True, False, True]
        assert matched(r"^\b", "é", "!", "") == [True, False, False]

    def test_boundaries_beside_the_anchors_of_lines(self) -> None:
        assert matched(r"(?m)^\bé\b$", "a\né\nb", "aé\nb") == [True, False]
        assert matched(r"é\b.a", "é\na", "é a") == [False, True]

    def test_a_text_that_is_missing_matches_neither_way(self) -> None:
        assert matched(r"\bé", None, "é", None) == [None, True, None]

    def test_long_repetitions_of_words(self) -> None:
        assert pattern_problem(r"^\w{1,1000}$") is None
        assert matched(r"^\w{1,1000}$", "é" * 1000, "é" * 1001, "") == [True, False, False]


class TestRefusals:
    @pytest.mark.parametrize("pattern", ["[a-z&&[^aeiou]]", "[a&&b]", "[a-z--c]", "[--a]", "[+--]", "[a~~b]"])
    def test_operators_on_sets(self, pattern: str) -> None:
        problem = pattern_problem(pattern)
        assert problem is not None
        assert (problem.code, "combines sets" in problem.message) == ("S128", True)

    @pytest.mark.parametrize(
        "pattern", ["[a[bc]]", r"\<a", r"a\>", r"\b{start}a", r"\Qa.b\E", r"\C", r"\pC", r"[\p{C}]"]
    )
    def test_what_would_be_matched_in_another_sense(self, pattern: str) -> None:
        problem = pattern_problem(pattern)
        assert problem is not None
        assert (problem.code, bool(problem.remedy)) == ("S128", True)

    @pytest.mark.parametrize("pattern", ["(a", "[a", "a**", r"\u{e9}", "(?x)a", r"(a)\1", "(?=a)"])
    def test_what_does_not_compile(self, pattern: str) -> None:
        problem = pattern_problem(pattern)
        assert problem is not None
        assert problem.code == "S127"

    @pytest.mark.parametrize("pattern", ["a&&b--c~~d", r"[\-\-&~]", r"[\&\&]", "[[:alpha:]-]", r"[\[a]", r"\\b{a"])
    def test_what_only_looks_like_it(self, pattern: str) -> None:
        assert pattern_problem(pattern) is None


_ATOMS = st.sampled_from(
    [
        *("a", "é", "ß", "0", "_", "-", " ", ".", "^", "$", "{", r"\.", r"\n", r"\A", r"\z", r"\x{e9}", r"\pL"),
        *(r"\w", r"\W", r"\d", r"\D", r"\s", r"\S", r"\b", r"\B", "(?m:^)", "(?m:$)", "(?i:É)"),
        *(
            "[a-f]",
            r"[^\W_]",
            r"[\W_]",
            r"[\w.-]",
            r"[^\w-]",
            r"[\d\s]",
            r"[^\S\n]",
            r"[^\W\d_]",
            "[]a]",
            r"[^]\w]",
        ),
        *("[[:alpha:]é]", r"[a\w-z]", r"[\w^]", r"[\--9]", r"[^\w\W]", r"[\w\W]"),
    ]
)
_REPEATED = st.builds(str.__add__, _ATOMS, st.sampled_from(["", "", "", "*", "+", "?", "{2}", "{1,3}"]))


def _groups(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    joined = st.lists(inner, min_size=1, max_size=4).map("".join)
    group = st.builds("({}{}|{}){}".format, st.sampled_from(["", "?:", "?i:", "?s:"]), joined, joined, st.just(""))
    return joined | group | st.builds(str.__add__, group, st.sampled_from(["*", "?"]))


_TEXTS = st.lists(st.text(st.sampled_from("aéß AÉ0_-!\n.\u0301٣\u200dⒶ中\u00a0]^{"), max_size=6), min_size=1)


@settings(
    max_examples=examples(120, of=400), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
@given(st.recursive(_REPEATED, _groups, max_leaves=8), _TEXTS)
def test_every_pattern_that_is_accepted_matches_what_it_matches_in_rust(pattern: str, texts: list[str]) -> None:
    try:
        wanted = pl.Series(texts).str.contains(pattern).to_list()
    except pl.exceptions.ComputeError:
        assume(False)
    assume(pattern_problem(pattern) is None)
    assert matched(pattern, *texts) == wanted
