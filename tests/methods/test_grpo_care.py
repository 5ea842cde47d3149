"""GRPO-CARE: bonuses by hand, the likelihood of the stated answer, and the slow copy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from rows import Replies

from rewardlab.api import train
from rewardlab.core import Run, Score, Trajectory, Turn, ask
from rewardlab.engine.collate import collate
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.methods.intrinsic.grpo_care import SLOW, bonuses, consistency, grpo_care, peers
from rewardlab.models.load import load_policy
from rewardlab.rewards.reward import reward
from rewardlab.tasks.arithmetic import arithmetic

PROMPT = ask("Q", "B")


class Scorer(Replies):
    """One token a character: after a reply's first digit d, a letter from A to D has the probability d / 10, all else 1/2."""

    def pieces(self, ids):
        return [chr(i) for i in ids]

    def score(self, trajectories):
        return [np.log([int(t.reply[0]) / 10 if chr(i) in "ABCD" else 0.5 for i in t.ids]) for t in trajectories]


def reply(text: str) -> Trajectory:
    ids = np.array([ord(c) for c in text], np.int64)
    return Trajectory(PROMPT, (Turn(None, np.array([ord("Q")])), Turn("policy", ids, text=text)), "end")


@reward
def verify(trajectory):
    return Score(None, why="none") if "?" in trajectory.reply else float(trajectory.reply.endswith("B"))


def run() -> Run:
    return Run(policy=None, models={SLOW: Scorer([])}, verify=verify())


def graded(*texts: str, **settings):
    state = run()
    state.policy = state.models[SLOW]
    return consistency(**settings)([[reply(text) for text in texts]], state)[0]


# ---- bonuses -----------------------------------------------------------------------------------------------------------


def test_peers_are_right_and_no_worse_than_the_mean():
    assert peers([1.0, 0.0, 1.0, None]) == [True, False, True, False]
    # graded: the mean is .5, and what is at most .1 is never right
    assert peers([0.9, 0.5, 0.1]) == [True, True, False]
    assert peers([0.1, 0.05, 0.0]) == [False] * 3
    assert peers([0.0, 0.0]) == [False] * 2
    assert peers([None, None]) == [False] * 2


def test_the_bonus_is_the_reward_once_more_from_the_mean_of_the_peers_up():
    # mean of .2, .4 and .9: .5
    assert bonuses([1.0, 1.0, 1.0, 0.0, None], [0.2, 0.4, 0.9, None, None], 0.0) == [0.0, 0.0, 1.0, 0.0, None]
    assert bonuses([1.0, 1.0, 1.0], [0.2, 0.4, 0.9], 0.1) == [0.0, 1.0, 1.0]
    # equal ones, one alone, and none
    assert bonuses([1.0, 0.6], [0.95, 0.95], 0.0) == [1.0, 0.6]
    assert bonuses([0.7, 0.0], [0.3, None], 0.0) == [0.7, 0.0]
    assert bonuses([1.0, 0.0], [None, None], 0.0) == [0.0, 0.0]


def test_the_answers_tokens_alone_decide_among_right_replies():
    scores = graded("9 Answer: B", "2 Answer: B", "9 Answer: C", "?9 Answer: B")
    assert [s.value for s in scores] == [1.0, 0.0, 0.0, None]
    # over the whole replies the likelihood is higher where more is likely: (.5^10 .9)^(1/11) against (.5^10 .2)^(1/11), and
    # again with the A of Answer. The order is the same here, and turned around below
    assert [s.value for s in graded("8A A A A Answer: B", "9" + "-" * 60 + " Answer: B", of="reply")] == [1.0, 0.0]
    assert [s.value for s in graded("8A A A A Answer: B", "9" + "-" * 60 + " Answer: B")] == [0.0, 1.0]


def test_likelihoods_are_capped():
    # .8 and .9 are the same from .8 down, so that both are their mean
    assert [s.value for s in graded("8 Answer: B", "9 Answer: B")] == [0.0, 1.0]
    assert [s.value for s in graded("8 Answer: B", "9 Answer: B", cap=0.8)] == [1.0, 1.0]


