"""Orcust: rewards of turns bound to principles, the credit that follows, and the world of screens."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.engine.collate import collate
from rewardlab.errors import RewardlabError
from rewardlab.methods.process.orcust import orcust
from rewardlab.models.embedded import untrained
from rewardlab.rewards.principled import principled_turns, turn_chances, turn_reward
from rewardlab.rewards.reward import reward
from rewardlab.worlds.screens import all_clicked, clicks, last_box, last_click, named_first

META = {"screens": [{"save": [5, 1, 8, 3], "open": [0, 0, 3, 2]}, {"close": [1, 4, 2, 8]}], "targets": ["save", "close"]}
PROBLEM = ask("Press save, then close.\nsave 5 1 8 3", "close", **META)


def episode(*replies):
    """The episode as the environment answers it; two tokens a reply."""
    env = clicks()
    _, state = env.start(PROBLEM, 0)
    turns = [Turn(None, np.array([1]))]
    for text in replies:
        zeros = np.zeros(2, np.float32)
        turns.append(Turn("policy", np.array([7, 8]), zeros, zeros, text))
        message, state = env(state, turns[-1])
        ids = np.zeros(0, np.int64) if message.last else np.array([1])
        turns.append(Turn(None, ids, text=message.text, reward=message.reward))
        if message.last:
            break
    return Trajectory(PROBLEM, tuple(turns), "end")


REASONED, LUCKY = "save 5 1 8 3\nclick 6 2", "open 0 0 3 2\nclick 5 1"


def test_the_environment_says_what_was_reached():
    both = episode(REASONED, "close 1 4 2 8\nclick 2 8")
    assert [x for _, x in both.paid] == [1.0, 1.0]
    assert both.turns[2].text == "close 1 4 2 8"
    assert all_clicked()([[both]], Run(None))[0][0].value == 1.0
    # on the edge is inside, one further is not, and the episode ends there
    missed = episode("click 4 1", "close 1 4 2 8\nclick 1 4")
    assert ([x for _, x in missed.paid], len(missed.replies)) == ([0.0], 1)
    assert all_clicked()([[missed, episode(LUCKY, "click 0 0")]], Run(None))[0][1].value == 0.0
    assert [x for _, x in named_first()([[both]], Run(None))[0][0].steps] == [1.0, 1.0]
    assert [x for _, x in named_first()([[episode(LUCKY)]], Run(None))[0][0].steps] == [0.0]


def test_a_target_that_its_screen_does_not_show_is_named():
    for targets, said in ((["Save"], "no 'Save' there"), (["save", "close", "open"], "no 'open' there"), ([], "no targets")):
        with pytest.raises(RewardlabError, match=said):
            clicks().start(ask("Press save.", **META | {"targets": targets}), 0)


@pytest.mark.parametrize(
    "said",
    [
        "click 6 2", "click(6, 2)", "Action: click(x=6, y=2)", "```python\npyautogui.click(6, 2)\n```", "click(start_box='(6,2)')",
        "click(start_box='<|box_start|>(6,2)<|box_end|>')", '{"action": "click", "coordinate": [6, 2]}', "left_click(6.0, 2.0)",
        "<answer>[{'action': 'click', 'point': [6, 2], 'input_text': 'no'}]</answer>", '{"action": "click", "x": 6, "y": 2}',
        '<tool_call>{"name": "computer_use", "arguments": {"coordinate": [6, 2], "action": "left_click"}}</tool_call>',
    ],
)  # fmt: skip
def test_clicks_and_boxes_are_read_as_agents_write_them(said):
    reply = f"<think>I could click(0, 0) on open.</think>The **Save** button is at [5, 1, 8, 3].\n{said}"
    t = episode(reply, "I click nothing at 5 5.")
    assert [x for _, x in t.paid] == [1.0, 0.0]
    (score,) = orcust(principles=named_first(), learnt=0.0).reward([[t]], Run(None))[0]
    # .1 + 1 (.5 + .5): the box that is meant is named first;  and what clicks nowhere is not of the form
    assert [x for _, x in score.steps] == pytest.approx([1.1, 0.0])


def test_the_last_box_that_is_named_counts():
    both = "open at (0, 0, 3, 2)\nsave at (5, 1, 8, 3)"
    assert last_box(f"{both}\nclick(6, 2)", PROBLEM.meta["screens"][0]) == ("save", [5, 1, 8, 3])
    assert last_box(f"click(6, 2)\n{both}", PROBLEM.meta["screens"][0]) is None
    assert last_click("click(5, 1, 8, 3)") is None
    assert last_click("<think>click(6, 2)</think>") is None


def test_reward_of_a_turn():
    # .1 + 1 (.5 + .5 p)
    assert turn_reward(1.0, 1.0, 0.1, 0.5) == pytest.approx(1.1)
    assert turn_reward(1.0, 0.0, 0.1, 0.5) == pytest.approx(0.6)
    # nothing reached: principles alone are not paid
    assert turn_reward(0.0, 1.0, 0.1, 0.5) == pytest.approx(0.1)
    assert turn_reward(1.0, 0.0, 0.1, 1.0) == pytest.approx(0.1)


def test_credit_of_turns():
    group = [episode(REASONED, "close 1 4 2 8\nclick 9 9"), episode(LUCKY, "no idea")]
    run = Run(None)
    recipe = orcust(principles=named_first(), learnt=0.0)
    scores = recipe.reward([group], run)
    # 1.1 and, of the second turn that reasoned and missed, .1; by luck .6, and of the wrong form 0
    assert [[x for _, x in s.steps] for s in scores[0]] == [pytest.approx([1.1, 0.1]), pytest.approx([0.6, 0.0])]
    batch = collate([group], scores, torch.device("cpu"))
    credit = recipe.credit(batch.reward, batch, run)
    rewards = np.array([1.1, 0.1, 0.6, 0.0])
    normal = (rewards - rewards.mean()) / (rewards.std(ddof=1) + 1e-4)
    # every decision earns its turn's and what comes later
    first = credit[0][batch.mask[0]].tolist()
    assert first == pytest.approx([normal[0] + normal[1]] * 2 + [normal[1]] * 2, abs=1e-4)
    second = credit[1][batch.mask[1]].tolist()
    assert second == pytest.approx([normal[2] + normal[3]] * 2 + [normal[3]] * 2, abs=1e-4)
    # success alone: neither episode reached its end, and nothing is learnt
    alone = orcust(principles=named_first(), by_turns=False)
    run = Run(None, verify=all_clicked())
    batch = collate([group], alone.reward([group], run), torch.device("cpu"))
    assert not alone.credit(batch.reward, batch, run).any()


def test_a_missing_principle_binds_nothing():
    @reward
    def silent(trajectory):
        return None

    (score,) = principled_turns(principles=silent())([[episode(REASONED)]], Run(None))[0]
    assert [x for _, x in score.steps] == pytest.approx([1.1])
    with pytest.raises(RewardlabError, match="no regular expression"):
        principled_turns(principles=silent(), form="(")


class Judge:
    """Says Yes with .8 where the reply names a box, else with .2, whatever the principle."""

    context = 10_000

    def __init__(self):
        self.asked = []

    def read(self, rows, prompts):
        self.asked += [prompt[-1].text for prompt in prompts]
        return [t.plus(Turn(None, np.array([1]), text=prompt[-1].text)) for t, prompt in zip(rows, prompts, strict=True)]

    def write(self, rows, texts):
        return [t.plus(Turn("judge", np.array([0]), text=text)) for t, text in zip(rows, texts, strict=True)]

    def score(self, rows):
        named = ["1 8 3\nclick" in t.turns[0].text for t in rows]
        return [np.log([1.0, 0.8 if ok == (t.reply == "Yes") else 0.2]) for t, ok in zip(rows, named, strict=True)]


def test_a_judge_reads_what_was_shown_last_and_its_word_binds_the_turn():
    judge = Judge()
    recipe = orcust(learnt=0.0)
    (score,) = recipe.reward([[episode(REASONED, "click 2 8")]], Run(None, models={"judge": judge}))[0]
    # .1 + 1 (.5 + .5 p), p the mean of three equal chances: .8 of the turn that names its box, .2 of the other
    assert [x for _, x in score.steps] == pytest.approx([1.0, 0.7])
    assert len(judge.asked) == 6
    assert ["close 1 4 2 8" in text for text in judge.asked] == [False, True] * 3


def test_the_model_of_turns_learns_from_the_environment():
    recipe = orcust(principles=named_first())
    (model,) = recipe.also
    t = episode(REASONED, "click 9 9")
    batch = collate([[t]], model.recipe.reward([[t]], Run(None)), torch.device("cpu"))
    assert batch.reward[0][batch.rewarded[0]].tolist() == [1.0, 0.0]

    assert [x.name for x in orcust().also] == ["judge", "turns"]
    policy = untrained(hidden=32, layers=1)
    (row,) = policy.write(policy.read([Trajectory(PROBLEM)], [PROBLEM.prompt]), [REASONED])
    ((score,),) = turn_chances()([[row]], Run(policy, models={"turns": policy.copy("turns", value_head=True)}))
    assert [at for at, _ in score.steps] == row.ends
    assert all(0 < x < 1 for _, x in score.steps)


def test_the_world():
    task = registry.task("screens", test_size=50)
    rng, env, right = random.Random(0), clicks(), []
    for p in task.test:
        _, state = env.start(p, 0)
        won = 0.0
        for text in task.demonstrate(p, rng)[::2]:
            message, state = env(state, Turn("policy", np.array([1]), text=text))
            won += message.reward
        right.append(won == 2)
        gold = p.meta["solution"]
        assert gold[1].splitlines()[0] in [f"{k} {' '.join(map(str, v))}" for k, v in p.meta["screens"][1].items()]
    assert 0.1 < np.mean(right) < 0.6
