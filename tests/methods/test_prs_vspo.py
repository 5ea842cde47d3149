"""PRS with VSPO: rewards in stages, and prompts drawn by value in place of groups without a signal."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run, Score, Trajectory, Turn, ask
from rewardlab.engine.collate import collate
from rewardlab.methods.shaping.prs_vspo import cap_prompts, claim, length_aware_bleu, staged, texts_of
from rewardlab.rewards.reward import reward


@reward
def formed(trajectory):
    return Score(None, why="no verdict") if trajectory.reply == "?" else float(trajectory.reply[0] == "f")


@reward
def graded(trajectory):
    return float(trajectory.reply[1:] or 0)


@reward
def verify(trajectory):
    return float(trajectory.reply.endswith("right"))


def group(*replies: str, question: str = "what?") -> list[Trajectory]:
    def row(text: str) -> Trajectory:
        ids, logprobs = np.zeros(2, np.int64), np.zeros(2, np.float32)
        return Trajectory(ask(question), (Turn(None, np.zeros(1, np.int64)), Turn("policy", ids, logprobs, logprobs, text)), "end")

    return [row(text) for text in replies]


def stages(*replies: str, at: float = 1.0, by=None) -> list[float | None]:
    return [s.total for s in (by or staged(formed(), graded(), at=at))([group(*replies)], Run(policy=None))[0]]


def test_a_stage_is_paid_only_once_the_one_before_it_is_complete():
    # of two stages: form alone 1/2, form and a grade of .6: .8;  a grade without the form: nothing
    assert stages("f0", "f0.6", "f1", "x1", "?") == [0.5, pytest.approx(0.8), 1.0, 0.0, None]


def test_what_completes_a_stage_is_a_setting_and_there_may_be_many():
    three = staged(graded().named("first"), formed(), graded(), at=0.5)
    # f0.6: .6 completes, then the form, then .6 again;  f0.4: the first stage alone;  x0.9: the form is missing
    assert stages("f0.6", "f0.4", "x0.9", by=three) == pytest.approx([2.2 / 3, 0.4 / 3, 0.9 / 3])


def test_a_batch_that_is_all_wrong_still_has_a_signal():
    recipe, run = registry.build("prs_vspo"), Run(policy=None, verify=verify())
    groups = [group("Answer: wrong", "none", "none")]
    batch = collate(groups, recipe.reward(groups, run), torch.device("cpu"))
    credit = recipe.credit(batch.reward, batch, run)
    # rewards 1/2, 0, 0: mean 1/6, deviations 1/3, -1/6, -1/6; std sqrt((1/9 + 2/36) / 2) = .288675
    assert credit[:, 1].tolist() == pytest.approx([1.154301, -0.577150, -0.577150], abs=1e-4)
    grpo = registry.build("grpo")
    plain = collate(groups, grpo.reward(groups, run), torch.device("cpu"))
    assert not grpo.credit(plain.reward, plain, run).any()


def test_a_prompt_that_was_drawn_often_weighs_like_as_many_groups_as_the_cap_allows():
    groups = [group("f1", "f0"), group("f1", "f0", question="other?"), group("f1", "f0"), group("f1", "f0")]
    run = Run(policy=None)
    batch = collate(groups, staged(formed(), graded())(groups, run), torch.device("cpu"))
    a = torch.ones_like(batch.reward)
    # three groups of one prompt: 2/3 each
    assert cap_prompts(max_groups=2.0)(a, batch, run)[::2, 0].tolist() == pytest.approx([2 / 3, 1.0, 2 / 3, 2 / 3])
    assert run.metrics["most_repeated"] == 3
    assert cap_prompts(max_groups=3.0)(a, batch, run)[:, 0].tolist() == [1.0] * 8


def test_the_stages_end_with_the_bases_own_reward_or_with_a_quality():
    assert str(registry.build("prs_vspo").reward) == "staged(answer_given(), graded(correct(), partly_right()))"
    own = registry.build("prs_vspo", {"quality": graded(), "form": "f.*"})
    assert str(own.reward) == "staged(format_ok(pattern='f.*'), graded())"
    stacked = registry.build("dapo+prs_vspo")
    assert stacked.rollout.contains(registry.build("dapo").rollout)
    assert stacked.rollout.settings["reward"] == stacked.reward


def test_texts_are_graded_by_a_bleu_that_knows_their_length():
    # as many words as the answer has: a right short answer is worth 1
    assert length_aware_bleu("Marie Curie", "Marie Curie") == pytest.approx(1)
    # one of one word, and of two a pair of none, smoothed: (0 + 1) / (0 + 1); too short by half: exp(1 - 2 / 1)
    assert length_aware_bleu("Curie", "Marie Curie") == pytest.approx(np.exp(-1))
    # 2 of 3 words, (1 + 1) / (2 + 1) pairs: sqrt(4 / 9)
    assert length_aware_bleu("Marie Curie Sklodowska", "Marie Curie") == pytest.approx(2 / 3)
    assert length_aware_bleu("", "Marie Curie") == 0
    assert texts_of("Marie Curie") == ["Marie Curie"]
    assert texts_of(["42", "B", "\\frac{1}{2}", "x = 3", "3 1", "New York"]) == ["New York"]
    assert texts_of(None) == texts_of({"a": 1}) == []


def test_a_partly_right_text_is_worth_something_by_default():
    run = Run(policy=None, verify=registry.part("reward", "final_answer"))

    def rows(answer, *replies):
        return [replace(t, problem=ask("Who?", answer)) for t in group(*replies)]

    found = rows("Marie Curie", "Answer: Marie Curie", "So the answer is **Marie Curie Sklodowska**", "Answer: Ada Lovelace", "hm")
    numbers = rows("12", "Answer: 12", "Answer: 13")
    scores = registry.build("prs_vspo").reward([found, numbers], run)
    assert [s.total for s in scores[0]] == pytest.approx([1.0, (1 + 2 / 3) / 2, 0.5, 0.0], abs=1e-3)
    assert [s.total for s in scores[1]] == [1.0, 0.5]
    # neither side of the claim reads gold steps, and both sample as many replies
    assert claim.settings == {"n": 8, "beta": 0.0}
    assert claim.versus_settings == {}
