"""AlphaMed: questions rated once by the model before training, and trained on evenly by level."""

from __future__ import annotations

import json

import pytest

from rewardlab import registry
from rewardlab.core import Run, Task, ask, loop
from rewardlab.engine.step import Ops
from rewardlab.errors import RewardlabError
from rewardlab.methods.verifiers.alphamed import CHOSEN, LEVELS, composed, level_of
from rewardlab.models.embedded import untrained
from rewardlab.models.learners import learner_model
from rewardlab.rewards.reward import reward
from rewardlab.runs.config import RunConfig
from rewardlab.tasks.sources import Listed

PROBLEMS = [ask(f"{i}+{i}=?", str(2 * i)) for i in range(12)]
RIGHT = [5, 5, 5, 5, 5, 5, 3, 3, 3, 0, 0, 1]
"""Of five answers to each question, by the model before training."""


def test_a_level_counts_wrong_answers():
    assert [level_of([1.0] * right + [0.0] * (5 - right), 5) for right in (5, 4, 1, 0)] == [1, 2, 5, 6]
    # a graded verdict below 1 is not right
    assert level_of([0.9, 1.0], 2) == 2
    # two of four right, one without a verdict: half of 5 wrong is 2.5, rounded to 2
    assert level_of([1.0, 1.0, 0.0, 0.0, None], 5) == 3
    assert level_of([None] * 5, 5) is None


def test_levels_share_evenly_and_what_one_lacks():
    levels = dict(enumerate(6 - right for right in RIGHT))
    assert sorted(levels.values()) == [1] * 6 + [3] * 3 + [5] + [6] * 2
    # 8 of four levels: level 5 has 1 of its 2, so 7 are left for three: level 6 gives its 2, level 3 two of 5, level 1 the rest
    assert composed(levels, (1, 3, 5, 6), 8) == [0, 1, 2, 6, 7, 9, 10, 11]
    assert composed(levels, (1, 2), 4) == [0, 1, 2, 3]
    # more than there are: all of them
    assert composed(levels, (3, 6), 99) == [6, 7, 8, 9, 10]
    assert composed(levels, (2, 4), 5) == []
    lengths = {i: i % 6 for i in levels}
    assert composed(levels, (1, 6), 3, lengths) == [4, 5, 10]


@reward
def as_told(trajectory):
    """The verdict of the n-th answer to a question: as many are right as RIGHT says."""
    return float(trajectory.path[0] < RIGHT[PROBLEMS.index(trajectory.problem)])


@loop
def seen(recipe, run, ops):
    ops.seen += [p.question for p in ops.problems(2)]


def begun(train=None, **settings) -> Ops:
    base = registry.build("grpo", {"problems": 2}).but(loop=seen())
    recipe = registry.method("alphamed")(base, **settings)
    run = Run(untrained().copy("policy"), steps=9, max_new=2, verify=as_told())
    run.models = {learner.name: learner_model(learner, run.policy) for learner in recipe.also}
    ops = Ops(recipe, run, Task("twelve", train or Listed(PROBLEMS), PROBLEMS[:1], "final_number", max_new=2), RunConfig())
    ops.seen = []
    return ops


def step(ops: Ops, times: int) -> set[str]:
    for _ in range(times):
        ops.run.metrics = {}
        ops.recipe.loop(ops.recipe, ops.run, ops)
        ops.run.step += 1
    return set(ops.seen)


def test_the_chosen_levels_are_trained_on_alone_and_rated_once():
    ops = begun(levels="1,6", questions=4)
    # five answers to each question once: sixty rows
    extended, rows = ops.run.models["rater"].extend, []
    ops.run.models["rater"].extend = lambda asked, *args: rows.append(len(asked)) or extended(asked, *args)
    assert step(ops, 4) == {PROBLEMS[i].question for i in (0, 1, 9, 10)}
    assert sum(rows) == 60
    assert ops.run.memory[CHOSEN] == [0, 1, 9, 10]
    assert dict(ops.run.memory[LEVELS]) == dict(enumerate(6 - right for right in RIGHT))
    # two of level 1, two of level 6
    assert ops.run.metrics["level"] == 3.5
    # a resumed run has the whole data, and finds what was chosen of it
    resumed = begun(levels="1,6", questions=4)
    resumed.run.memory, resumed.run.step, resumed.position = json.loads(json.dumps(ops.run.memory)), 4, ops.position
    assert step(resumed, 2) == {PROBLEMS[i].question for i in (0, 1, 9, 10)}


def test_all_levels_are_the_default_and_a_pool_may_be_smaller_than_the_data():
    ops = begun(questions=3, pool=7)
    step(ops, 2)
    # of the first seven, six are of level 1 and one of level 3
    assert ops.run.memory[CHOSEN] == [0, 1, 6]


def test_endless_problems_can_be_chosen_from_and_a_level_without_any_is_refused():
    ops = begun(registry.task("arithmetic", test_size=1).train, levels=(2,), pool=3)
    ops.run.verify = registry.part("reward", "final_number")
    with pytest.raises(RewardlabError, match=r"none of 3 questions is of the levels \(2,\); they are of \[6\]"):
        step(ops, 1)


def test_the_reward_is_the_answer_alone_and_a_base_keeps_its_own():
    assert registry.build("alphamed").reward == registry.build("grpo").reward
    assert "solved_between" in str(registry.build("dapo+alphamed").rollout)
    assert registry.build("alphamed", {"rater": "embedded:choices"}).also[0].init == "embedded:choices"
