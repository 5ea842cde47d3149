"""What the training loop says while it runs."""

from rewardlab.engine.loop import _shown


def test_an_older_held_out_value_is_shown_with_the_step_it_was_measured_at():
    evaluations = {0: {"pass@1": 0.125, "n": 8}, 10: {"pass@1": 0.25, "n": 8}}
    assert _shown(10, {"reward": 0.5}, evaluations) == "reward 0.500  held-out pass@1 0.250"
    assert _shown(12, {"reward": 0.5}, evaluations) == "reward 0.500  held-out pass@1 0.250 (step 10)"
    assert _shown(12, {}, {}) == ""
