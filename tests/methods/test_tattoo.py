"""TaTToo: verdicts with and without the tool, what they earn, and what is measured."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
import torch
from scripted import END, ScriptedPolicy

from rewardlab import registry
from rewardlab.core import Run, Trajectory, Turn, ask, rollout
from rewardlab.engine.collate import collate
from rewardlab.methods.process.tattoo import inspections_right, tattoo
from rewardlab.rewards.inspected import inspected
from rewardlab.text.inspections import REFUSED, Inspection, call_in, inspections_of, is_about, verdicts_in
from rewardlab.worlds.inspections import call_for, claimed, table_tool, used

TABLE = {"Ada": {"age": 3, "weight": 7}, "Bo": {"age": 5, "weight": 8}}
PROBLEM = ask("?", "wrong", table=TABLE, steps=["Bo age 5", "Ada weight 3", "5+3=8"], verdicts=[True, False, True])


def episode(*replies):
    """As the tool answers it; two tokens a reply, one an answer."""
    env = table_tool()
    _, state = env.start(PROBLEM, 0)
    turns = [Turn(None, np.array([1]))]
    for text in replies:
        zeros = np.zeros(2, np.float32)
        turns.append(Turn("policy", np.array([7, 8]), zeros, zeros, text))
        message, state = env(state, turns[-1])
        if message is None:
            break
        turns.append(Turn(None, np.array([1]), text=message.text))
    return Trajectory(PROBLEM, tuple(turns), "end")


LOOKED = ("look Bo age", "+\nlook Ada weight", "-\nsum 5 3", "+")


def test_verdicts_and_the_calls_that_they_follow():
    t = episode(*LOOKED)
    assert [turn.text for turn in t.turns if turn.author is None][1:] == ["5", "7", "8"]
    # the first verdict is in the second reply, at positions 4 and 5
    assert inspections_of(t) == [
        Inspection(True, 5, "look Bo age"),
        Inspection(False, 8, "look Ada weight"),
        Inspection(True, 11, "sum 5 3"),
    ]
    # a call that was refused says nothing, and a verdict in the same reply as its call did not read the answer
    assert inspections_of(episode("look Eve age", "+")) == [Inspection(True, 5, "")]
    assert inspections_of(episode("look Bo age\n+")) == [Inspection(True, 2)]
    assert inspections_of(episode("+\n-\n+")) == [Inspection(True, 2), Inspection(False, 2), Inspection(True, 2)]
    assert is_about("look Bo age", "Bo age 5")
    assert not is_about("look Bo weight", "Bo age 5")
    assert not is_about("", "Bo age 5")
    assert used(TABLE, "look Bo goals") is None
    assert REFUSED in episode("look Bo goals", "+").turns[2].text


STEP = "Bo's age is 5."


@pytest.mark.parametrize(
    ("call", "step", "about"),
    [
        # SQL
        ("SELECT age FROM people WHERE name = 'Bo'", STEP, True),
        ("select t.age from people as t where t.name like 'Bo' limit 1;", STEP, True),
        ("SELECT weight FROM people WHERE name = 'Bo'", STEP, False),
        ("SELECT age FROM people WHERE name = 'Ada'", STEP, False),
        (
            'SELECT "total_sales" FROM shops s WHERE s."city" = \'New York\' AND year = 2010',
            "In 2010 New York's total sales: 1,200",
            True,
        ),
        ("SELECT SUM(age) AS total FROM people WHERE team IN ('red')", "The ages of the red ones add up to 12", True),
        ("SELECT * FROM people", STEP, False),
        # pandas
        ('df.loc[df["name"] == "Bo", "age"].values[0]', STEP, True),
        ("df[df['name'] == 'Bo']['age'].iloc[0]", STEP, True),
        ("print(df[df.name == 'Bo'].age)", STEP, True),
        ("df.query(\"name == 'Bo'\")['age'].item()", STEP, True),
        ("df[df['name'].str.contains('Bo')]['age']", STEP, True),
        ("df.loc[df['name'] == 'Bo', 'weight']", STEP, False),
        ("df.loc[df['name'] == 'Ada', 'age']", STEP, False),
        ("df['age'].sum()", "the sum of age is 15", True),
        ("df.head(3)", "3 rows", False),
        ("print(5 + 3)", "5+3=8", True),
        ("print(5 + 4)", "5+3=8", False),
        # words
        ("look Bo age", STEP, True),
        ("", STEP, False),
    ],
)
def test_what_a_call_is_about(call, step, about):
    assert is_about(call, step) is about


def test_calls_and_verdicts_as_models_write_them():
    asked = "I check.\n```sql\nSELECT age\nFROM people\nWHERE name = 'Bo'\n```"
    assert is_about(call_in(asked), STEP)
    tagged = '<tool_call>{"name": "sql", "arguments": {"query": "SELECT age FROM t WHERE name = \'Bo\'"}}</tool_call>'
    assert is_about(call_in(tagged), STEP)
    assert not is_about(call_in(tagged), "Ada's weight is 3")
    assert call_in("+\nlook Bo age") == call_in("`look Bo age`") == "look Bo age"
    assert call_in("Step 1: correct") == ""
    said = "Step 1 (Bo's age): correct\n**Step 2:** incorrect.\nThe step is wrong\n- Verdict: **Right**\n\\boxed{-}\n3. +"
    assert [right for _, right in verdicts_in(said)] == [True, False, False, True, False, True]
    assert [said[at] for at, _ in verdicts_in(said)] == list("ciwR-+")
    # reasoning is no verdict, nor is what is thought
    for none in ("This is correct because Bo is 5", "- the age of Bo", "5 - 3", "<think>\n+\n</think>", "<think>\n+"):
        assert verdicts_in(none) == []
    t = episode(
        "Let me look.\n```\nlook Bo age\n```", "Step 1: correct\nlook Ada weight", "Step 2: incorrect\n`sum 5 3`", "Step 3: correct"
    )
    assert [(x.right, x.call) for x in inspections_of(t)] == [(True, "look Bo age"), (False, "look Ada weight"), (True, "sum 5 3")]
    # each is paid on the token where its word begins
    (score,) = tattoo(calibration=0.0).reward(
        [[typed("look Bo age", "Step 1: correct\nStep 2: incorrect\nStep 3: correct")]], Run(Ended({}))
    )[0]
    assert [x for _, x in score.steps] == [2.0, 1.0, 1.0]


def typed(*replies, chance=0.8):
    """As `episode`, one token a character and one that ends each reply, all sampled with this chance."""
    turns = []
    for turn in episode(*replies).turns:
        if turn.author:
            ids = np.array([*map(ord, turn.text), END])
            logprobs = np.full(len(ids), np.log(chance), np.float32)
            turn = replace(turn, ids=ids, logprobs=logprobs, sampled=logprobs)
        turns.append(turn)
    return Trajectory(PROBLEM, tuple(turns), "end")


class Ended(ScriptedPolicy):
    """The token that ends a reply has a text, as in most vocabularies."""

    def pieces(self, ids):
        return ["</s>" if i == END else chr(i) for i in ids]


SURE, UNSURE, MISSING = np.log(0.8), np.log(0.2), np.log(0.05)


def test_final_credit():
    # all right and grounded; two right guesses and a wrong one in one reply; the first verdict after a call about another cell
    group = [typed(*LOOKED), typed("+\n+\n+"), typed("look Bo weight", "+\n-\n-")]
    run = Run(Ended({}))
    recipe = tattoo(tool=0.5, calibration=1.0)
    scores = recipe.reward([group], run)[0]
    values = [[1.5 + SURE] * 3, [1 + SURE, UNSURE, 1 + SURE], [1 + SURE, 1 + SURE, UNSURE]]
    assert [[x for _, x in s.steps] for s in scores] == [pytest.approx(v) for v in values]
    # each on the token of its sign, also where three stand in one reply
    assert [[chr(t.ids[at]) for at, _ in s.steps] for t, s in zip(group, scores, strict=True)] == [
        ["+", "-", "+"],
        ["+"] * 3,
        ["+", "-", "-"],
    ]
    batch = collate([group], [scores], torch.device("cpu"))
    credit = recipe.credit(batch.reward, batch, run)
    rewards = np.array(values)
    normal = (rewards - rewards.mean()) / (rewards.std(ddof=1) + 1e-4)
    for row, at, z in zip(credit, batch.rewarded, normal, strict=True):
        # a decision is followed by its own verdict and later ones
        assert row[at].tolist() == pytest.approx([z.sum(), z[1:].sum(), z[2]], abs=1e-3)
    first = [row[batch.mask[i]][0].item() for i, row in enumerate(credit)]
    assert first == pytest.approx(normal.sum(1), abs=1e-3)
    assert first[0] > 0 > max(first[1:])


def test_calibration_and_missing_verdicts():
    run = Run(Ended({}))

    def totals(*group, **settings):
        return [s.total for s in tattoo(**settings).reward([list(group)], run)[0]]

    # labels alone; a wrong verdict costs the more the surer it was, and at most log .05
    assert totals(typed(*LOOKED), typed("+\n+\n+"), tool=0.0, calibration=0.0) == [3.0, 2.0]
    mild, sure, most = (typed("+\n+\n+", chance=x) for x in (0.6, 0.9, 0.99))
    found = totals(mild, sure, most, tool=0.0)
    assert found == pytest.approx([2 + 2 * np.log(x) + np.log(max(0.05, 1 - x)) for x in (0.6, 0.9, 0.99)])
    # what is left out is no better than a sure mistake, and falls on the end
    assert totals(typed("+\n-"), typed("well")) == pytest.approx([2 + 2 * SURE + MISSING, 3 * MISSING])
    (score,) = tattoo().reward([[typed("+\n-")]], run)[0]
    assert score.steps[-1] == (len(typed("+\n-")) - 1, pytest.approx(MISSING))
    assert [s.value for s in inspected()([[typed(*LOOKED), typed("+\n+\n+")]], run)[0]] == [1.0, 0.0]
    silent = Trajectory(ask("?"), typed("+").turns, "end")
    assert tattoo().reward([[silent]], run)[0][0].value is None


def test_each_missing_verdict_is_an_event_so_that_a_group_gains_nothing_by_leaving_them_out():
    run, recipe = Run(Ended({})), tattoo(tool=0.0, calibration=1.0)
    group = [typed("+\n-\n+")] * 3 + [typed("well then")]
    scores = recipe.reward([group], run)[0]
    # three events each; those of the silent episode stand on its last three tokens
    assert [len(s.steps) for s in scores] == [3] * 4
    end = len(group[3])
    assert scores[3].steps == tuple((at, pytest.approx(MISSING)) for at in (end - 3, end - 2, end - 1))
    # the token of a verdict keeps its own reward alone: the second event stands before it
    late = typed("well\n+")
    (score,) = recipe.reward([[late]], run)[0]
    end = len(late)
    assert score.steps == ((end - 3, pytest.approx(MISSING)), (end - 2, pytest.approx(1 + SURE)), (end - 1, pytest.approx(MISSING)))
    batch = collate([group], [scores], torch.device("cpu"))
    credit = recipe.credit(batch.reward, batch, run)
    # nine events of 1 + log .8 and three of log .05: from its first decision on the silent episode has three times the least z
    rewards = np.array([1 + SURE] * 9 + [MISSING] * 3)
    least = (MISSING - rewards.mean()) / (rewards.std(ddof=1) + 1e-4)
    assert credit[3][batch.mask[3]][0].item() == pytest.approx(3 * least, abs=1e-3)
    # an episode shorter than the solution is charged in full too
    (score,) = recipe.reward([[typed("x")]], run)[0]
    assert score.total == pytest.approx(3 * MISSING)


def test_what_is_measured():
    @rollout
    def played(problems, run):
        return [[episode(*LOOKED)], [episode("+\n+\n+")]]

    found = inspections_right(rollout=played())([PROBLEM, PROBLEM], Run(None))
    # both have a first error, one finds it; no solution is clean, so that the harmonic mean is 0
    assert found["step_f1"] == 0.0
    assert (found["right"], found["grounded"], found["blind"]) == (pytest.approx(5 / 6), 0.5, pytest.approx(2 / 3))


def test_cells_whose_names_have_several_words():
    table = {"New York": {"total area": 783, "area": 1}, "New": {"area": 2}}
    assert used(table, "look New York total area") == "783"
    assert (used(table, "look New area"), used(table, "look York area"), used(table, "look New York")) == ("2", None, None)


def test_the_world():
    task, rng = registry.task("inspections", test_size=60), random.Random(0)
    env, right, looked = table_tool(), [], []
    for p in task.test:
        table, steps = p.meta["table"], p.meta["steps"]
        assert [used(table, call_for(s)) == claimed(s) for s in steps] == p.meta["verdicts"]
        for talk, whole in ((p.meta["solution"], True), (task.demonstrate(p, rng), False)):
            _, state = env.start(p, 0)
            turns = [Turn(None, np.array([1]))]
            for i, text in enumerate(talk):
                turns.append(Turn("policy" if i % 2 == 0 else None, np.array([1]), text=text))
                if i + 1 < len(talk) and i % 2 == 0:
                    assert env(state, turns[-1])[0].text == talk[i + 1]
            t = Trajectory(p, tuple(turns), "end")
            ok = inspected()([[t]], Run(None))[0][0].value
            assert not whole or ok == 1.0
            right += [] if whole else [ok]
            looked += [] if whole else [bool(x.call) for x in inspections_of(t)]
    assert 0.1 < np.mean(right) < 0.7
    assert 0.3 < np.mean(looked) < 0.7
