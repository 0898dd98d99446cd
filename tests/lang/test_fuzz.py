"""Whatever is given to the languages, the answer is a result or a LanguageError."""

from __future__ import annotations

import datetime as dt
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.fuzz.mutations import DICTIONARY, mutate
from tests.fuzz.seeds import Seed, seeds
from tests.fuzz.target import exercise_queries, exercise_schema
from tests.lang.typed_queries import SCHEMA, typed_reads
from tests.sampling import examples

from omnigraph.errors import ParameterError
from omnigraph.lang.parameters import bind_parameters
from omnigraph.lang.schema.catalog import load_catalog
from omnigraph.lang.values import Scalar, ValueType, vector

CATALOG = load_catalog(SCHEMA)
SEEDS = seeds()
many = settings(
    max_examples=examples(50, of=150),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)


def exercise(data: bytes) -> None:
    """Take the bytes for a schema and for a query file."""
    exercise_schema(data)
    exercise_queries(data, CATALOG)


@many
@given(st.text())
def test_any_text(text: str) -> None:
    exercise(text.encode())


@many
@given(st.binary())
def test_any_bytes(data: bytes) -> None:
    exercise(data)


@many
@given(st.lists(st.sampled_from(DICTIONARY), max_size=60), st.sampled_from([b"", b" ", b"\n"]))
def test_any_tokens(tokens: list[bytes], separator: bytes) -> None:
    soup = separator.join(tokens)
    exercise(soup)
    exercise_schema(b"node Pilot {" + soup + b"}")
    exercise_queries(b"query q() { match { " + soup + b"} return { $p } }", CATALOG)
    exercise_queries(b"query q() { match { $p: Pilot } return {" + soup + b"}", CATALOG)
    exercise_queries(b"query q() { " + soup + b"}", CATALOG)


@many
@given(st.integers(0, 2**32), st.sampled_from(SEEDS))
def test_texts_with_a_few_changes(number: int, seed: Seed) -> None:
    random = Random(number)
    changed = mutate(seed.text, [random.choice(SEEDS).text], random)
    exercise_schema(changed)
    exercise_queries(changed, seed.catalog)


@many
@given(typed_reads(), st.integers(0, 2**32))
def test_fitting_queries_with_a_few_changes(text: str, number: int) -> None:
    exercise_queries(mutate(text.encode(), [text.encode()], Random(number)), CATALOG)


_scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()) | st.datetimes()
_json = st.recursive(_scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=5)
_declared = st.builds(ValueType, st.sampled_from(Scalar), st.booleans(), st.booleans()) | st.builds(
    vector, st.just(2)
)


@many
@given(st.dictionaries(st.sampled_from("abc"), _declared), st.dictionaries(st.sampled_from("abcd"), _json) | _json)
def test_any_parameters(declared: dict[str, ValueType], given: dict[str, object]) -> None:
    try:
        bound = bind_parameters("q", declared, given)
    except ParameterError:
        return
    assert bound.keys() == declared.keys()


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        (Scalar.STRING, "\ud800"),
        (Scalar.BLOB, "\udfff"),
        (Scalar.I64, 10**5000),
        (Scalar.F64, 10**5000),
        (Scalar.DATE, 10**5000),
        (Scalar.DATETIME, dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=14)))),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_that_fit_nowhere(scalar: Scalar, value: object) -> None:
    with pytest.raises(ParameterError):
        bind_parameters("q", {"p": ValueType(scalar)}, {"p": value})


@pytest.mark.parametrize("seed", SEEDS[:40])
def test_every_prefix_of_a_text(seed: Seed) -> None:
    for end in range(0, len(seed.text), 1 + len(seed.text) // 20):
        exercise(seed.text[:end])


@pytest.mark.parametrize(
    "text",
    [
        "query q() { match { $p: Pilot } return { rrf(nearest, bm25) as x } limit 3 }",
        "query q() { match { $p: Pilot } return { rrf(nearest($p.face, $p), bm25) as x } limit 3 }",
    ],
)
def test_what_once_broke(text: str) -> None:
    exercise(text.encode())
