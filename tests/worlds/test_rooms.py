"""Rooms of BabyAI for the small policy: the game of `babyai`, begun in the prompt, and its teacher."""

from __future__ import annotations

import random

import numpy as np
import pytest

from rewardlab import registry
from rewardlab.core import Turn
from rewardlab.models.embedded import CONTEXT, tokenizer

pytest.importorskip("minigrid", reason="needs the extra 'babyai'")
from rewardlab.worlds.rooms import MOVES, _begin, _demonstrate, _taught

TASK = "rooms:GoToLocalS5N2"


def played(task, problem, actions):
    """What each action is answered."""
    env = registry.part("environment", task.environment)
    first, state = env.start(problem, 0)
    assert first is None
    told = []
    for action in actions:
        message, state = env(state, Turn("policy", np.zeros(2, np.int64), text=action))
        told.append(message)
        if message.last:
            break
    return told


def test_the_prompt_holds_what_babyai_tells_first():
    # the environment of babyai begins by telling what stands in the prompt here
    problem = registry.task(TASK).test[0]
    message, _ = registry.part("environment", "babyai_level").start(problem, 0)
    mission, seen = message.text.split("\n\n", 1)
    assert problem.question == f"Game {problem.meta['number']}: {mission.removeprefix('Your mission: ')}\n{seen}"


def test_a_teacher_that_never_slips_fulfils_what_can_be_done_in_so_many_actions():
    task = registry.task(TASK)
    done = 0
    for i in range(20):
        talk = _demonstrate(task.train[i], random.Random(0), error=0.0, leftward=0.0)
        told = played(task, task.train[i], talk[::2])
        # what it was told stands in the demonstration, and a mission fulfilled pays 1
        assert [message.text for message in told[:-1]] == talk[1::2]
        assert told[-1].reward in (0.0, 1.0)
        done += told[-1].reward == 1.0
    assert done >= 18


def test_a_teacher_turns_left_for_right_by_habit_and_slips_at_random():
    rng = random.Random(0)
    turned = [_taught("turn right", rng, 0.0, 0.8) for _ in range(500)]
    assert 0.75 < turned.count("turn left") / 500 < 0.85
    moved = [_taught("go forward", rng, 0.25, 0.8) for _ in range(500)]
    assert 0.2 < 1 - moved.count("go forward") / 500 < 0.3
    assert set(moved) == set(MOVES)


def test_an_episode_of_any_moves_fits_the_context_and_ends_after_its_turns():
    task, rng = registry.task(TASK), random.Random(1)
    words = tokenizer(task)
    for i in range(40):
        problem = task.train[i]
        told = played(task, problem, [rng.choice(MOVES) for _ in range(10)])
        assert len(told) <= task.turns
        assert told[-1].last
        # the marks of a turn take no more than ten tokens
        texts = [problem.question, *(message.text for message in told)]
        assert sum(len(words(text)["input_ids"]) + 10 + task.max_new for text in texts) <= CONTEXT


def test_what_is_no_action_is_told_and_changes_nothing():
    task = registry.task(TASK)
    problem = task.test[0]
    told = played(task, problem, ["jump", "turn left"])
    assert told[0].text.startswith("'jump' is not an action here.")
    assert not told[0].last
    game = _begin(problem)
    assert told[1].text == game.act("turn left")[0]
