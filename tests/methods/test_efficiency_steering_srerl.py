"""Efficiency steering: the direction between a policy's short and long right replies; SRE-RL: credit by the group's own brevity."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.api import answer
from rewardlab.core import Run, Trajectory, ask
from rewardlab.errors import RewardlabError
from rewardlab.methods.search.efficiency_steering_srerl import (
    activation_steering,
    contrast,
    efficiency_steering_srerl,
    shortest_and_longest,
    steered_length,
)
from rewardlab.models.embedded import untrained
from rewardlab.rewards.reward import reward
from rewardlab.rollouts.independent import independent
from rewardlab.util.outputs import forward_batch
from tests.helpers.lengths import credits, group_of, run_at, totals, verify

PROMPTS = ["1 + 2 = ?", "what is 12 * 3, and then 7 more?"]
TEXTS = [["3", "1+2=3, so it is 3", "2"], ["43", "36+7=43"]]


def sampled(policy):
    """Replies as if the policy had written them, by problem."""
    groups = []
    for prompt, texts in zip(PROMPTS, TEXTS, strict=True):
        read = policy.read([Trajectory(ask(prompt))] * len(texts), [ask(prompt).prompt] * len(texts))
        rows = policy.write(read, texts)
        groups.append([replace(t, turns=(t.turns[0], *(replace(turn, author=policy.name) for turn in t.turns[1:]))) for t in rows])
    return groups


def mean_activation(policy, row, layer):
    batch = forward_batch([row], policy.device)
    return policy.activations(batch, layer)[batch.mask[0, : len(row)]].mean(0)


def test_the_direction_weighs_replies_alike_however_long():
    policy = untrained(layers=3)
    (a, b, _), (c, d) = sampled(policy)
    short, long = ([mean_activation(policy, t, 1) for t in rows] for rows in ((a, c), (b, d)))
    wanted = (short[0] + short[1] - long[0] - long[1]) / 2
    # the middle one of three layers is 1
    torch.testing.assert_close(contrast(policy, [(a, b), (c, d)]), wanted, atol=1e-5, rtol=1e-4)
    assert wanted.abs().max() > 1e-3
    assert not torch.allclose(contrast(policy, [(a, b), (c, d)], layer=0), wanted, atol=1e-3)
    with pytest.raises(RewardlabError, match="no direction to steer in"):
        contrast(policy, [])


def test_pairs_are_of_right_replies_of_different_lengths():
    groups = [group_of("wrr?r", [1, 6, 3, 2, 9]), group_of("rrw", [4, 4, 9]), group_of("ww", [1, 2]), group_of("r", [3])]
    groups.append(group_of("rrrr", [5, 2, 5, 2]))
    pairs = shortest_and_longest(groups, verify()(groups))
    assert [tuple(int(t.mask.sum()) for t in pair) for pair in pairs] == [(3, 9), (2, 5)]
    # of equal ones the first
    assert pairs[1][0] is groups[4][1]
    assert pairs[1][1] is groups[4][0]


def solutions(folder, rows):
    path = folder / "solutions.jsonl"
    path.write_text("".join(json.dumps({"prompt": p, "steps": s, "right": ok}) + "\n" for p, s, ok in rows))
    return str(path)


def test_replies_are_sampled_with_the_direction_of_the_file(tmp_path):
    policy = untrained(layers=3)
    rows = [(p, [text], text != "2") for p, texts in zip(PROMPTS, TEXTS, strict=True) for text in texts]
    file = solutions(tmp_path, rows)
    (a, b, _), (c, d) = sampled(policy)
    v = contrast(policy, [(a, b), (c, d)], 2)
    run, asked = Run(policy, max_new=6, seed=1), [ask("4 + 4 = ?")]
    groups = activation_steering(inner=independent(n=3), solutions=file, strength=40.0, layer=2)(asked, run)
    with policy.inserted(2, lambda x: x + 40 * v):
        own = policy.score(groups[0])
    for t, known in zip(groups[0], own, strict=True):
        np.testing.assert_allclose(t.turns[-1].logprobs, known[t.mask], atol=2e-3)
    plain = independent(n=3)(asked, Run(policy, max_new=6, seed=1))
    assert [t.reply for t in groups[0]] != [t.reply for t in plain[0]]
    same = activation_steering(inner=independent(n=3), solutions=file, strength=0.0)(asked, Run(policy, max_new=6, seed=1))
    assert [t.reply for t in same[0]] == [t.reply for t in plain[0]]


def test_it_answers_steered_and_a_file_without_two_lengths_is_refused(tmp_path):
    good = solutions(tmp_path, [(PROMPTS[0], ["3"], True), (PROMPTS[0], ["1+2=3", "Answer: 3"], True)])
    recipe = registry.build("efficiency_steering_srerl", {"solutions": good, "strength": 2.0, "n": 3})
    assert recipe.objective is None
    assert isinstance(answer(recipe, untrained(), prompt="2+3=?", max_new=6)["answer"], str)
    bad = solutions(tmp_path, [(PROMPTS[0], ["3"], True), (PROMPTS[0], ["1+2=3"], False), (PROMPTS[1], ["3"], True)])
    with pytest.raises(RewardlabError, match="two right solutions"):
        answer(efficiency_steering_srerl(solutions=bad), untrained(), prompt="2+3=?", max_new=6)


def test_short_right_replies_earn_most_and_wrong_ones_nothing():
    recipe = registry.build("efficiency_steering_srerl", {"brevity": 0.5})
    groups = [group_of("rrrw?", [10, 20, 30, 5, 7]), group_of("rwr", [8, 3, 8]), group_of("ww", [3, 9])]
    assert totals(recipe, groups, run_at()) == [[1.5, 1.25, 1.0, 0.0, None], [1.5, 0.0, 1.5], [0.0, 0.0]]


def test_among_right_replies_credit_falls_with_length():
    recipe = registry.build("efficiency_steering_srerl", {"brevity": 0.5})
    # rewards 1.5, 1.25, 1, .0: a mean of .9375
    rewards = np.array([1.5, 1.25, 1.0, 0.0])
    found = credits(recipe, [group_of("rrrw", [10, 20, 30, 5])], run_at())
    ratio = (rewards - rewards.mean()) / found
    assert np.ptp(ratio) < 1e-4 * abs(ratio[0])
    assert found[0] > found[1] > found[2] > 0 > found[3]


@reward
def all_right(trajectory):
    return 1.0


def test_plain_and_steered_replies_are_measured_on_the_second_half(monkeypatch):
    policy, seen = untrained(layers=3), []
    extend = policy.extend

    def watched(rows, *args):
        seen.append(({t.problem.question for t in rows}, policy._inserted is not None))
        # an untrained policy hardly ever ends a reply
        return [t.cut(len(before) + 1 + int(t.ids.sum()) % 30) for before, t in zip(rows, extend(rows, *args), strict=True)]

    monkeypatch.setattr(policy, "extend", watched)
    problems = [ask(f"{i} + 1 = ?", str(i + 1)) for i in range(6)]
    run = run_at(policy=policy, max_new=40)
    run = replace(run, verify=all_right())
    found = steered_length(strength=0.0, examples=4)(problems, run)
    first, second = ({p.question for p in half} for half in (problems[:3], problems[3:]))
    assert seen == [(first, False), (second, False), (second, True)]
    assert found["pairs"] > 0
    assert found["steered_right_length"] == found["right_length"]
    # one problem alone gives no direction, and is answered as it is
    seen.clear()
    lonely = steered_length(strength=60.0, examples=4)(problems[:1], run)
    assert (lonely["pairs"], lonely["steered_gain"]) == (0.0, 0.0)
    assert lonely["steered_right_length"] == lonely["right_length"]
    assert seen == [({"0 + 1 = ?"}, False)]
    moved = steered_length(strength=60.0, examples=4)(problems, run)
    assert moved["right_length"] == found["right_length"]
    assert moved["steered_right_length"] != found["right_length"]
    assert math.isclose(moved["steered_log_right_length"], math.log(moved["steered_right_length"]))
    assert moved["steered_gain"] == 0.0
