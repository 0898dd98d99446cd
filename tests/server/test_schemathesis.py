"""Requests made of the OpenAPI document: the answers are what the document says, and never a 500."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.sampling import examples
from tests.server.hostile import attacked, operations, some
from tests.server.running import Served

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def target() -> Iterator[Served]:
    with attacked() as server:
        yield server


def test_every_operation(target: Served) -> None:
    cases = operations(target)
    for strategy, tried in cases.values():
        some(strategy, 17, examples(6, of=60), tried)
    assert len(cases) > 40
