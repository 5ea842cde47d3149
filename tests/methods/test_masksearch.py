"""MaskSearch: texts of the level that the run has reached, paid by the share of masks that are filled."""

from __future__ import annotations

import numpy as np
import pytest

from rewardlab import registry
from rewardlab.core import Run, Trajectory, Turn, ask, rollout
from rewardlab.errors import RewardlabError
from rewardlab.methods.imitation.masksearch import growing
from rewardlab.rewards.task import correct
from rewardlab.verifiers.masks import filled_masks


def text(masks: int, i: int = 0):
    return ask(f"text {i} of {masks}", ["Bob"] * masks, masks=masks)


@rollout
def looked_at(problems, run):
    return [[Trajectory(p)] for p in problems]


def levels(step: int, problems, more=None, **settings) -> list[int]:
    run = Run(policy=None, step=step, steps=8, more_problems=more)
    return [g[0].problem.meta["masks"] for g in growing(inner=looked_at(), **settings)(problems, run)]


def test_the_level_rises_in_equal_parts_of_the_run():
    mixed = [text(m) for m in (1, 2, 3, 4)] * 4
    found = [max(levels(step, mixed)) for step in range(8)]
    assert found == [1, 1, 2, 2, 3, 3, 4, 4]
    assert [max(levels(step, mixed, max_masks=2)) for step in range(8)] == [1] * 4 + [2] * 4


def test_texts_of_the_level_are_sought_among_further_ones():
    asked = []

    def more(n):
        asked.append(n)
        return [text(2, len(asked)), text(4)]

    # level 2 of 4 at step 2: one text of two masks in the step, one more in each further batch
    assert levels(2, [text(2), text(1)], more) == [2, 2]
    assert asked == [2]


def test_a_single_text_of_the_level_is_sought_for_longer():
    further = iter([*(text(4, i) for i in range(60)), text(1)])
    # ten further texts, all too hard, would end the run of a base that refills its step with one
    assert levels(0, [text(4)], lambda n: [next(further) for _ in range(n)]) == [1]


def test_texts_of_fewer_masks_fill_a_step_and_harder_ones_never_do():
    assert levels(4, [text(1), text(4), text(2), text(4)]) == [2, 1]
    with pytest.raises(RewardlabError, match="of 2 texts none has 1 masks or fewer"):
        levels(0, [text(3), text(4)])
    with pytest.raises(RewardlabError, match="says no number of masks in 'masks'"):
        levels(0, [ask("a text", ["Bob"])])


def reply(problem, *said: str) -> Trajectory:
    turns = []
    for words in said:
        turns += [Turn("policy", np.zeros(3, np.int64), text=words), Turn(None, np.zeros(1, np.int64), text="found")]
    return Trajectory(problem, tuple(turns[:-1]), "end")


def test_a_reply_earns_the_share_of_masks_and_a_little_for_its_form():
    recipe = registry.build("masksearch", {"form": 0.1})
    problem = ask("The friend of Ann is [mask 1]. The boss of [mask 1] is [mask 2].", ["Bob", "Cal"], masks=2)
    group = [
        reply(problem, "Search: Ann friend", "Answer: Bob; Cal"),
        reply(problem, "Search: Ann friend", "Answer: Bob; Dee"),
        reply(problem, "Answer: Bob"),
        reply(problem, "Answer: Bob; Cal; Dee"),
        reply(problem, "I do not know"),
    ]
    run = Run(policy=None, verify=filled_masks().named("correct"))
    (row,) = recipe.reward([group], run)
    # both; one of two; one of two without the form; too many spans; no answer
    assert [s.total for s in row] == pytest.approx([1.1, 0.6, 0.5, 0.0, 0.0])
    # the first episode alone is right, so the group has a signal for DAPO's filter
    assert [s.value >= 1 for s in correct()([group], run)[0]] == [True, False, False, False, False]


def test_dapo_samples_anew_within_the_level():
    recipe = registry.build("masksearch", {})
    assert str(recipe.rollout).startswith("solved_between(inner=growing(inner=interactive(env=search()")
    assert str(registry.build("masksearch", {"mixed": True}).rollout).startswith("solved_between(inner=interactive(")
    own = registry.build("igpo+masksearch", {})
    assert str(own.rollout).startswith("growing(inner=interactive(env=search()")
