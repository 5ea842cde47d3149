"""DRA-GRPO: rewards are divided by what replies have in common."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from lengths import credits, reply, run_at, totals

from rewardlab import registry
from rewardlab.methods.shaping.dra_grpo import redundancy
from rewardlab.text.embedding import embedded

RUN = run_at()


def group_of(*texts: str):
    return [reply(3 + i, text) for i, text in enumerate(texts)]


def values(*texts: str) -> list[float]:
    return [s.value for s in redundancy()([group_of(*texts)], RUN)[0]]


def test_redundancy_by_hand():
    # two equal replies, and one that shares a of three n-grams with each: cosines 1, 1/3, 1/3
    assert values("a 4", "a 4", "a 5") == pytest.approx([4 / 3, 4 / 3, 2 / 3], abs=1e-6)
    assert values("4", "4", "4", "4") == pytest.approx([3, 3, 3, 3])
    assert values("4") == [0.0]
    assert values("", "4") == [0.0, 0.0]


def test_right_replies_share_what_they_have_in_common_and_wrong_ones_earn_nothing():
    # right: 1 / (1 + 4/3) = 3/7 twice; wrong: 0, though it counts in the others' redundancy; no verdict stays none
    recipe = registry.build("dra_grpo")
    assert totals(recipe, [group_of("a 4", "a 4", "a 5")], RUN)[0] == pytest.approx([3 / 7, 3 / 7, 0], abs=1e-6)
    # 1 / (1 + 2/3) for the two alike, and 1 / (1 + 1/3 + 1/3): "x 4" shares 4 of three n-grams with "y 4" and with "z 4"
    assert totals(recipe, [group_of("x 4", "y 4", "z 4")], RUN)[0] == pytest.approx([0.6, 0.6, 0.6], abs=1e-6)
    assert totals(recipe, [group_of("?", "4")], RUN) == [[None, 1.0]]
    assert totals(recipe, [group_of("4")], RUN) == [[1.0]]


def test_the_credit_of_a_group_in_which_all_are_right():
    # "b 4" twice and "4": cosines 1 and 1/sqrt(3) = .577350;  R: 1/2.577350 = .387995 twice, 1/2.154701 = .464102
    # deviations from the mean .413364: -.025369 twice, .050738; unbiased std .043940;  / (std + 1e-4): -.576043, 1.152086
    found = credits(registry.build("dra_grpo"), [group_of("b 4", "b 4", "4"), group_of("4", "4")], RUN)
    assert found == pytest.approx([-0.57604, -0.57604, 1.15209, 0, 0], abs=1e-3)
    # Dr. GRPO does not divide
    assert credits(registry.build("dr_grpo+dra_grpo"), [group_of("b 4", "b 4", "4")], RUN) == pytest.approx(
        [-0.025369, -0.025369, 0.050738], abs=1e-5
    )


def test_the_released_trainers_weights_where_a_process_holds_one_problem():
    texts = ("3 + 4", "4 + 3 4", "1 + 3 = 4", "4")
    embeddings = F.normalize(torch.from_numpy(embedded(texts)), p=2, dim=1)
    weights = 1.0 / ((embeddings @ embeddings.T).sum(1) + 1e-6)
    assert totals(registry.build("dra_grpo"), [group_of(*texts)], RUN)[0] == pytest.approx(weights.tolist(), abs=1e-5)