def test_a_reply_in_the_style_of_a_real_model():
    texts = ["7 <think>Beating follows cracking.</think>\n<answer>B", "3 <think>Wash it: A.</think>\n<answer>B"]
    assert [s.value for s in graded(*texts)] == [1.0, 0.0]
    assert "likelihood 0.700" in graded(*texts)[0].why


def test_a_right_reply_without_an_answers_tokens_keeps_its_verdict():
    class Silent(Scorer):
        def pieces(self, ids):
            return [""] * len(ids)

    state = run()
    state.policy = Silent([])
    scores = grpo_care().reward([[reply("9 Answer: B"), reply("9 Answer: C")]], state)[0]
    assert [s.total for s in scores] == [1.0, 0.0]


# ---- the recipe --------------------------------------------------------------------------------------------------------


def test_credit_is_that_of_verdict_and_bonus():
    state = run()
    state.policy = state.models[SLOW]
    group = [reply(x) for x in ("9 Answer: B", "2 Answer: B", "9 Answer: C", "1 Answer: A")]
    recipe = grpo_care()
    scores = recipe.reward([group], state)
    want = np.array([1.5, 1.0, 0.0, 0.0])
    assert [s.total for s in scores[0]] == want.tolist()
    batch = collate([group], scores, torch.device("cpu"))
    credit = recipe.credit(batch.reward, batch, state)[:, -1].numpy()
    assert credit == pytest.approx((want - want.mean()) / want.std(ddof=1), abs=1e-3)
    assert "kl_to_reference" not in str(recipe.objective)


def test_form_is_paid_where_it_is_asked_for():
    state = run()
    state.policy = state.models[SLOW]
    row = [reply("<think>9</think><answer>B</answer>")]
    assert [round(s.total, 3) for s in grpo_care(form=1.0).reward([row], state)[0]] == [1.0]
    assert [round(s.total, 3) for s in grpo_care().reward([row], state)[0]] == [0.0]


class Weights:
    def __init__(self, **values):
        self.values = {k: torch.tensor(v) for k, v in values.items()}

    def state(self):
        return self.values

    def load_state(self, state):
        self.values = dict(state)


@pytest.mark.parametrize(("step", "want"), [(0, [0.0, 8.0]), (3, [0.0, 8.0]), (4, [1.0, 6.0]), (8, [1.0, 6.0])])
def test_the_slow_copy_follows_every_so_often(step, want):
    state = Run(Weights(w=[4.0, 0.0]), models={SLOW: Weights(w=[0.0, 8.0])}, step=step)

    class Ops:
        done = 0

        def standard_step(self, recipe):
            Ops.done += 1

    grpo_care(decay=0.75, every=4).loop(None, state, Ops())
    assert state.models[SLOW].values["w"].tolist() == want
    assert Ops.done == 1


@reward
def letters(trajectory):
    """What replies of an untrained policy differ in."""
    return sum(c.isalpha() for c in trajectory.reply) / 8


def test_training_moves_the_slow_copy_between_start_and_policy(tmp_path):
    task = arithmetic(test_size=2)
    start = load_policy("untrained", "cpu", task=task)
    before = {name: w.clone() for name, w in start.state().items()}
    recipe = grpo_care(grpo(n=4).but(reward=letters()), every=2, decay=0.5).but(problems=2, lr=0.01)
    run = train(recipe, start, task, steps=3, out=tmp_path, max_new=8, eval_every=0, eval_problems=2).run
    slow, policy = run.model(SLOW).state(), run.policy.state()
    assert slow.keys() == policy.keys() == before.keys()
    moved = [(policy[k] - before[k]).norm() for k in before]
    follows = [(slow[k] - before[k]).norm() for k in before]
    assert max(moved) > 0
    # half of the way after two of three updates
    assert 0 < sum(follows) < 0.7 * sum(moved)
