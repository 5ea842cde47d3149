"""Searches over steps: the texts that end a step are a setting of every one of them."""

from __future__ import annotations

import pytest

from rewardlab import registry

SEARCHES = (
    "beam_search", "dvts", "early_rejection", "le_mcts", "mcts", "particle_filtering", "prism_deepthink", "process_reward_agents",
    "rap", "rearter", "rebase",
)  # fmt: skip


@pytest.mark.parametrize("name", SEARCHES)
def test_what_ends_a_step_is_a_setting(name):
    assert registry.build(name).rollout.settings["stop"] == ("\n",)
    assert registry.build(name, {"stop": (";", "\n\n")}).rollout.settings["stop"] == (";", "\n\n")


def test_pairs_of_steps_end_there_too():
    assert registry.build("rearter", {"gap": 0.1, "stop": (";",)}).rollout.settings["stop"] == (";",)
