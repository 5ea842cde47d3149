"""SAR: how much likelier a reply is after its question than after none."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from rows import Replies

from rewardlab import registry
from rewardlab.core import Run, Score, Trajectory, Turn, ask
from rewardlab.engine.collate import collate
from rewardlab.rewards.intrinsic import self_alignment
from rewardlab.rewards.reward import reward


class Scorer(Replies):
    """A prompt is one token, 1 with a question and 0 without; `nats` says what each token of a reply costs, (with, without)."""

    def __init__(self, nats):
        super().__init__([])
        self.nats = nats

    def read(self, trajectories, messages):
        return [t.plus(Turn(None, np.array([int(bool(m[-1].text))]))) for t, m in zip(trajectories, messages, strict=True)]

    def score(self, trajectories):
        rows = []
        for t in trajectories:
            asked = bool(t.ids[0])
            rows.append(
                np.array([-self.nats[int(i)][0 if asked else 1] if own else 9.0 for i, own in zip(t.ids, t.mask, strict=True)])
            )
        return rows


def row(*tokens: int, told: int | None = None) -> Trajectory:
    prompt = Turn(None, np.array([1]))
    turns = [prompt, Turn("policy", np.array(tokens, np.int64), text="reply")]
    turns += [Turn(None, np.array([told])), Turn("policy", np.array(tokens, np.int64), text="reply")] if told is not None else []
    return Trajectory(ask("Q", "right"), tuple(turns), "end")


# token 2 is about the question: ppl 2 with it, 8 without; token 3 is filler, 2 and 2; token 4 is likelier without a question
NATS = {
    2: (math.log(2), math.log(8)),
    3: (math.log(2), math.log(2)),
    4: (math.log(8), math.log(2)),
    5: (0.0, 2000.0),
    6: (2000.0, 0.0),
}


@reward
def verify(trajectory):
    return Score(None, why="none") if 3 in trajectory.ids and 4 in trajectory.ids else 1.0


def totals(*rows: Trajectory):
    return [s.total for s in self_alignment()([list(rows)], Run(policy=Scorer(NATS)))[0]]


def test_the_relative_drop_of_perplexity():
    # (8 - 2) / 8;  filler once: sqrt(16) = 4 without, 2 with: 1/2;  twice: 2 ^ (5/3) = 3.1748: (3.1748 - 2) / 3.1748
    assert totals(row(2), row(2, 3), row(2, 3, 3)) == pytest.approx([0.75, 0.5, 1 - 2 / 2 ** (5 / 3)])
    # nothing but filler gains nothing; (2 - 8) / 2 = -3 is cut off at -1
    assert totals(row(3, 3), row(4)) == pytest.approx([0.0, -1.0])


def test_perplexities_beyond_any_number_and_empty_replies():
    assert totals(row(5), row(6)) == pytest.approx([1.0, -1.0])
    assert totals(row()) == [None]
    assert self_alignment()([], Run(policy=Scorer(NATS))) == []


def test_what_an_environment_said_is_kept_and_not_counted():
    # a told token costs nothing, though the scorer says 9 for it
    assert totals(row(2, told=3)) == pytest.approx([0.75])


def test_it_is_added_to_the_verifiers_reward_and_a_reply_without_verdict_gets_nothing():
    run = Run(policy=Scorer(NATS), verify=verify())
    recipe = registry.build("sar_self_aligned_reward", {"alpha": 0.4})
    group = [row(2), row(2, 3), row(3, 4)]
    scores = recipe.reward([group], run)
    assert [s.total for s in scores[0]] == [pytest.approx(1.3), pytest.approx(1.2), None]
    batch = collate([group], scores, torch.device("cpu"))
    # less the mean, 1.25, of those with a verdict, and not over their deviation
    assert recipe.credit(batch.reward, batch, run)[:, 1].tolist() == pytest.approx([0.05, -0.05, 0.0])


def test_where_all_are_right_twice_the_weight_is_twice_the_credit():
    run, credits = Run(policy=Scorer(NATS), verify=verify()), []
    for alpha in (0.2, 0.4):
        recipe = registry.build("sar_self_aligned_reward", {"alpha": alpha})
        group = [row(2), row(2, 3)]
        batch = collate([group], recipe.reward([group], run), torch.device("cpu"))
        credits.append(recipe.credit(batch.reward, batch, run)[0, 1].item())
    # .75 and .5: half of their distance times alpha
    assert credits == pytest.approx([0.025, 0.05])
