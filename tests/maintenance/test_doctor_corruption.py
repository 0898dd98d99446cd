"""A changed byte anywhere in a graph on disk: if a reader can notice it, the doctor does."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.maintenance.patients import examined
from tests.stores import Store
from tests.test_corruption import answers, flips, template  # noqa: F401  a fixture

from omnigraph.errors import OmniError


@pytest.mark.long
def test_the_doctor_finds_whatever_a_reader_notices(template: Path) -> None:  # noqa: F811
    expected = answers(template)
    chance = random.Random(5)
    missed = []
    for path in sorted(p for p in template.rglob("*") if p.is_file() and p.stat().st_size):
        whole = path.read_bytes()
        for damaged in flips(path, chance, 1):
            path.write_bytes(damaged)
            try:
                noticed = answers(template) != expected
            except OmniError:
                noticed = True
            if noticed and not examined(Store(str(template))).findings:
                missed.append(str(path.relative_to(template)))
        path.write_bytes(whole)
    assert missed == []
    assert examined(Store(str(template))).findings == ()
