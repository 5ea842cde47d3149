"""CGPO: constraints, a cap on the KL, and one baseline for the batch."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from rows import Replies, batch_of, outcome

from rewardlab import registry
from rewardlab.core import Run, Score, Trajectory, Turn, ask
from rewardlab.credit.group import center_batch
from rewardlab.credit.kl import fade_to_kl
from rewardlab.engine.collate import collate
from rewardlab.methods.shaping.cgpo_mixture_of_judges import ONE_ANSWER
from rewardlab.rewards.format import format_ok
from rewardlab.rewards.reward import reward


@reward
def said(trajectory):
    """The number that a reply begins with, as a reward model's score."""
    return float(trajectory.reply.split()[0])


@reward
def verify(trajectory):
    return None if "?" in trajectory.reply else float("right" in trajectory.reply) + 0.5 * ("half" in trajectory.reply)


@reward
def polite(trajectory):
    return Score(float("please" in trajectory.reply), why="says please")


def reply(text: str, question: str = "how much?") -> Trajectory:
    ids, logprobs = np.zeros(2, np.int64), np.zeros(2, np.float32)
    turns = (Turn(None, np.zeros(1, np.int64)), Turn("policy", ids, logprobs, logprobs, text))
    return Trajectory(ask(question), turns, "end")


def run(*references: str) -> Run:
    return Run(policy=None, verify=verify(), reference=Replies(references))


def built(**settings):
    return registry.build("cgpo_mixture_of_judges", {"score": said(), **settings})


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def totals(*texts: str, **settings) -> list[float | None]:
    return [s.total for s in built(**settings).reward([[reply(text) for text in texts]], run("1"))[0]]


def test_a_constraint_that_is_broken_leaves_nothing_whatever_the_score():
    # the reference scores 1; half right is not right
    assert totals("1 right", "3 right", "99 wrong", "99 half", "5 ?") == [0.5, pytest.approx(sigmoid(2)), 0.0, 0.0, None]


def test_all_judges_must_agree():
    judges = verify() * polite()
    assert totals("2 right please", "9 right", "9 please", judges=judges) == [pytest.approx(sigmoid(1)), 0.0, 0.0]


def test_a_form_can_be_the_judge():
    assert totals("2 right", "9 wrong", "3 ?", form=r"[0-8] .*") == [pytest.approx(sigmoid(1)), 0.0, pytest.approx(sigmoid(2))]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("7+5=12\n12*3=36\nAnswer: 36", True),
        ("7+5=12\n12*3=36\nAnswer: 26 or 36 or 46", False),
        ("Answer: 26\nAnswer: 36", False),
        ("36", False),
    ],
)
def test_the_claims_judge_lets_one_answer_pass(text, kept):
    assert format_ok(pattern=ONE_ANSWER)([[reply(text)]], Run(policy=None))[0][0].value == float(kept)


# log pi_old - log ref of the decided positions: 1 and 1, 2 and 3, 0 and 10, -2: sums 2, 5, 10, -2;  factors with 4: 1/2, 0, 0, 3/2
KL = {"ref": [[0, -1, -1], [0, -2, -3], [0, 0, -10], [0, 2]]}
ROWS = [[("rdd", {"r": outcome(0.8)}), ("rdd", {"r": outcome(0.8)})], [("rdd", {"r": outcome(1.0)}), ("rd", {"r": outcome(0.4)})]]


def test_rewards_fade_to_nothing_at_the_cap():
    batch, one = batch_of(ROWS, KL), Run(policy=None)
    faded = fade_to_kl(max_kl=4.0)(batch.reward, batch, one)
    assert faded.sum(1).tolist() == pytest.approx([0.4, 0.0, 0.0, 0.6])
    # where the policy decided nothing, log-probs may be anything
    assert one.metrics["kl"] == pytest.approx((2 + 5 + 10 - 2) / 4)


def test_long_replies_fade_by_their_tokens_and_short_ones_as_without_them():
    batch, one = batch_of(ROWS, KL), Run(policy=None)
    # 3 nats a token: 6, 6, 6 for the replies of two tokens, and 4 for the one of one:  .8 (2/3, 1/6), 1 max(0, -2/3), .4 (1 + 1/2)
    faded = fade_to_kl(max_kl=4.0, per_token=3.0)(batch.reward, batch, one)
    assert faded.sum(1).tolist() == pytest.approx([0.8 * 2 / 3, 0.8 / 6, 0.0, 0.6])
    assert one.metrics["faded"] == 1 / 4
    fade_to_kl(max_kl=4.0)(batch.reward, batch, one)
    assert one.metrics["faded"] == 2 / 4


def test_a_reply_of_2000_tokens_that_moved_a_little_is_still_paid():
    credit = built().credit
    fade = next(part for part in credit.walk() if part.name == "fade_to_kl")
    rows = [[("r" + "d" * 2000, {"r": outcome(1.0)})]]
    batch = batch_of(rows, {"ref": [[0.0] + [-0.01] * 2000]})
    # 20 nats of 200
    assert fade(batch.reward, batch, Run(policy=None)).sum() == pytest.approx(0.9)


def test_one_baseline_for_all_prompts_and_none_from_replies_without_a_verdict():
    rows = [[("rd", {"r": outcome(1.0)}), ("rd", {"r": outcome(0.0)})], [("rd", {"r": outcome(None)}), ("rd", {"r": outcome(0.5)})]]
    batch = batch_of(rows)
    assert center_batch()(batch.reward, batch, Run(policy=None))[:, 1].tolist() == [0.5, -0.5, 0.0, 0.0]
    nobody = batch_of([[("rd", {"r": outcome(None)})]])
    assert not center_batch()(nobody.reward, nobody, Run(policy=None)).any()


def test_a_prompt_that_is_harder_than_the_others_gets_less_credit_for_all_its_replies():
    recipe, one = built(kl_max=4.0), run("1", "1")
    groups = [[reply("1 right"), reply("1 right")], [reply("1 wrong", "and here?"), reply("3 right", "and here?")]]
    batch = collate(groups, recipe.reward(groups, one), torch.device("cpu"))
    batch.columns["ref"] = torch.zeros_like(batch.old)
    batch.columns["ref"][3, 1:] = -1.0  # two nats from the reference: half is paid
    credit = recipe.credit(batch.reward, batch, one)
    # rewards 1/2, 1/2, 0 and sigmoid(2) / 2 = .440399: mean .360100
    expected = torch.tensor([0.139900, 0.139900, -0.360100, 0.080299])[:, None] * batch.mask
    assert torch.allclose(credit, expected, atol=1e-5)


def test_alone_it_calibrates_a_reward_models_score_and_has_no_kl_in_the_loss():
    recipe = registry.build("cgpo_mixture_of_judges")
    assert str(recipe.reward) == "threshold(correct(), at=1) >> preferred(inner=model_score())"
    assert str(recipe.objective) == "policy_gradient()"
    assert "ref" in recipe.needs
