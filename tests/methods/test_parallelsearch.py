"""ParallelSearch: rewards against those that its released code gives, and sub-queries that are searched together."""

import json

import numpy as np
import pytest
import torch

from rewardlab import build
from rewardlab.core import Run, Trajectory, Turn, ask, rollout
from rewardlab.engine.collate import collate
from rewardlab.methods.agents.parallelsearch import TOLD, counted, decomposed, decomposing, formed, parallelsearch
from rewardlab.rewards.reward import reward

TWO = "<think>Both.</think><search> Monet born ## Pissarro born </search>"
ONE = "<think>First this.</think>\n<search>Fidelio</search>"
ANSWER = "<think>So.</think>\n<answer>Bonn</answer>"


def episode(*replies, kind=None, **meta):
    """Replies of two tokens each, with a message of one token between them."""
    turns = [Turn(None, np.zeros(3, np.int64), text="?")]
    for reply in replies:
        turns += [
            Turn("policy", np.zeros(2, np.int64), np.zeros(2), np.zeros(2), text=reply),
            Turn(None, np.zeros(1, np.int64), text="x"),
        ]
    return Trajectory(ask("?", "Bonn", **({} if kind is None else {"type": kind}), **meta), tuple(turns[:-1]), "end")


def value(part, t):
    ((score,),) = part([[t]])
    return score.value


@pytest.mark.parametrize(
    ("kind", "replies", "split", "count"),
    [
        # comp_score 3 times for a comparison that is decomposed, once for another question that is not; count_score as the code has
        # it, less the two calls that its prompt shows: count - |searches - 3| count, or count - |min(searches, 4) - 4| count
        ("comparison", (TWO, ANSWER), 3, 1),
        ("comparison", (ONE, ONE, ANSWER), 0, 0),
        ("comparison", (ANSWER,), 0, 0),
        ("comparison", (ONE, ONE, ONE, ANSWER), 0, -1),
        # only the first call is looked at
        ("comparison", (ONE, TWO, ANSWER), 0, 0),
        ("bridge", (ONE, ONE, ANSWER), 1, 1),
        ("bridge", (ONE, ANSWER), 1, 0),
        ("bridge", (ANSWER,), 1, -1),
        ("bridge", (TWO, ONE, ONE, ANSWER), 0, 1),
        ("na", (ONE, ANSWER), 1, 1),
        ("na", (ONE, ONE, ANSWER), 1, 0),
        (True, (TWO, ANSWER), 3, 1),
        # without a type both are off
        (None, (TWO, ONE, ANSWER), 0, 0),
    ],
)
def test_calls_are_paid_by_the_type_of_the_question(kind, replies, split, count):
    t = episode(*replies, kind=kind)
    assert value(decomposed(), t) == split
    assert value(counted(), t) == count


def test_a_type_may_stand_in_another_column():
    t = episode(TWO, ANSWER, metadata={"type": "comparison"})
    assert value(decomposed(column="metadata.type"), t) == 3
    assert "no 'type'" in decomposed()([[t]])[0][0].why


@pytest.mark.parametrize(
    ("replies", "good"),
    [
        ((TWO, ONE, ANSWER), 1),
        ((ANSWER,), 1),
        ((ONE,), 0),
        ((ANSWER, ANSWER), 0),
        (("<search>a</search>", ANSWER), 0),
        ((ONE, ANSWER + " That is all."), 0),
        (("<think>a</think> Let me search. <search>a</search>", ANSWER), 0),
        (("<think>a</think><search>a</search><search>b</search>", ANSWER), 0),
        (("Search: Ann", "Answer: Bob"), 0),
        ((), 0),
    ],
)
def test_the_form_is_thinking_and_one_act_a_turn(replies, good):
    assert value(formed(), episode(*replies)) == good


@reward
def right(trajectory):
    return float("Bonn" in trajectory.reply)


def test_the_whole_reward_is_that_of_the_released_code():
    recipe = parallelsearch(build("ppo").but(reward=right()))
    episodes = [
        episode(TWO, ANSWER, kind="comparison"),  # 1 + .45 + .35
        episode("Search: a ## b", "Answer: Bonn", kind="comparison"),  # .9 + .45 + .35: right without the form
        episode(ONE, "<think>?</think><answer>Rome</answer>", kind="bridge"),  # .1 + .15 + 0
        episode("Rome", kind="bridge"),  # 0 + .15 - .35
        episode(ONE, ONE, ANSWER),  # no type: 1
    ]
    (scores,) = recipe.reward([episodes])
    assert [s.value for s in scores] == pytest.approx([1.8, 1.7, 0.25, -0.2, 1.0])
    batch = collate([episodes], [scores], torch.device("cpu"))
    # paid at the last decision; what the environment says is no decision
    assert batch.reward[0].nonzero().tolist() == [[7]]
    assert batch.mask[0, :8].tolist() == [False] * 3 + [True] * 2 + [False] + [True] * 2


def test_the_environment_searches_the_parts_together_and_tells_how(tmp_path):
    file = tmp_path / "docs.jsonl"
    file.write_text(
        "".join(json.dumps({"title": t, "text": x}) + "\n" for t, x in [("Monet", "Born in 1840."), ("Pissarro", "Born in 1830.")])
    )
    env = parallelsearch(corpus=str(file)).rollout.settings["env"]
    message, state = env.start(ask("?"), 0)
    assert message.text == TOLD
    answer = env(state, Turn("policy", np.zeros(1, np.int64), text="<search>Pissarro ## Monet</search>"))[0].text
    assert answer == "<information>\nDoc 1 (Title: Pissarro) Born in 1830.\nDoc 1 (Title: Monet) Born in 1840.\n</information>"


@rollout
def written(problems, run):
    return [[p.meta["episode"][0]] for p in problems]


def test_what_is_measured():
    episodes = [
        episode(TWO, ANSWER, kind="comparison"),
        episode(ONE, ONE, ANSWER, kind="comparison"),
        episode(ONE, ANSWER, kind="bridge"),
    ]
    problems = [ask("?", episode=[t]) for t in episodes]
    numbers = decomposing(rollout=written())(problems, Run(policy=None, verify=right()))
    assert (numbers["split.comparisons"], numbers["split.others"], numbers["apart"]) == (0.5, 0, 0.5)
    assert (numbers["pass@1"], numbers["calls.comparisons"], numbers["turns"]) == (1, 1.5, pytest.approx(7 / 3))


def test_the_update_is_that_of_the_released_script():
    recipe = parallelsearch()
    assert (recipe.update.epochs, recipe.update.minibatches) == (1, 2)
    assert str(recipe.credit) == "less_kl(beta=0.001) >> gae(lam=1) >> whiten()"
