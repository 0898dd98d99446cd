"""A copy of any history is that history: every state, and what is made of it afterwards."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.history.histories import SCHEMA, History, Step, steps
from tests.history.model import same_states
from tests.history.test_diff import content
from tests.sampling import examples

import omnigraph

quickly = settings(
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    max_examples=examples(1, of=12),
)
histories = st.lists(steps, min_size=4, max_size=12)


@quickly
@given(histories, histories, histories)
def test_a_copy_that_is_brought_up_to_date_and_moved_goes_on_like_its_source(
    before: list[Step], between: list[Step], after: list[Step]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        history = History(omnigraph.init(place / "g", SCHEMA))
        for step in before:
            history.do(step)
        history.graph.clone(place / "copy")
        history.graph.backup(place / "backups")
        for step in between:
            history.do(step)
        history.graph.clone(place / "copy")
        history.graph.backup(place / "backups", keep=1)
        shutil.rmtree(place / "g")
        shutil.move(place / "copy", place / "a copy at another place")
        omnigraph.restore(place / "backups", place / "restored")
        shutil.rmtree(place / "backups")
        for name in ("a copy at another place", "restored"):
            copy = omnigraph.open(place / name)
            for commit, state in history.states.items():
                assert same_states(content(copy, commit), state)
        history.graph = copy
        for step in after:
            history.do(step)
