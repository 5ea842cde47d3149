"""The token counts of a run's models."""

from __future__ import annotations

from contextlib import suppress
from types import SimpleNamespace

import pytest

from rewardlab.core import Run, TokenCount


def model(generated: int = 0, scored: int = 0) -> SimpleNamespace:
    return SimpleNamespace(token_count=TokenCount(generated, scored))


def test_counts_of_all_models_add_up_and_one_with_two_names_counts_once():
    policy, critic = model(3, 4), model(0, 5)
    assert Run(policy, models={"critic": critic, "again": policy}).token_count == TokenCount(3, 9)
    assert Run(policy, reference=critic).token_count.total == 12
    assert Run(None).token_count.total == 0


def test_unbilled_work_leaves_no_count_even_when_it_fails():
    policy, critic = model(1, 2), model()
    run = Run(policy, models={"critic": critic})
    with run.unbilled():
        policy.token_count.generated += 10
        critic.token_count.scored += 20
        assert run.token_count.total == 33
    assert run.token_count == TokenCount(1, 2)

    def failing():
        with run.unbilled():
            policy.token_count.generated += 10
            raise ValueError("inside")

    with pytest.raises(ValueError, match="inside"):
        failing()
    policy.token_count.scored += 1
    assert run.token_count == TokenCount(1, 3)


@pytest.mark.parametrize("fails", [False, True])
def test_a_model_that_is_loaded_in_unbilled_work_begins_to_count_after_it(fails):
    """As a scorer model:PATH, which is loaded where it is first asked: perhaps in a held-out evaluation."""
    run = Run(model(1, 2))
    with suppress(ValueError), run.unbilled():
        # an evaluation has a run of its own, with the same models
        run.for_evaluation().models["model:PATH"] = model(0, 50)
        if fails:
            raise ValueError
    assert run.token_count == TokenCount(1, 2)
    run.models["model:PATH"].token_count.scored += 7
    with run.unbilled():
        run.models["model:PATH"].token_count.scored += 50
    assert run.token_count == TokenCount(1, 9)
