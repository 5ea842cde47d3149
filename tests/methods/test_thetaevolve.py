"""ThetaEvolve: the database, what children earn, and how far a policy evolves programs."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from scripted import ScriptedPolicy

from rewardlab import registry
from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.engine.collate import collate
from rewardlab.errors import RewardlabError
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.methods.search.thetaevolve import MEMORY, asked, evolution, inserted, parent_of, program_of, shaped, thetaevolve
from rewardlab.rewards.reward import reward
from rewardlab.rollouts.independent import independent
from rewardlab.text.blocks import program_of as verified_program
from rewardlab.worlds.packings import fits, packed, read, worth


@reward
def tenth(trajectory):
    """A tenth of the number that the reply is; 0 for what is no number."""
    text = trajectory.reply.strip()
    return int(text) / 10 if text.isdecimal() else 0.0


def entry(program, score, step=0):
    return {"program": program, "score": score, "step": step}


def test_the_database():
    table = [entry("1", 0.1, -1), entry("5", 0.5), entry("3", 0.3)]
    assert parent_of(table, 1.0, 1, (0,))["program"] == "5"
    # any of the two best, and any of all
    assert {parent_of(table, 1.0, 2, (i,))["program"] for i in range(40)} == {"5", "3"}
    assert {parent_of(table, 0.0, 1, (i,))["program"] for i in range(40)} == {"1", "5", "3"}
    # what does not work stays out, and so does what is there; the worst leaves
    grown = inserted(table, [("5", 0.5), ("x", 0.0), ("4", 0.4), ("4", 0.4), ("", 0.2)], 7, 3)
    assert grown == [entry("5", 0.5), entry("3", 0.3), entry("4", 0.4, 7)]
    p = asked(ask("Go.", start="1"), table[1], "{question}|{score}|{program}")
    # as a number is written elsewhere, with the digits in which good packings differ
    assert (p.question, p.meta["parent"]) == ("Go.|0.500|5", "5")
    assert asked(ask("Go.", start="1"), entry("5", 2.6358), "{score}").question == "2.636"


def block(text, language="python"):
    return f"```{language}\n{text}\n```\n"


ADD = "def add(a, b):\n    return a + b"


@pytest.mark.parametrize(
    "reply",
    [
        "So:\n" + block(ADD) + "It prints:\n" + block("score 2.0", "text"),
        block(ADD) + "Use it so:\n" + block("print(add(1, 2))"),
        "<think>Or\n" + block("def add(a, b):\n    return b") + "</think>\n" + ADD,
        ADD,
    ],
)
def test_the_program_that_is_kept_is_the_one_that_the_verifier_runs(reply):
    assert program_of(reply, "def add(a, b):\n    return a") == ADD
    # the verifier's, which knows from the tests what is called
    assert verified_program(reply, lambda: ["add"]).strip() == ADD


def test_prose_is_no_program_where_programs_are_python():
    assert program_of("I can think of nothing better.", ADD) == ""
    assert program_of("<think>\n" + block(ADD), ADD) == ""
    # in a world whose programs are no Python they stand there bare
    assert program_of(" 2 2 2\n", "7 3 1") == "2 2 2"


PARENT = "def f():\n    return 1"


@pytest.mark.parametrize(
    ("reply", "paid"),
    [
        (block(PARENT), -0.3),
        (block("# better\n" + PARENT), -0.3),
        (block("def f():\n\n        return  1  # one"), -0.3),
        (block("def f():\n    return 2"), 0.9),
        ("I can think of nothing better.", -0.4),
    ],
)
def test_the_parent_with_other_comments_is_the_parent_and_prose_is_worth_less(reply, paid):
    @reward
    def good(trajectory):
        return 0.9 if "def" in trajectory.reply else 0.0

    problem = asked(ask("Go."), entry(PARENT, 0.5), "{program}")
    ((score,),) = thetaevolve(grpo().but(reward=good())).reward([children(reply, problem=problem)], Run(None))
    assert score.total == paid


def test_a_program_joins_the_database_once():
    table = [entry(PARENT, 0.5, -1)]
    assert inserted(table, [("# better\n" + PARENT, 0.9)], 3, 5) == table
    grown = inserted(table, [("f = 1", 0.6), ("f=1", 0.7)], 3, 5)
    assert [e["program"] for e in grown] == [PARENT, "f = 1"]


def test_shaping():
    assert shaped(0.5, 0.0, 1.0, 1.0, 1.0) == 0.5
    # (.5 - .2) / .6 = 1/2, squared, times 5
    assert shaped(0.5, 0.2, 0.8, 2.0, 5.0) == pytest.approx(1.25)
    assert shaped(0.1, 0.2, 0.8, 2.0, 5.0) == 0.0
    assert shaped(0.9, 0.2, 0.8, 2.0, 5.0) == 5.0


def children(*replies, problem):
    zeros = np.zeros(1, np.float32)
    turns = [(Turn(None, np.array([1])), Turn("policy", np.array([7]), zeros, zeros, x)) for x in replies]
    return [Trajectory(problem, t, "end") for t in turns]


def test_parents_are_any_of_the_archive_as_in_the_release():
    table = [entry(str(i), i / 10) for i in range(10)]
    drawn = [int(parent_of(table, 0.6, 3, (i,))["program"]) for i in range(2000)]
    # .6 / 3 + .4 / 10 each of the three best, .04 each of the others
    assert [drawn.count(i) / 2000 for i in (9, 8, 7)] == pytest.approx([0.24] * 3, abs=0.04)
    assert drawn.count(0) / 2000 == pytest.approx(0.04, abs=0.02)
    recipe = thetaevolve(grpo().but(reward=tenth()))
    for part in (recipe.rollout, recipe.measure):
        assert [part.settings[name] for name in ("capacity", "archive", "exploit")] == [10_000, 1000, 0.6]


def test_the_settings_reach_the_reward():
    assert not thetaevolve(grpo().but(reward=tenth())).reward.settings["known"]
    assert thetaevolve(grpo().but(reward=tenth()), known=True).reward.settings["known"]


def test_final_credit_of_children():
    problem = asked(ask("Go.", start="5"), entry("5", 0.5), "{program}")
    run = Run(
        None, step=3, memory={MEMORY: {problem.meta["database"]: [entry("5", 0.5, -1), entry("6", 0.6, 1), entry("7", 0.7, 3)]}}
    )
    recipe = thetaevolve(grpo().but(reward=tenth()), known=True)
    # the parent; known before; known since this step alone, so that it is new; what does not work; nothing
    group = children("5", "6", "7", "x", "", problem=problem)
    scores = recipe.reward([group], run)
    assert [s.total for s in scores[0]] == [-0.3, -0.3, 0.7, -0.2, -0.4]
    assert run.metrics["lazy"] == pytest.approx(0.4)
    batch = collate([group], scores, torch.device("cpu"))
    credit = recipe.credit(batch.reward, batch, run)
    rewards = np.array([-0.3, -0.3, 0.7, -0.2, -0.4])
    normal = (rewards - rewards.mean()) / (rewards.std(ddof=1) + 1e-4)
    assert [row[batch.mask[i]].item() for i, row in enumerate(credit)] == pytest.approx(normal.tolist(), abs=1e-3)


SAYS = {"1": ["2", "1"], "2": ["x", "4"], "4": ["3", "4"]}


class Evolver(ScriptedPolicy):
    def write(self, trajectories, texts):
        zeros = np.zeros(1, np.float32)
        pairs = zip(trajectories, texts, strict=True)
        return [t.plus(Turn("policy", np.array([7]), zeros, zeros, text), "end") for t, text in pairs]


def test_children_join_and_become_parents():
    policy = Evolver(lambda t: SAYS[t.problem.meta["parent"]])
    recipe = thetaevolve(grpo(n=2).but(reward=tenth()), exploit=1.0, archive=1, ask="{program}")
    problem, memory, best = ask("Go.", start="1"), {}, []
    for step in range(3):
        run = Run(policy, step=step, memory=memory)
        ((*group,),) = recipe.rollout([problem], run)
        best.append(run.metrics["best"])
        assert len(group) == 2
    # 1 -> 2 -> 4; of 4 come 3 and 4 again
    assert best == pytest.approx([0.2, 0.4, 0.4])
    table = memory[MEMORY][problem.key]
    assert [(e["program"], e["score"], e["step"]) for e in table] == [("1", 0.1, -1), ("2", 0.2, 0), ("4", 0.4, 1), ("3", 0.3, 2)]
    with pytest.raises(RewardlabError, match="first program"):
        recipe.rollout([ask("Go.")], Run(policy))
    part = evolution(rollout=independent(n=2), by=tenth(), rounds=2, exploit=1.0, archive=1, ask="{program}")
    found = part([problem], Run(policy))
    # one of the first two children is the parent; of four, three work
    assert (found["first"], found["best"], found["lazy"], found["works"]) == (0.2, 0.4, 0.25, 0.75)


def test_a_problem_that_is_there_several_times_in_a_step_has_several_parents():
    problem = ask("Go.", start="0")
    memory = {MEMORY: {problem.key: [entry(str(i), i / 10) for i in range(10)]}}
    recipe = thetaevolve(grpo(n=2).but(reward=tenth()), ask="{program}")
    groups = recipe.rollout([problem] * 12, Run(Evolver(lambda t: ["1", "2"]), memory=memory))
    assert len({g[0].problem.meta["parent"] for g in groups}) > 3
    assert all(len({t.problem.meta["parent"] for t in g}) == 1 for g in groups)
    # the first one has the parent that it has alone
    (alone,) = recipe.rollout([problem], Run(Evolver(lambda t: ["1", "2"]), memory=memory))
    assert alone[0].problem.meta["parent"] == groups[0][0].problem.meta["parent"]


def test_packings():
    assert fits(read("2 2 2\n7 3 3\n2 7 2", 3))
    # touching is allowed, overlapping is not, nor is what leaves the square
    assert fits(read("2 2 2\n6 2 2", 2))
    assert not fits(read("2 2 2\n5 2 2", 2))
    assert not fits(read("1 2 2", 1))
    assert read("2 2\n", 1) is None
    assert worth([(5, 5, 5)]) == pytest.approx(5 / (10 / np.sqrt(np.pi)))
    task, rng, lazy = registry.task("packings"), random.Random(0), []
    for p in task.test:
        start = read(p.meta["start"], p.meta["circles"])
        assert fits(start)
        assert fits(read(p.meta["solution"], p.meta["circles"]))
        lazy += [task.demonstrate(p, rng) == p.meta["start"] for _ in range(4)]
        (score,) = packed()([children(p.meta["start"], problem=p)], Run(None))[0]
        assert 0 < score.value < 1
    assert 0.3 < np.mean(lazy) < 0.6
