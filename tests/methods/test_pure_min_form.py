"""PURE: a reply is worth its worst step."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
import torch
from rows import batch_of, outcome, row_of, steps

from rewardlab import api, build
from rewardlab.core import Problem, Run, ask
from rewardlab.credit.group import subtract_mean_return
from rewardlab.credit.value import to_go
from rewardlab.errors import RewardlabError
from rewardlab.methods.credit.pure_min_form import of_known_problems, pure_min_form, soft_minimum
from rewardlab.rewards.steps import correct_steps
from rewardlab.rewards.task import correct
from tests.helpers.checkpoints import checkpoint

RUN = Run(policy=None)


def test_the_softmin_shares_a_row_by_how_bad_its_steps_are():
    # rewards 1, -1, 0 at T = 1: weights e^-1, e^1, e^0 over their sum .367879 + 2.718282 + 1 = 4.086161: .090031, .665241, .244728
    # r*: .090031, -.665241, 0
    batch = batch_of([[("rdddd", {"s": steps({1: 1, 2: -1, 4: 0})}), ("rd", {"s": steps({1: 0.5})})]])
    found = soft_minimum(temperature=1.0)(batch.reward, batch, RUN)
    assert found[0].tolist() == pytest.approx([0, 0.090031, -0.665241, 0, 0], abs=1e-6)
    assert found[1].tolist() == pytest.approx([0, 0.5, 0, 0, 0])


def test_cold_the_return_is_the_least_reward_up_to_the_worst_step_and_nothing_after():
    batch = batch_of([[("rdddd", {"s": steps({1: 0.9, 2: -0.4, 4: 0.8})})]])
    chain = soft_minimum(temperature=1e-3) >> to_go()
    assert chain(batch.reward, batch, RUN)[0].tolist() == pytest.approx([0, -0.4, -0.4, 0, 0], abs=1e-6)


def test_padding_with_paid_steps_raises_the_sum_and_not_the_minimum():
    short, padded = steps({1: 1.0}), steps({1: 1.0, 2: 1.0, 3: 1.0, 4: 1.0})
    batch = batch_of([[("rdddd", {"s": short}), ("rdddd", {"s": padded})]])
    assert batch.reward.sum(1).tolist() == [1, 4]
    assert soft_minimum()(batch.reward, batch, RUN).sum(1).tolist() == pytest.approx([1, 1])


def test_a_row_without_a_verdict_stays_finite_and_without_credit():
    batch = batch_of([[("rdd", {"s": steps({1: 1.0})}), ("rdd", {"s": outcome(None)})]])
    assert soft_minimum()(batch.reward, batch, RUN)[1].tolist() == [0, 0, 0]


def test_the_baseline_is_one_number_from_the_others_returns_per_token():
    # returns, row 0: 2, 2, 1 (sum 5);  row 1: 4, 4 (sum 8);  row 2 has no verdict;  at most 4 tokens a reply
    # row 0 less 8/4: 0, 0, -1;  row 1 less 5/4: 11/4, 11/4;  row 2: nothing
    rows = [("rddd", {"s": steps({2: 1, 3: 1})}), ("rdd", {"s": steps({2: 4})}), ("rddd", {"s": outcome(None)})]
    batch = batch_of([rows, [("rd", {"s": steps({1: 7})})]])
    chain = to_go() >> subtract_mean_return()
    by_hand = [[0, 0, 0, -1], [0, 2.75, 2.75, 0], [0] * 4, [0] * 4]
    assert chain(batch.reward, batch, Run(None, max_new=4)).tolist() == by_hand
    assert (to_go() >> subtract_mean_return(length=4))(batch.reward, batch, RUN).tolist() == by_hand


def test_wrong_replies_are_not_paid_for_steps():
    """Two replies whose steps are all wrong, of 4 and 2 steps: none is better, and no step of either is worth adding."""
    # r* -1/4 each and -1/2 each; returns -1, -3/4, -1/2, -1/4 and -1, -1/2; their sums per 8 tokens -5/16 and -3/16
    four, two = steps(dict.fromkeys((1, 2, 3, 4), -1.0)), steps(dict.fromkeys((1, 2), -1.0))
    batch = batch_of([[("rdddd", {"correct_steps": four}), ("rdd", {"correct_steps": two})]])
    part = pure_min_form().credit.of[0].settings["chains"]["correct_steps"]
    found = part(batch.reward, batch, Run(None, max_new=8))
    assert found[0, 1:].tolist() == pytest.approx([-13 / 16, -9 / 16, -5 / 16, -1 / 16])
    assert found[1, 1:3].tolist() == pytest.approx([-11 / 16, -3 / 16])
    assert found[0, 1] < found[1, 1] < 0  # the longer one begins no better


def test_the_outcome_counts_for_a_share_of_the_problems_alone():
    problems = [ask(f"question {i}") for i in range(400)]
    batch = batch_of([[("rd", {"correct": outcome(1.0)})] for _ in problems])
    batch.rows = [(replace(t, problem=p), s) for p, (t, s) in zip(problems, batch.rows, strict=True)]
    known = of_known_problems(share=0.25)(torch.ones(400, 2), batch, RUN)[:, 0]
    assert float(known.sum()) == pytest.approx(100, abs=4 * math.sqrt(400 * 0.25 * 0.75))  # four standard deviations
    assert not of_known_problems(share=0.0)(torch.ones(400, 2), batch, RUN).any()


def test_both_terms_by_hand():
    # step rewards 1, -1 | 1, 1 at T = .1: e^-10 / (e^-10 + e^10) is 0 to 8 digits: r* = 0, -1 | 1/2, 1/2
    #   returns -1, -1, -1 (sum -3) | 1, 1, 1/2 (sum 5/2);  per 10 tokens -.3 | .25;  less the other's: -5/4 x 3 | 1.3, 1.3, .8
    # outcomes 0 | 1, leave one out: -1 | 1;  together -2.25 x 3 | 2.3, 2.3, 1.8
    # mean -.35/6; squares 3 x 5.0625 + 2 x 5.29 + 3.24 = 29.0075; variance (29.0075 - .1225/6) / 5 = 5.797417, std 2.407783
    def row(first, second, right):
        return "rddd", {"correct_steps": steps({2: first, 3: second}), "correct": outcome(right)}

    batch = batch_of([[row(1, -1, 0), row(1, 1, 1)]])
    found = pure_min_form(share=1.0).credit(batch.reward, batch, Run(None, max_new=10))
    by_hand = [[(x + 0.35 / 6) / 2.407783 for x in r] for r in ([-2.25] * 3, [2.3, 2.3, 1.8])]
    assert found[:, 1:].tolist() == [pytest.approx(r, abs=1e-5) for r in by_hand]


def test_the_outcome_may_weigh_more_than_the_steps():
    # with steps 1, -1 | 1, 1 as above, returns -1.25 x 3 | 1.3, 1.3, .8 and outcomes 10 times: -11.25 x 3 | 11.3, 11.3, 10.8
    #   mean -.35/6; squares 3 x 126.5625 + 2 x 127.69 + 116.64 = 751.7075; variance (751.7075 - .1225/6) / 5, std 12.261226
    recipe = pure_min_form(share=1.0, outcome=10.0)
    assert "10 * correct()" in str(recipe.reward)

    def row(first, second, right):
        return "rddd", {"correct_steps": steps({2: first, 3: second}), "correct": outcome(right, 10.0)}

    batch = batch_of([[row(1, -1, 0), row(1, 1, 1)]])
    found = recipe.credit(batch.reward, batch, Run(None, max_new=10))
    by_hand = [[(x + 0.35 / 6) / 12.261226 for x in r] for r in ([-11.25] * 3, [11.3, 11.3, 10.8])]
    assert found[:, 1:].tolist() == [pytest.approx(r, abs=1e-5) for r in by_hand]


def test_wrong_steps_may_cost():
    problem = Problem((), "12", {"steps": ["7+5=12"]})
    trajectory = row_of("rdd")
    turns = (trajectory.turns[0], replace(trajectory.turns[1], text="7+5=13\nAnswer: 12"))
    said = replace(trajectory, problem=problem, turns=turns, steps=(1, 2))
    assert correct_steps(wrong=-1.0)([[said]])[0][0].steps == ((1, -1.0), (2, -1.0))
    assert correct_steps()([[said]])[0][0].steps == ((1, 0.0), (2, 0.0))


def test_further_rewards_are_taken_for_outcomes():
    # steps and outcomes are alike in both rows; a third term 2 | 0, leave one out 2 | -2; over four tokens std sqrt(16/3)
    def row(extra):
        return "rdd", {"correct_steps": steps({2: 1}), "correct": outcome(1), "brief": outcome(extra)}

    batch = batch_of([[row(2), row(0)]])
    found = pure_min_form(share=1.0).credit(batch.reward, batch, RUN)
    assert found[:, 1:].tolist() == [pytest.approx([0.866025] * 2, abs=1e-5), pytest.approx([-0.866025] * 2, abs=1e-5)]


def test_it_is_paid_by_the_users_process_reward_model(tmp_path, words):
    """As `rewardlab train pure_min_form --prm prm:FOLDER` does; a reward without a part of that name is told what to write."""
    checkpoint(tmp_path / "prm", words, "LlamaForTokenClassification", num_labels=2)
    recipe = build("pure_min_form", {"prm": f"prm:{tmp_path / 'prm'}", "n": 2, "problems": 2})
    assert "signed(prm_steps()" in str(recipe.reward)
    small = {"steps": 1, "max_new": 12, "eval_problems": 0, "device": "cpu"}
    result = api.train(recipe, "untrained", "arithmetic", out=tmp_path / "run", **small)
    row = json.loads((result.out / "metrics.jsonl").read_text().splitlines()[-1])
    assert -1 < row["reward/correct_steps"] < 1
    other = build("pure_min_form", {"n": 2, "problems": 2}).but(reward=correct())
    with pytest.raises(RewardlabError, match=r"'correct_steps'; .*\(PART\).named\('correct_steps'\)"):
        api.train(other, "untrained", "arithmetic", out=tmp_path / "other", **small)
