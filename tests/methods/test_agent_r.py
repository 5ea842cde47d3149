"""Agent-R: bad episodes up to their first error, a reflection, and the good way from there."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Message, Run, Score, Trajectory, Turn, ask, environment
from rewardlab.engine.collate import collate
from rewardlab.methods.agents.agent_r import (
    action_of,
    agent_r,
    first_errors,
    in_common,
    is_bad,
    pairs_of,
    recovery,
    revised,
    spliced,
    steps_of,
)
from rewardlab.rewards.reward import reward
from tests.helpers.scripted import ScriptedPolicy

TASK = ask("Fetch the red hat.", "hat")


class Talker(ScriptedPolicy):
    """It reads what it is told, and writes recorded replies."""

    def read(self, trajectories, messages):
        return [
            t.plus(Turn(None, np.array([ord(c) for c in m[-1].text]), text=m[-1].text, reward=m[-1].reward))
            for t, m in zip(trajectories, messages, strict=True)
        ]

    def write(self, trajectories, replies):
        return [
            t.plus(Turn(self.name, np.array([*map(ord, text), 0]), text=text), "end")
            for t, text in zip(trajectories, replies, strict=True)
        ]


def episode(*texts: str, read: bool = True) -> Trajectory:
    """Actions and answers in turn; the last answer was read by somebody, or not."""
    turns = [Turn(None, np.array([1, 2]), text="?")]
    for i, text in enumerate(texts):
        ids = np.array([*map(ord, text)])
        last = i == len(texts) - 1
        turns.append(Turn(None, ids if read or not last else ids[:0], text=text) if i % 2 else Turn("policy", ids, text=text))
    return Trajectory(TASK, tuple(turns), "end")


GOOD = episode("go shop", "a shop", "buy hat", "done", read=False)
BAD = episode("go shop", "a shop", "buy bag", "a bag", "go home", "at home", read=False)


def said(t: Trajectory) -> list[tuple[bool, str]]:
    """Whether it is learnt from, and the text, of each turn after the prompt."""
    return [(turn.author is not None, turn.text) for turn in t.turns[1:]]


def test_an_episode_is_spliced_at_its_first_error_with_the_good_one_after_what_they_share():
    run = Run(Talker({}), max_new=50)
    # the second action is the error; both went to the shop, so that only the buying is done anew
    assert said(spliced(BAD, GOOD, 2, "Wrong.", "", run)) == [
        (False, "go shop"), (False, "a shop"), (False, "buy bag"), (False, "a bag"), (True, "Wrong.\nbuy hat"),
    ]  # fmt: skip
    # as released: a reply of its own, answered
    assert said(spliced(BAD, GOOD, 2, "Wrong.", "ok.", run))[4:] == [
        (True, "Thought: Wrong.\nAction: wait"), (False, "ok."), (True, "buy hat"),
    ]  # fmt: skip
    # late: after all of it, whose last answer is read now
    late = said(spliced(BAD, GOOD, 3, "Wrong.", "", run))
    assert late[4:] == [(False, "go home"), (False, "at home"), (True, "Wrong.\nbuy hat")]
    # called an error too early: what they share is done, and the rest is still to do
    assert said(spliced(BAD, GOOD, 1, "Wrong.", "", run)) == [(False, "go shop"), (False, "a shop"), (True, "Wrong.\nbuy hat")]
    # another first action: all of the good one, with its answers
    other = episode("go home", "at home", "sleep", read=True)
    assert said(spliced(other, GOOD, 2, "Wrong.", "", run)) == [
        (False, "go home"), (False, "at home"), (False, "sleep"), (False, "Go on."), (True, "Wrong.\ngo shop"), (False, "a shop"),
        (True, "buy hat"),
    ]  # fmt: skip


def test_only_reflection_and_good_actions_are_learnt_from():
    run = Run(Talker({}), max_new=50)
    row = spliced(BAD, GOOD, 2, "Wrong.", "", run)
    recipe = agent_r()
    batch = collate([[row], [GOOD]], None, torch.device("cpu"))
    weight = recipe.weighting(batch)
    # 15 characters and an end; go shop and buy hat are 7 each
    learnt = len("Wrong.\nbuy hat") + 1
    assert batch.mask.sum(1).tolist() == [learnt, 14]
    assert weight[0][batch.mask[0]].tolist() == pytest.approx([1 / (learnt + 14)] * learnt)
    assert weight[0, :-learnt].sum() == 0
    assert str(recipe.objective) == "imitate()"


def test_the_first_action_that_is_called_bad_is_the_error():
    says = {
        "go shop": "It helps.\nJudgement: Good",
        "buy bag": "Not asked for. Judgement: <Bad>",
        "go home": "Judgement: uncertain",
        "sleep": "I cannot tell, it looks good to me. Judgement: none",
    }
    policy = Talker(lambda t: [next(v for k, v in says.items() if f"Current action: {k}" in t.turns[-1].text)])
    run = Run(policy, max_new=100)
    fine, other = episode("go shop", "a shop", "go home", "at home"), episode("go home", "at home", "sleep")
    assert first_errors([BAD, fine, other, Trajectory(TASK)], run) == [2, 2, 2, 0]
    # one action at a time, side by side; the third of BAD is never asked about
    assert [len(call) for call in policy.calls] == [3, 3]
    assert is_bad("Judgement: Bad")
    assert not is_bad("Judgement: Good or uncertain")
    # only what follows the mark counts
    assert is_bad("A good start. Judgement: bad")


def test_pairs_by_hand():
    a, b, c, d = (episode(x) for x in "abcd")
    assert pairs_of([a, b, c, d], [1.0, 0.0, 0.6, None], 0.5, 0.3) == [(a, b), (a, c), (c, b)]
    assert pairs_of([a, b, c, d], [1.0, 0.0, 0.6, None], 0.7, 0.5) == [(a, b)]
    assert pairs_of([a, b], [1.0, 1.0], 0.5, 0.2) == pairs_of([a, b], [0.0, 0.0], 0.5, 0.2) == []
    assert in_common(["x", "y"], ["x", "z"]) == 1
    assert in_common([], ["x"]) == 0


def test_actions_and_answers():
    assert [(action_of(s), s[1] and s[1].text) for s in steps_of(BAD)] == [
        ("go shop", "a shop"), ("buy bag", "a bag"), ("go home", "at home"),
    ]  # fmt: skip
    assert steps_of(Trajectory(TASK)) == []


@environment(start=lambda problem, seed: (None, {"done": []}))
def hat_shop(state, turn):
    done = [*state["done"], turn.text.split("\n")[-1]]
    if done[-1] == "hat" or len(done) == 3:
        return None, {"done": done}
    return Message("user", f"no {done[-1]}"), {"done": done}


@reward
def has_hat(trajectory):
    return Score(float(trajectory.reply.endswith("hat")))


def test_a_step_collects_good_and_spliced_episodes_from_a_search():
    def says(t):
        if "Current action" in t.turns[-1].text:
            return ["Judgement: Bad"]
        # who has not begun with a hat asks for nothing else; alone, one begins with a bag
        return ["bag", "coat"] if t.replies else ["hat", "bag", "coat"]

    run = Run(Talker(says), max_new=100)
    rollout = revised(env=hat_shop(), by=has_hat(), iterations=6, branch=3, turns=3, revisions=2, goods=1, reflections=("Wrong.",))
    groups = rollout([TASK], run)
    texts = [said(t) for (t,) in groups]
    assert len(texts) == 3
    # the first action is called bad at once, whatever came after it
    for row in texts[:2]:
        assert [learnt for learnt, _ in row[:2]] == [False, False]
        assert row[2][1].startswith("Wrong.\n")
        assert row[-1] == (True, "Wrong.\nhat")
    assert texts[2][-1] == (True, "hat")
    assert run.metrics["good"] == run.metrics["bad"] == 1
    none = revised(env=hat_shop(), by=has_hat(), iterations=2, branch=1, turns=2)
    (only,) = none([TASK], Run(Talker(lambda t: ["bag"]), max_new=100))
    # nothing is good: the row of the step teaches nothing
    assert not only[0].mask.any()


def test_recovery_from_the_first_action_of_another_problem():
    second = ask("Fetch the bag.", "bag")

    def says(t):
        # who has begun wrongly buys a hat; else each begins with its own
        return ["hat"] if len(t.replies) else ["hat" if t.problem is TASK else "bag"]

    run = Run(Talker(says), max_new=20, verify=has_hat())
    found = recovery(env=hat_shop(), turns=3)([TASK, second], run)
    # the first begins with "bag" and gets a hat after it; the second begins with a hat
    assert found["recovered"] == 1.0
    assert found["pass@1"] == 1.0
    assert found["turns"] == 1.5


def test_what_it_is_made_of():
    recipe = registry.build("agent_r", {"timely": False, "wait": "ok."})
    assert "timely=False, wait='ok.'" in str(recipe.rollout)
    assert recipe.update.loss_kind == "imitation"
