"""R1-Reward: which ratios and advantages count, what the referee reads, and what a judgement is paid."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from rewardlab import build
from rewardlab.core import Outputs, Run, Trajectory, Turn, ask
from rewardlab.credit.group import whiten
from rewardlab.engine.collate import collate
from rewardlab.judges.cases import Case, to_judge
from rewardlab.judges.named import form_of
from rewardlab.methods.judges.r1_reward_stablereinforce import (
    FORM,
    _told,
    end_of_analysis,
    preclipped_ratio,
    verdict_follows,
    within_sigmas,
)
from rewardlab.objectives.ratio import clipped_ratio
from tests.helpers.rows import Replies, batch_of, outcome

PAIR = ask("What is 17 + 5?", None, chosen="22", rejected="23")
GOOD = "<think>Reply A adds rightly.\n\nReply B is off by one.\nSo A is better.</think><answer>[[A]]</answer>"
TORN = "<think>Reply B is better.</think>\n<answer>[[A]]</answer>"
WRONG = "<think>Reply B is better.</think><answer>[[B]]</answer>"
BARE = "[[A]]"


def judged(texts) -> list[Trajectory]:
    question = to_judge(PAIR, Case(("22", "23"), (1.0, 0.0)), form_of(FORM))
    return [Trajectory(question, (Turn("policy", np.zeros(3, np.int64), text=x),), "end") for x in texts]


class Referee(Replies):
    """Says what it is told to, and keeps what it was asked."""

    def extend(self, trajectories, sampling, rng):
        self.asked = [t.problem.question for t in trajectories]
        return super().extend(trajectories, sampling, rng)


def with_referee(*says) -> Run:
    return Run(Replies([]), reference=Referee(says))


# ---- the loss ------------------------------------------------------------------------------------------------------------


def losses(part, log_ratios, credit):
    batch = batch_of([[("d" * len(log_ratios), {"r": outcome(1.0)})]])
    now = torch.tensor([log_ratios], requires_grad=True)
    batch = replace(batch, old=torch.zeros(1, len(log_ratios)))
    batch.credit = torch.tensor([credit])
    loss = part(Outputs(now), batch, Run(policy=None))
    loss.sum().backward()
    return loss[0].tolist(), now.grad[0].tolist()


def test_a_large_ratio_of_a_bad_token_gives_a_bounded_loss_and_no_gradient():
    # e^20 = 4.9e8 and, beyond what a float holds, e^200; A = -2
    plain, _ = losses(clipped_ratio(), [20.0, 200.0, 0.5], [-2.0] * 3)
    assert plain[0] > 9e8
    assert math.isinf(plain[1])
    loss, gradient = losses(preclipped_ratio(), [20.0, 200.0, 0.5], [-2.0] * 3)
    assert loss == pytest.approx([2000.0, 2000.0, 2 * math.exp(0.5)], rel=1e-5)
    assert gradient == pytest.approx([0.0, 0.0, 2 * math.exp(0.5)], rel=1e-5)


def test_within_its_bounds_it_is_the_clipped_loss():
    ratios, credit = [0.0, 0.1, 0.5, -0.5, -0.5, 3.0, -3.0], [1.0, -1.0, 2.0, 2.0, -2.0, -1.0, 1.0]
    assert losses(preclipped_ratio(), ratios, credit) == losses(clipped_ratio(), ratios, credit)
    # bounds within 1 +- eps come first
    assert losses(preclipped_ratio(high=1.1), [3.0], [-1.0])[0] == pytest.approx([1.1])


# ---- the advantages ------------------------------------------------------------------------------------------------------


def filtered(right: int, wrong: int, sigmas: float = 3.0):
    rows = [("rd", {"r": outcome(1.0)})] * right + [("rd", {"r": outcome(0.0)})] * wrong
    batch, run = batch_of([[row] for row in rows]), Run(policy=None)
    credit = (whiten() >> within_sigmas(sigmas=sigmas))(batch.reward, batch, run)
    return credit[:, 1].tolist(), run.metrics["outlying"]


def test_a_rare_verdict_is_an_outlier_and_gives_no_gradient():
    # of 20 rows one is wrong: mean .95, deviation sqrt(.0475 20 / 19) = .2236, so it lies at -4.25, and the others at .2236
    credit, outlying = filtered(19, 1)
    assert credit == pytest.approx([0.2236] * 19 + [0.0], abs=1e-4)
    assert outlying == pytest.approx(0.05)
    # of 10 at -2.846
    credit, outlying = filtered(9, 1)
    assert credit[-1] == pytest.approx(-2.846, abs=1e-3)
    assert outlying == 0.0
    assert filtered(9, 1, 2.0)[0][-1] == 0.0
    # as rare a right one, just so
    assert filtered(1, 19)[0][0] == 0.0


def test_equal_rewards_and_one_row_lose_nothing():
    assert filtered(8, 0) == ([0.0] * 8, 0.0)
    batch = batch_of([[("rd", {"r": outcome(1.0)})]])
    assert within_sigmas()(batch.reward, batch, Run(policy=None)).tolist() == batch.reward.tolist()


def test_rows_without_a_verdict_are_no_part_of_the_mean():
    rows = [("rd", {"r": outcome(1.0)})] * 19 + [("rd", {"r": outcome(0.0)})]
    more = [("rd", {"r": outcome(None)})] * 40
    batch, run = batch_of([[row] for row in rows + more]), Run(policy=None)
    credit = within_sigmas()(batch.reward, batch, run)
    # mean .95 of the twenty: with the others as zeros, the ones would lie beyond none of the bounds
    assert credit[:, 1].tolist() == [1.0] * 19 + [0.0] * 41
    assert run.metrics["outlying"] == pytest.approx(0.05)


# ---- the referee and the reward ------------------------------------------------------------------------------------------


def test_the_end_of_the_analysis_is_what_stands_before_the_verdict():
    form = form_of(FORM)
    assert end_of_analysis(GOOD, form, 3) == "Reply A adds rightly.\nReply B is off by one.\nSo A is better."
    assert end_of_analysis(GOOD, form, 1) == "So A is better."
    assert end_of_analysis("A long one.\nFirst [[B]], no. [[A]]", form, 1) == "First [[B]], no."
    assert end_of_analysis(BARE, form, 3) == ""


def test_the_referee_is_asked_of_right_verdicts_with_an_analysis():
    run = with_referee("[[yes]]", "[[no]]", "Hm.")
    scores = verdict_follows()([judged([GOOD, TORN, WRONG, BARE, GOOD])], run)
    assert [s.value for s in scores[0]] == [1.0, -1.0, 0.0, 0.0, 0.0]
    first, second, _ = run.reference.asked
    assert "So A is better.\n\n[Verdict]\nthe first reply, reply A, is better" in first
    assert "[End of the analysis]\nReply B is better.\n" in second
    assert run.metrics["follows"] == pytest.approx(1 / 3)


def test_a_referee_that_fails_gives_no_verdict():
    run = with_referee("[[yes]]")
    run.reference.context = 2
    assert verdict_follows()([judged([GOOD, WRONG])], run)[0][0].missing
    assert verdict_follows()([judged([GOOD, WRONG])], run)[0][1].value == 0.0


def test_what_a_judgement_is_paid_and_its_advantage():
    recipe, run = build("r1_reward_stablereinforce"), with_referee("[[yes]]", "[[no]]")
    # result (1 + consistency / 2) + format / 2
    texts = [GOOD, TORN, BARE, WRONG, "no idea"]
    scores = recipe.reward([judged(texts)], run)
    assert [s.total for s in scores[0]] == [2.0, 1.0, 1.0, 0.5, 0.0]
    run = with_referee("[[yes]]")
    group = judged([GOOD, WRONG, "no idea"])
    batch = collate([group], recipe.reward([group], run), torch.device("cpu"))
    batch = replace(batch, old=torch.zeros_like(batch.reward), columns={"ref": torch.zeros_like(batch.reward)})
    # 2, .5 and 0, three tokens each: mean 5/6, deviation .9014 over nine tokens
    credit = recipe.credit(batch.reward, batch, run)[:, 0].tolist()
    assert credit == pytest.approx([1.2943, -0.3698, -0.9245], abs=1e-3)


def test_without_consistency_nobody_is_asked():
    recipe = build("r1_reward_stablereinforce", {"consistency": 0.0, "formed": 0.0})
    assert [s.total for s in recipe.reward([judged([GOOD, TORN, WRONG])], Run(Replies([])))[0]] == [1.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("text", "formed"),
    [
        (GOOD, 1.0),
        ("A template has opened it.</think>\n\n<answer>[[B]]</answer>", 1.0),
        ("<think>one</think><think>two</think><answer>[[A]]</answer>", 0.0),
        ("<think></think><answer>[[A]]</answer>", 0.0),
        (GOOD + " I am sure.", 0.0),
        (BARE, 0.0),
    ],
)
def test_the_form_of_a_judgement(text, formed):
    recipe = build("r1_reward_stablereinforce", {"consistency": 0.0})
    (score,) = recipe.reward([judged([text])], Run(Replies([])))[0]
    assert score.terms["format_ok"].value == formed


def test_the_referee_may_be_another_model():
    assert build("r1_reward_stablereinforce").also == ()
    assert [x.name for x in build("r1_reward_stablereinforce", {"referee": "copy:policy"}).also] == ["judge"]
    assert build("r1_reward_stablereinforce", {"referee": "openai:http://localhost:1#x"}).also == ()


# ---- what its check counts -----------------------------------------------------------------------------------------------


def test_spikes_norms_and_cosines_of_drawn_batches():
    # two rows with orthogonal gradients of length 1; the true gradient is along the first minus the second
    products, truth = torch.eye(2).double(), torch.tensor([1.0, -1.0]).double()
    plain = [torch.tensor(x).double() for x in ([1.0, -1.0], [2.0, -2.0], [4.0, -4.0])]
    left_out = [torch.tensor(x).double() for x in ([1.0, 0.0], [0.0, 0.0], [4.0, -4.0])]
    found = _told({"plain": plain, "filtered": left_out}, products, truth)
    # norms sqrt(2) (1, 2, 4), whose 99th percentile is sqrt(2) (4 - .02 * 2); and 1, 0 and 4 sqrt(2) with the median 1
    assert found["spikes.plain"] == pytest.approx((4 - 0.04) / 2)
    assert found["spikes.filtered"] == pytest.approx(4 * math.sqrt(2) - 0.02 * (4 * math.sqrt(2) - 1))
    assert found["norm.plain"] == 1.0
    assert found["norm.filtered"] == pytest.approx(1 / (2 * math.sqrt(2)))
    assert found["cosine.plain"] == pytest.approx(1.0)
    # 1 / sqrt(2), nothing, and 1
    assert found["cosine.filtered"] == pytest.approx((math.sqrt(0.5) + 0 + 1) / 3)
    assert found["outlying"] == pytest.approx(2 / 3)
