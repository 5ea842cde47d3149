"""LASER: a bonus for right replies within a budget that follows difficulty and the lengths of the policy's replies."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
from lengths import credits, group_of, reply, run_at, totals, verify

from rewardlab import registry
from rewardlab.api import train
from rewardlab.core import Task, Trajectory, Turn, ask, rollout
from rewardlab.engine.step import Ops
from rewardlab.errors import RewardlabError
from rewardlab.methods.shaping.laser import MEMORY, budgets, class_of
from rewardlab.models.embedded import untrained
from rewardlab.rollouts.filtered import solved_between

RUN = run_at(memory={MEMORY: {"easy": 4, "medium": 6}})


def verdicts(*groups):
    return verify()(list(groups), RUN)


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [("rrw", "easy"), ("rww", "medium"), ("rwww", "hard"), ("ww", "hard"), ("rr?", "easy"), ("rw??", "medium"), ("??", "hard")],
)
def test_difficulty_is_the_share_of_right_replies_among_those_with_a_verdict(kinds, expected):
    assert class_of(verdicts(group_of(kinds, range(1, len(kinds) + 1)))[0]) == expected


def test_budgets_are_the_smallest_that_leave_one_right_reply_to_be_expected():
    """Groups of 8: C is 5 where easy, 2 where medium and 1 where hard, so a fifth, half, or all replies must be within."""
    easy = [group_of("rrrrrrrw", range(10, 18)), group_of("rrrrrrrr", range(20, 28))]  # 16 replies: 4 of them are a fifth
    medium = [group_of("rrrrwwww", (3, 5, 7, 9, 2, 4, 6, 8))]
    hard = [group_of("rwwwwwww", (3, 5, 7, 9, 2, 4, 6, 30))]
    groups = [*easy, *medium, *hard]
    assert budgets(groups, verdicts(*groups), 1) == {"easy": 13, "medium": 5, "hard": 30}
    # no budget below the least, and none for a class that nobody is in
    assert budgets([*easy, *medium], verdicts(*easy, *medium), 8) == {"easy": 13, "medium": 8}
    # single replies: C is at least 1
    assert budgets([group_of("r", (5,))], verdicts(group_of("r", (5,))), 1) == {"easy": 5}


def test_laser_pays_right_replies_within_one_budget():
    recipe = registry.build("laser", {"variant": "laser", "length": 6})
    assert totals(recipe, [group_of("rrww?", (6, 7, 6, 9, 2))], RUN) == [[1.5, 1.0, 0.0, 0.0, None]]
    with pytest.raises(RewardlabError, match="budget in tokens"):
        registry.build("laser", {"variant": "laser"})


def test_laser_d_pays_by_the_budget_of_the_groups_class():
    recipe = registry.build("laser", {"alpha": 0.4})
    easy, medium, hard = group_of("rrr", (4, 5, 6)), group_of("rrww", (6, 7, 6, 9)), group_of("rwww", (90, 1, 1, 1))
    # nothing is known of hard problems: no length exceeds their budget
    assert totals(recipe, [easy, medium, hard], RUN) == [[1.4, 1.0, 1.0], [1.4, 1.0, 0.0, 0.0], [1.4, 0.0, 0.0, 0.0]]
    assert totals(recipe, [easy], run_at()) == [[1.4, 1.4, 1.4]]


def test_laser_de_pays_wrong_replies_beyond_the_budget_unless_cut_off_or_repeating():
    recipe = registry.build("laser", {"variant": "laser-de"})
    wrong = [reply(6, "5"), reply(7, "5"), reply(7, "5", stop="length"), reply([1] * 20, "5")]
    group = [*group_of("rrrr", (6, 7, 6, 7)), *wrong]
    assert totals(recipe, [group], RUN) == [[1.5, 1.0, 1.5, 1.0, 0.0, 0.5, 0.0, 0.0]]


def test_the_credit_of_a_group_in_which_all_are_right():
    # rewards 1.5 and 1: +-.25 from the mean, std .35355;  / (std + 1e-4) = .70691
    found = credits(registry.build("laser"), [group_of("rr?", (4, 5, 1)), group_of("rr", (2, 3)), group_of("ww", (2, 9))], RUN)
    assert found == pytest.approx([0.70691, -0.70691, 0, 0, 0, 0, 0], abs=1e-4)


# ---- monitoring ------------------------------------------------------------------------------------------------------


@rollout
def by_number(problems, run, *, n: int = 3):
    """Problem k gets replies of k+1, k+2 ... tokens; every third problem is solved."""

    def row(problem, tokens):
        k = int(problem.question)
        read, ids, logprobs = Turn(None, np.zeros(2, np.int64)), np.ones(tokens, np.int64), np.full(tokens, -1.0, np.float32)
        return Trajectory(problem, (read, Turn("policy", ids, logprobs, logprobs, str(k % 3 == 0))), "end")

    return [[row(p, int(p.question) + 1 + i) for i in range(n)] for p in problems]


class Counted:
    """Problem k asks for k: an endless source, which is not shuffled."""

    def __getitem__(self, position):
        return ask(str(position), "True")


NUMBERS = Task("numbers", Counted(), [ask("1000", "True")], verifier="exact_match")


def test_budgets_are_measured_before_the_first_step_and_then_every_so_many(tmp_path, monkeypatch):
    seen = []
    sampled = Ops.rollout
    monkeypatch.setattr(Ops, "rollout", lambda ops, problems, *of: seen.append(len(problems)) or sampled(ops, problems, *of))
    # a filter of rollouts keeps from training what monitoring has to see
    recipe = registry.build("laser", {"monitor": 6, "every": 2}).but(problems=2, measure=None)
    recipe = recipe.but(rollout=solved_between(inner=by_number(), low=0.0, high=0.5, attempts=1))
    run = train(recipe, untrained(), NUMBERS, steps=3, out=tmp_path, eval_problems=0).run
    # six problems are monitored at steps 0 and 2, and two are trained on in each step
    assert seen == [6, 2, 2, 6, 2]
    # easy: problems 0 and 3, with replies of 1 to 6 tokens, C = 2: the third;  hard: 1 2 4 5, C = 1: the longest, of 8
    assert run.memory[MEMORY] == {"easy": 3, "hard": 8}
    assert json.loads(json.dumps(run.memory[MEMORY])) == run.memory[MEMORY]
    line = json.loads((tmp_path / "metrics.jsonl").read_text().splitlines()[-1])
    assert (line["budget/easy"], line["budget/hard"]) == (3, 8)


def test_the_loop_of_a_base_goes_on():
    recipe = registry.build("laser")
    called = []
    ops = SimpleNamespace(standard_step=lambda recipe: called.append("standard"))
    recipe.loop(recipe, run_at(step=1, memory={MEMORY: {}}), ops)
    assert called == ["standard"]
    assert registry.build("laser", {"variant": "laser", "length": 4}).loop is None
