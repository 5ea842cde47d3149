"""AnytimeReasoner: thinking judged at several budgets, with its own earlier answers in the baseline."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run, Score, Trajectory, Turn, ask, rollout
from rewardlab.engine.collate import collate
from rewardlab.errors import RewardlabError
from rewardlab.evals.advantages import advantage_variance
from rewardlab.methods.credit.anytime_reasoner_brpo import (
    anytime_reasoner_brpo,
    budget_advantages,
    by_its_answers,
    check,
    relative_to_budgets,
    under_budgets,
)
from rewardlab.models.embedded import untrained
from rewardlab.rewards.reward import reward
from rewardlab.rollouts.independent import independent

UNIFORM = torch.full((2,), 0.5)


def row(tokens: int, tag: str, says: str = "", steps=()) -> Trajectory:
    logprobs = np.zeros(tokens, np.float32)
    turns = (Turn(None, np.zeros(1, np.int64)), Turn("policy", np.zeros(tokens, np.int64), logprobs, logprobs, says))
    return Trajectory(ask("?"), turns, "end", tag=tag, steps=steps)


@reward
def said(trajectory):
    return Score(None, why="none") if trajectory.reply == "?" else float(trajectory.reply)


def answers(*texts: str):
    return [row(1, "answer", text) for text in texts]


def two_traces():
    """Of 4 and 2 tokens, with budgets of 2 and 4: the first reaches both, the second one, with twice as many answers there."""
    thinking = [row(4, "thinking", steps=(2, 4)), row(2, "thinking", steps=(2,))]
    return [thinking, answers("1", "0"), answers("1", "1"), answers("0", "0", "1", "0")]


def batch_of(groups):
    return collate(groups, by_its_answers(inner=said())(groups, Run(policy=None)), torch.device("cpu"))


def test_the_baselines_by_hand():
    # r: .5 1 and .25 .25, p 1/2: R_0 = .75, .25, R_1 = .5, .125; their means .5, .3125
    r = torch.tensor([[0.5, 1.0], [0.25, 0.25]])
    assert budget_advantages(r, UNIFORM, "none").tolist() == [[0.75, 0.5], [0.25, 0.125]]
    assert budget_advantages(r, UNIFORM, "group").tolist() == [[0.25, 0.1875], [-0.25, -0.1875]]
    # s = 1: V1 = .5 * 1/2, .25 * 1/2;  V = (V1 + V2) / 2 = .28125, .21875
    assert budget_advantages(r, UNIFORM, "budget").tolist() == [[0.25, 0.21875], [-0.25, -0.09375]]
    # one trace has no group: V2 is 0;  s = 2 of 3: V1 = (1 * 0 + 2 * 1) / 3 * p_2,  V = 2/3 V1
    third = torch.full((3,), 1 / 3)
    found = budget_advantages(torch.tensor([[0.0, 1.0, 1.0]]), third, "budget")[0]
    assert found.tolist() == pytest.approx([2 / 3, 2 / 3, 1 / 3 - 2 / 3 * 2 / 9])


def test_the_advantages_of_every_token():
    batch = batch_of(two_traces())
    found = relative_to_budgets(cuts=2)(batch.reward, batch, Run(policy=None))
    # the second trace ends within the first budget: it earns .25 at both, and its tokens get the first advantage
    assert found[0].tolist() == pytest.approx([0, 0.25, 0.25, 0.21875, 0.21875])
    assert found[1].tolist() == pytest.approx([0, -0.25, -0.25, 0, 0])
    # answers: less the mean of those after the same thinking
    assert found[2:, 1].tolist() == pytest.approx([0.5, -0.5, 0, 0, -0.25, -0.25, 0.75, -0.25])
    # linear: p = 1/3, 2/3: R_0 = 5/6, 1/4
    linear = relative_to_budgets(cuts=2, prior="linear", baseline="none")(batch.reward, batch, Run(policy=None))
    assert linear[:2, 1].tolist() == pytest.approx([0.5 / 3 + 2 / 3, 0.25])


def test_missing_verdicts():
    groups = two_traces()
    groups[2] = answers("?", "?")
    groups[3] = answers("?", "1")
    batch = batch_of(groups)
    # the first trace has no verdict, so that the second is alone: V2 is 0
    found = relative_to_budgets(cuts=2)(batch.reward, batch, Run(policy=None))
    assert not found[0].any()
    assert found[1, 1].item() == pytest.approx(1.0)
    assert not found[4:7].any()
    assert by_its_answers(inner=said())([answers("1", "?")], Run(policy=None))[0][1].missing


def test_thinking_is_cut_and_answers_are_sampled_after_it():
    policy = untrained(0, hidden=32, layers=1)
    run = Run(policy, max_new=64)
    groups = under_budgets(inner=independent(n=2), longest=8, cuts=4, answers=3, tokens=2)([ask("What?", "1")], run)
    thinking = groups[0]
    assert [t.tag for t in thinking] == ["thinking"] * 2
    assert all(t.mask.sum() <= 8 for t in thinking)
    places = [(t, at) for t in thinking for at in t.steps]
    assert len(groups) == 1 + len(places)
    for (t, at), group in zip(places, groups[1:], strict=True):
        left = 4 - (len(t.steps) - 1) if at == t.steps[-1] else 1
        assert len(group) == 3 * left
        for answer in group:
            # nothing but the answer is decided; before it stands the thinking so far, and the mark
            assert answer.mask.sum() == len(answer.turns[-1].ids) <= 2
            assert answer.reply.startswith("Answer:")
            read = answer.ids[: len(answer) - len(answer.turns[-1].ids)]
            assert read[: at + 1].tolist() == t.ids[: at + 1].tolist() or t.stop == "end"
            assert policy.decode(read).endswith("\nAnswer:")


def test_thinking_that_ends_with_the_mark_is_not_marked_again():
    policy = untrained(0, hidden=32, layers=1)

    @rollout
    def given(problems, run, *, stop=(), n: int = 1):
        (prompt,) = policy.read([Trajectory(problems[0])], [problems[0].prompt])
        (t,) = policy.write([prompt], ["1+1=2\nAnswer:"])
        return [[replace(t.cut(len(t) - 1, policy.decode), stop="stop")]]

    groups = under_budgets(inner=given(), longest=32, cuts=2, answers=2, tokens=2)([ask("1+1?", "2")], Run(policy))
    assert [len(g) for g in groups] == [1, 4]
    assert policy.decode(groups[1][0].ids).count("Answer:") == 1
    assert groups[1][0].reply.startswith("Answer:")


def test_the_end_of_thinking_and_what_asks_for_an_answer_may_differ():
    policy = untrained(0, hidden=32, layers=1)

    @rollout
    def given(problems, run, *, stop=(), n: int = 1):
        assert stop == ("</think>",)
        (prompt,) = policy.read([Trajectory(problems[0])], [problems[0].prompt])
        (t,) = policy.write([prompt], ["1+1=2. So it is 2.</think>"])
        return [[replace(t.cut(len(t) - 1, policy.decode), stop="stop")]]

    made = anytime_reasoner_brpo(n=1, cuts=2, answers=1, tokens=2, longest=32, mark="</think>", ask="\n\nSo it is ")
    _, cut_off, whole = made.rollout.but(inner=given())([ask("?", "2")], Run(policy))
    # thinking that was cut off is closed, thinking that has ended is not closed again; then both are asked
    for answer in (*cut_off[:1], *whole[:1]):
        read = policy.decode(answer.ids[: len(answer) - len(answer.turns[-1].ids)])
        assert read.endswith("</think>\n\nSo it is ")
        assert read.count("</think>") == 1
        assert answer.reply.startswith("</think>\n\nSo it is ")
    # by default nothing stands between the mark and an answer
    assert anytime_reasoner_brpo().rollout.settings["ask"] == ""


def test_more_budgets_than_tokens_are_refused():
    # two of them would be the same, and credit would take one for the other
    with pytest.raises(RewardlabError, match="no 4 different budgets"):
        under_budgets(inner=independent(n=2), longest=3, cuts=4)([ask("What?", "1")], Run(untrained(0, hidden=32, layers=1)))


def test_thinking_may_be_as_long_as_a_reply_unless_a_length_is_given():
    run = Run(untrained(0, hidden=32, layers=1), max_new=6)
    thinking = anytime_reasoner_brpo(n=2, tokens=2).rollout([ask("What?", "1")], run)[0]
    assert max(int(t.mask.sum()) for t in thinking) <= 6
    # budgets of 1, 3, 4 and 6 tokens: replies of 6 of them reach all four
    starts = [int(np.flatnonzero(t.mask)[0]) for t in thinking if int(t.mask.sum()) == 6]
    ends = [t.steps for t in thinking if int(t.mask.sum()) == 6]
    assert ends
    assert ends == [tuple(at + k for k in (0, 2, 3, 5)) for at in starts]
    shorter = anytime_reasoner_brpo(n=2, tokens=2, longest=4).rollout([ask("What?", "1")], run)[0]
    assert max(int(t.mask.sum()) for t in shorter) == 4


def test_the_variance_of_advantages_by_hand():
    @rollout
    def given(problems, run):
        return two_traces()

    credits = {kind: relative_to_budgets(cuts=2, baseline=kind) for kind in ("budget", "group")}
    measure = advantage_variance(rollout=given(), reward=by_its_answers(inner=said()), credits=credits, tag="thinking")
    run = Run(policy=untrained(0, hidden=32, layers=1))
    found = measure([], run)
    assert found["variance.group"] == pytest.approx(float(np.var([0.25, 0.25, 0.1875, 0.1875, -0.25, -0.25], ddof=1)))
    assert found["variance.budget"] == pytest.approx(float(np.var([0.25, 0.25, 0.21875, 0.21875, -0.25, -0.25], ddof=1)))
    assert found["n"] == 2.0
    with pytest.raises(RewardlabError, match="with the tag 'other'"):
        advantage_variance(rollout=given(), reward=by_its_answers(inner=said()), credits=credits, tag="other")([], run)


def test_its_parts_and_its_claim():
    made = registry.build("anytime-reasoner-brpo", {"n": 3, "cuts": 2})
    assert made.rows_per_problem == 3
    assert "correct" in str(anytime_reasoner_brpo().reward)
    assert check.by.settings["credits"]["budget"] == anytime_reasoner_brpo().credit
