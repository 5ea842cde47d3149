"""DAPO: asymmetric clipping, groups that tell replies apart, the mean over tokens, the price of length."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from rows import Replies, batch_of, row_of

from rewardlab import registry
from rewardlab.core import Outputs, Run, ask
from rewardlab.engine.collate import collate
from rewardlab.methods.baselines.dapo import overlong
from rewardlab.verifiers.match import final_number

RUN = Run(policy=None)


@pytest.mark.parametrize(("tokens", "paid"), [(1, 0.0), (16, 0.0), (17, -0.25), (18, -0.5), (20, -1.0), (30, -1.0)])
def test_length_is_punished_over_the_last_fifth_of_the_room(tokens, paid):
    # 20 tokens at most: free up to 16, then (16 - tokens) / 4; what is read is not counted
    [[score]] = overlong(cache=0.2)([[row_of("rrrrr" + "d" * tokens)]], Run(None, max_new=20))
    assert score.value == pytest.approx(paid)


@pytest.mark.parametrize(("roles", "paid"), [("rd" * 12 + "r", 0.0), ("r" + "d" * 17 + "rr" + "d" * 5, -0.25), ("rrr", 0.0)])
def test_of_the_replies_of_an_episode_the_longest_is_punished(roles, paid):
    # twelve replies of a token; one of 17 and one of 5, of which each may have 20; none
    assert overlong(cache=0.2)([[row_of(roles)]], Run(None, max_new=20))[0][0].value == pytest.approx(paid)


def test_no_cache_no_price():
    assert overlong(cache=0.0)([[row_of("d" * 20)]], Run(None, max_new=20))[0][0].value == 0.0


def drawn(said: list[str]) -> list[list[str]]:
    run = Run(Replies(said), verify=final_number())
    groups = registry.build("dapo", {"n": 2}).rollout([ask(q, "2") for q in "abc"], run)
    return [[t.reply for t in group] for group in groups]


def test_groups_all_right_or_all_wrong_are_left_out():
    assert drawn(["2", "2", "3", "2", "3", "4"]) == [["3", "2"]]


def test_a_step_without_such_groups_keeps_what_there_is():
    assert drawn(["2", "2", "3", "3", "3", "4"]) == [["2", "2"], ["3", "3"], ["3", "4"]]


def test_one_right_reply_of_many_is_enough():
    recipe = registry.build("dapo", {"n": 32})
    for right in (1, 31):
        run = Run(Replies(["2"] * right + ["3"] * (32 - right) + ["2"] * 32), verify=final_number())
        assert len(recipe.rollout([ask("a", "2"), ask("b", "2")], run)) == 1


def endless(run: Run, asked: list[int]):
    """Further problems for a run, each of which is answered "2" and "3" alike; notes how many are asked for."""

    def more(n: int):
        asked.append(n)
        run.policy.replies = ["2", "3"] * n if len(asked) > 1 else ["3", "3"] * n
        return [ask(f"more {len(asked)} {i}", "2") for i in range(n)]

    return more


def test_further_problems_fill_the_batch():
    run, asked = Run(Replies(["2", "2", "3", "2", "3", "4"]), verify=final_number()), []
    run.more_problems = endless(run, asked)
    groups = registry.build("dapo", {"n": 2}).rollout([ask(q, "2") for q in "abc"], run)
    # two of three groups say nothing; the next two neither, the two after them do
    assert asked == [2, 2]
    assert [g[0].problem.question for g in groups] == ["b", "more 2 0", "more 2 1"]


def test_attempts_are_bounded_and_a_batch_without_any_group_keeps_the_first():
    run, asked = Run(Replies(["2", "2", "3", "3"]), verify=final_number()), []
    run.more_problems = endless(run, asked)
    part = registry.build("dapo", {"n": 2, "attempts": 2}).rollout
    assert [[t.reply for t in g] for g in part([ask("a", "2"), ask("b", "2")], run)] == [["2", "2"], ["3", "3"]]
    assert asked == [2]


def test_rare_tokens_may_rise_further_than_they_may_fall():
    # min(1.25, 1.25);  min(1.5, 1.28);  min(.5 * -1, .8 * -1) = -.8;  min(1.5 * -1, 1.28 * -1) = -1.5
    ratios = torch.tensor([[1.25, 1.5, 0.5, 1.5]])
    batch = batch_of([[("dddd", {})]])
    batch.credit = torch.tensor([[1.0, 1.0, -1.0, -1.0]])
    loss = registry.build("dapo").objective(Outputs(logprobs=ratios.log()), batch, RUN)
    assert loss[0].tolist() == pytest.approx([-1.25, -1.28, 0.8, 1.5])
    # with the released script's bound a bad token loses 10 at ratio 30, and 30 by the paper's formula
    far = Outputs(logprobs=torch.tensor([[1.0, 1.0, 30.0, 9.0]]).log())
    assert registry.build("dapo", {"dual": 10.0}).objective(far, batch, RUN)[0].tolist() == pytest.approx([-1.0, -1.0, 10.0, 9.0])
    assert registry.build("dapo").objective(far, batch, RUN)[0].tolist() == pytest.approx([-1.0, -1.0, 30.0, 9.0])


def test_tokens_of_long_replies_weigh_as_much_as_those_of_short_ones():
    batch = batch_of([[("rd", {}), ("rddd", {})]])
    assert registry.build("dapo").weighting(batch)[batch.mask].tolist() == [0.25] * 4


def test_the_price_of_length_counts_in_the_advantage_beside_what_is_right():
    """In the paper right is 1, wrong -1 and the longest reply loses 1: a right one still earns more than a short wrong one.

    Here 1 - 1/2, 0 and 0: mean 1/6, deviations 1/3, -1/6, -1/6, std .288675. With 1 -1, -1 and -1 (there 0, -1, -1) as well.
    """
    recipe = registry.build("dapo")
    longest, wrong = (replace(row_of("d" * n), problem=ask("a", "2")) for n in (20, 2))
    group = [replace(t, turns=(replace(t.turns[0], text=text),)) for t, text in ((longest, "2"), (wrong, "3"), (wrong, "4"))]
    scores = recipe.reward([group], Run(None, max_new=20, verify=final_number()))
    assert [s.total for s in scores[0]] == pytest.approx([0.5, 0.0, 0.0])
    batch = collate([group], scores, torch.device("cpu"))
    credit = recipe.credit(batch.reward, batch, RUN)
    assert credit[:, 0].tolist() == pytest.approx([1.1547, -0.57735, -0.57735], abs=1e-3)
    # that of rewards of 1 and -1, and the whole price of length
    paper = torch.tensor([0.0, -1.0, -1.0])
    assert torch.allclose((paper - paper.mean()) / paper.std(), credit[:, 0], atol=1e-3)
