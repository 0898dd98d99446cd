"""What must hold for any chain of schema changes, writes, maintenance, branches and merges."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.evolution.chains import Chain
from tests.sampling import examples

quickly = settings(
    deadline=None,
    max_examples=examples(3, of=40),
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),  # a seed cannot be made smaller
)


@quickly
@given(st.integers(0, 2**32))
def test_rows_that_no_step_dropped_are_intact_and_every_commit_stays_as_it_was(seed: int) -> None:
    """Each step compares the newest state and the stable ids with the model; here are older states and diffs."""
    chain = Chain(seed)
    for _ in range(24):
        chain.step()
    for commit, (world, source) in chain.past.items():
        chain.compare(commit, world)
        assert chain.graph.schema_source(at=commit) == source
    commits = list(chain.past)
    for _ in range(8):
        chain.compare_diff(chain.chance.choice(commits), chain.chance.choice(commits))
    chain.compare_feed()
