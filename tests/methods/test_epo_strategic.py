"""EPO: strategies by the policy, actions by another model, rewards of turns by a judge."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Message, Run, Score, Trajectory, Turn, ask, environment
from rewardlab.engine.collate import collate
from rewardlab.methods.agents.epo_strategic import (
    SIDES,
    advised,
    each_turn_alike,
    epo_strategic,
    goals_reached,
    largest_return_one,
    log_of,
    read_judgement,
    strategy_rewards,
    talk,
    task_of,
)
from rewardlab.rewards.reward import reward
from rewardlab.worlds.dilemmas import dilemma, learnt_advice
from tests.helpers.rows import batch_of, steps
from tests.methods.test_agent_r import Talker

TALK = ask("Cal sells a bike to Dee.", None, goals=["Sell it for 80.", "Buy it for 60."])


def run_of(policy=None, **models) -> Run:
    return Run(policy, models=models, max_new=400)


def episode(*strategies: str, pay: tuple[float, ...] = ()) -> Trajectory:
    one, none = np.zeros(1, np.int64), np.zeros(1, np.float32)
    turns = [Turn(None, one)]
    for k, text in enumerate(strategies):
        turns.append(Turn("policy", one, none, none, text))
        turns.append(Turn(None, one, text=f"Done: act {k}\nanswer {k}", reward=pay[k] if pay else None))
    return Trajectory(TALK, tuple(turns), "end", tag=SIDES[1])


def rewards_of(said: str, t: Trajectory, **settings):
    judge = Talker(lambda row: [said])
    ((score,),) = strategy_rewards(judge="judge", **settings)([[t]], run := run_of(judge=judge))
    return (None if score.missing else [r for _, r in score.as_term().steps]), run, judge


def test_rewards_by_hand():
    t, unpaid = episode("a", "b", "c", pay=(0.0, 2.0, 4.0)), episode("a", "b", "c")
    # as released: 1 where it is marked, else the goal at the last turn
    assert rewards_of('{"indexes": [0], "reasoning": "x"}', t, scale=10.0)[0] == [1.0, 0.0, 0.6]
    assert rewards_of('{"indexes": [0, 2]}', t, scale=10.0)[0] == [1.0, 0.0, 1.0]
    assert rewards_of('{"indexes": [0, 2]}', t, scale=10.0, marks=False)[0] == [0.0, 0.0, 0.6]
    # nobody can read it: nothing is marked, and what was paid is known
    assert rewards_of("All of them were good.", t)[0] == [0.0, 0.0, 6.0]
    # in a talk the judge says how far it got, and without that there is no verdict
    assert rewards_of('```json\n{"reasoning": "y", "indexes": [1], "score": 7}\n```', unpaid, paid=False, scale=10.0)[0] == [
        0,
        1.0,
        0.7,
    ]
    assert rewards_of('{"indexes": [1]}', unpaid, paid=False)[0] is None
    # a task may bring an environment that pays in the place of the talk
    assert rewards_of('{"indexes": [1], "score": 7}', t, paid=False, scale=10.0)[0] == [0, 1.0, 6.0]
    found, run, _ = rewards_of('{"indexes": []}', t, paid=True)
    assert found == [0, 0, 6.0]
    assert run.metrics["marked"] == 0


def test_what_the_judge_and_the_sides_read():
    assert task_of(TALK, SIDES[1]) == "Cal sells a bike to Dee.\nYour goal: Buy it for 60."
    assert task_of(TALK, "") == task_of(ask("Go.", None), SIDES[0]).replace("Go.", TALK.question) == TALK.question
    log = log_of(episode("be kind", "wait"))
    assert log == "Turn 0, strategy: be kind\nDone: act 0\nanswer 0\nTurn 1, strategy: wait\nDone: act 1\nanswer 1"
    assert read_judgement('I think {"indexes": ["1", 9, -1, 0.0, "x"], "score": "8"}', 3) == ({0, 1}, 8.0)
    assert read_judgement("[1]", 3) == read_judgement("none", 3) == read_judgement('{"indexes": 1}', 3) == (set(), None)


def test_returns_are_divided_by_the_largest_of_their_row():
    # three turns of 1, 2 and 1 tokens; of a row of one turn; of one whose rewards are all 0
    first, second, third = {1: 1.0, 4: 0.0, 6: 0.5}, {1: -2.0}, {3: 0.0}
    batch = batch_of([[("rdrddrd", {"s": steps(first)}), ("rd", {"s": steps(second)}), ("rdrd", {"s": steps(third)})]])
    a = largest_return_one(gamma=0.5)(batch.reward, batch, Run(policy=None))
    # returns .5, .25 and 1 + .125: by 1.125
    assert a[0].tolist() == pytest.approx([0, 1, 0, 0.25 / 1.125, 0.25 / 1.125, 0, 0.5 / 1.125])
    assert a[1][:2].tolist() == [0, -1]
    assert a[2].tolist() == [0] * 7
    weight = each_turn_alike()(batch)
    # 3 rows; 3 turns in the first, of which the second has 2 tokens; 2 in the third
    assert weight[0].tolist() == pytest.approx([0, 1 / 9, 0, 1 / 18, 1 / 18, 0, 1 / 9])
    assert weight[1][:2].tolist() == pytest.approx([0, 1 / 3])
    assert weight[2][:4].tolist() == pytest.approx([0, 1 / 6, 0, 1 / 6])
    assert float(weight.sum()) == pytest.approx(1)


def test_both_sides_of_a_talk_are_advised_and_hear_what_the_other_did():
    policy = Talker(lambda t: [f"{'sell' if 'Sell' in t.turns[0].text else 'buy'} {len(t.replies)}"])
    # the actor does what the newest strategy says
    actor = Talker(
        lambda t: [next(x for x in reversed(t.turns[0].text.splitlines()) if x.startswith("Turn ")).rpartition(": ")[2] + "!"]
    )
    groups = advised(env=talk(), n=1, turns=2)([TALK], run_of(policy, actor=actor))
    (seller,), (buyer,) = groups
    assert (seller.tag, buyer.tag) == SIDES
    assert seller.replies == ["sell 0", "sell 1"]
    assert [u.text for u in seller.turns[2::2]] == [
        "Done: sell 0!\nThe other says: buy 0!",
        "Done: sell 1!\nThe other says: buy 1!",
    ]
    assert [u.text for u in buyer.turns[2::2]] == ["Done: buy 0!\nThe other says: sell 0!", "Done: buy 1!\nThe other says: sell 1!"]
    assert seller.stop == buyer.stop == "turns"
    # only strategies are the policy's
    assert int(collate(groups, None, torch.device("cpu")).mask[0].sum()) == sum(len(r) + 1 for r in seller.replies)


def test_a_game_pays_for_what_the_actor_does_and_not_for_the_advice():
    game = ask("?", None, moves=["red", "blue"], payoffs={"temptation": 5, "reward": 3, "punishment": 1, "sucker": 0}, rounds=2)
    policy, actor = Talker(lambda t: ["blue"]), Talker(lambda t: ["red"])
    groups = advised(env=dilemma(), n=2, turns=2)([game, game], run_of(policy, actor=actor))
    assert [len(g) for g in groups] == [2, 2, 2, 2]
    assert all([pay for _, pay in t.paid] == [3, 3] for g in groups for t in g)
    found = goals_reached(rollout=advised(env=dilemma(), n=1, turns=2), by=strategy_rewards())([game], run_of(policy, actor=actor))
    assert (found["goal"], found["no_verdict"]) == (6.0, 0.0)


@environment(start=lambda problem, seed: (Message("user", "A shop."), {"at": 0}))
def shop(state, turn):
    return Message("user", f"no {turn.text}", reward=0.5), {"at": state["at"] + 1}


def test_any_environment_of_one_side_will_do():
    policy, actor = Talker(lambda t: ["look"]), Talker(lambda t: ["search hat"])
    ((t,),) = advised(env=shop(), n=1, turns=2)([ask("Buy a hat.", None)], run_of(policy, actor=actor))
    assert t.tag == ""
    assert "Buy a hat.\nA shop." in t.turns[0].text
    assert [u.text for u in t.turns[2::2]] == ["Done: search hat\nno search hat"] * 2
    assert t.paid[-1][1] == 0.5


def test_where_an_environment_pays_nothing_the_goal_is_what_the_task_says():
    """Tools, a search and an interpreter pay nothing: every episode would have reached its goal to the degree 0."""

    @reward
    def verify(trajectory):
        return Score(None, why="no verdict") if "?" in trajectory.reply else float("right" in trajectory.reply)

    rows = [episode("a", "right"), episode("a", "b"), episode("a", "?"), episode("a", "right", pay=(0.0, 0.0))]
    run = Run(None, verify=verify())
    assert [s.total for s in strategy_rewards()([rows], run)[0]] == [1.0, 0.0, None, 0.0]
    assert [s.total for s in strategy_rewards()([rows], Run(None))[0]] == [None, None, None, 0.0]


@pytest.mark.parametrize(("said", "score"), [("10", 10.0), ("0", 0.0), ("11", None), ("-1", None), ('"high"', None), ("NaN", None)])
def test_a_goal_is_reached_to_a_degree_from_0_to_10(said, score):
    assert read_judgement(f'{{"indexes": [0, 5], "score": {said}}}', 2)[1] == score


def test_what_it_is_made_of():
    recipe = registry.build("epo_strategic", {"judge": "openai:http://localhost:1/v1#x"})
    assert [(x.name, x.init, x.every) for x in recipe.also] == [("actor", "copy:policy", 0)]
    assert recipe.reward.settings["judge"] == "openai:http://localhost:1/v1#x"
    assert (recipe.reward.settings["paid"], recipe.reward.settings["scale"]) == (False, 10.0)
    played = epo_strategic(env=dilemma(), judge="")
    assert (played.reward.settings["paid"], played.reward.settings["scale"], played.reward.settings["judge"]) == (True, 1.0, "")
    assert json.loads(json.dumps(recipe.to_json()))


def test_advice_that_is_always_marked_rightly_is_learnt():
    settings = {"credit": largest_return_one(), "weighting": each_turn_alike(), "episodes": 8, "turns": 3, "updates": 60}
    found = learnt_advice(**settings, wrong=0.0)([], Run(policy=None, seed=1))
    assert found["helpful.process"] > 0.7
    # marks that say nothing teach nothing
    assert abs(learnt_advice(**settings, wrong=0.5)([], Run(policy=None, seed=1))["helpful.process"] - 0.5) < 0.35
