"""What steps are worth to the policy, to a prover, under a KL; and what they add."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from rows import row_of

from rewardlab.core import Run, Sampling, Score, Term, Trajectory, Turn, ask
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import untrained
from rewardlab.rewards.progress import best_of, chance_from_here, promising, soft_best, step_gain
from rewardlab.rewards.reward import reward

VALUES = {3: ((1, 0.25), (2, 0.75)), 4: ((1, 0.75), (2, 0.5), (3, 1.0)), 2: ((1, 0.5),)}


@reward(over="groups")
def said(groups, run):
    """By the length of a row; a row of five has no verdict, one of six no step."""
    return [[Score(terms={"said": Term(None, VALUES.get(len(t), ()))}, missing=len(t) == 5) for t in group] for group in groups]


def rows(*lengths: int):
    return [row_of("r" + "d" * (n - 1)) for n in lengths]


def steps(part, *lengths: int):
    return [s.steps for s in part([rows(*lengths)], Run(policy=None))[0]]


def test_a_prover_with_several_tries():
    found = steps(best_of(said(), k=2), 3)
    # 1 - (3/4)^2, 1 - (1/4)^2
    assert found == [((1, 7 / 16), (2, 15 / 16))]
    assert steps(best_of(said(), k=1), 3) == [VALUES[3]]


def test_the_soft_maximum_of_continuations():
    found = steps(soft_best(said(), eta=math.log(3)), 3)[0]
    # log(3/4 + 1/4 * 3) / log 3 = log 1.5 / log 3;  log(1/4 + 3/4 * 3) / log 3 = log 2.5 / log 3
    assert [x for _, x in found] == pytest.approx([math.log(1.5) / math.log(3), math.log(2.5) / math.log(3)])
    value = soft_best.function
    # the mean where eta goes to 0, the maximum where it grows, whatever the numbers
    assert value(0.25, eta=0.0) == 0.25
    assert value(0.25, eta=1e-6) == pytest.approx(0.25, abs=1e-6)
    assert value(0.25, eta=29.999) == pytest.approx(value(0.25, eta=30.0), abs=1e-5)
    assert value(0.125, eta=5000.0) == pytest.approx(1.0, abs=1e-3)
    assert [value(p, eta=eta) for p in (0.0, 1.0) for eta in (0.0, 2.0, 5000.0)] == pytest.approx([0, 0, 0, 1, 1, 1])


def test_the_soft_maximum_is_the_best_that_a_policy_can_do_under_the_kl():
    # max over q of q r - KL(q, p) / eta, of a reply that is right with probability p
    p, eta = 0.2, 1.5
    grid = np.linspace(1e-6, 1 - 1e-6, 20001)
    kl = grid * np.log(grid / p) + (1 - grid) * np.log((1 - grid) / (1 - p))
    assert soft_best.function(p, eta=eta) == pytest.approx(float((grid - kl / eta).max()), abs=1e-6)


def test_what_a_step_adds_to_the_one_before():
    assert steps(step_gain(inner=said()), 3, 4, 2, 6) == [((2, 0.5),), ((2, -0.25), (3, 0.5)), (), ()]
    # the first steps of the group say 1/4, 3/4 and 1/2: less their mean 1/2
    assert steps(step_gain(inner=said(), first="group"), 3, 4, 2, 6) == [
        ((1, -0.25), (2, 0.5)), ((1, 0.25), (2, -0.25), (3, 0.5)), ((1, 0.0),), ()
    ]  # fmt: skip
    # one without a verdict gets none, and does not count for the mean
    (first, missing) = step_gain(inner=said(), first="group")([rows(2, 5)], Run(policy=None))[0]
    assert missing.missing
    assert first.steps == ((1, 0.0),)
    # what it was computed from is kept, and adds nothing
    assert first.terms["said"].weight is None


def grown(*pieces: str) -> Trajectory:
    """A row of a search: a prompt, and a turn for each step."""
    turns = [Turn("policy", np.array([len(p)]), text=p) for p in pieces]
    return Trajectory(ask("?"), (Turn(None, np.zeros(1, np.int64)), *turns), path=(0,) * len(pieces))


@reward
def by_last_step(trajectory):
    return {"": 0.5, "a": 0.25, "b": 0.75, "x": None}[trajectory.turns[-1].text]


def test_what_partial_replies_promise():
    group = [grown(), grown("a"), grown("a", "b"), grown("x", "b"), grown("b", "x")]
    found = [s.value for s in promising(inner=by_last_step(), k=2, alpha=2.0)([group], Run(policy=None))[0]]
    # provers' values by best of 2: 3/4 at the start, 7/16 after a, 15/16 after b
    assert found == [0.5, 0.25 + 2 * (7 / 16 - 12 / 16), 0.75 + 2 * (15 / 16 - 7 / 16), None, None]


@reward
def of_steps_alone(trajectory):
    return {"": None, "a": 0.25, "b": 0.75}[trajectory.turns[-1].text]


def test_a_prompt_of_which_nothing_is_known_promises_what_its_first_steps_do():
    group = [grown("a"), grown("b"), grown("a", "b"), grown()]
    found = [s.value for s in promising(inner=of_steps_alone(), k=2, alpha=2.0)([group], Run(policy=None))[0]]
    # the prompt is worth the mean of 1/4 and 3/4, so that a prover has 3/4 there
    assert found == [0.25 + 2 * (7 / 16 - 12 / 16), 0.75 + 2 * (15 / 16 - 12 / 16), 0.75 + 2 * (15 / 16 - 7 / 16), None]


@reward
def even(trajectory):
    return float(len(trajectory.reply) % 2 == 0)


def test_chances_of_partial_replies():
    policy = untrained(0, hidden=32, layers=1)
    problem = ask("Start with 7.")
    (prompt,) = policy.read([Trajectory(problem)], [problem.prompt])
    (whole,) = policy.write([prompt], ["7+5"])
    begun = whole.cut(len(whole) - 1, policy.decode)
    run = Run(policy, verify=even(), max_new=6)
    before = policy.token_count.generated
    first, again, ended, full = chance_from_here(n=5)([[begun, begun, whole, replace(begun, stop=None)]], run)[0]
    # equal beginnings are sampled once, and only so far that the reply is as long as replies may be
    assert policy.token_count.generated - before <= 5 * 3
    done = policy.extend([begun] * 5, Sampling(3), Run(policy).rng("monte_carlo"))
    assert first.value == again.value == full.value == np.mean([len(t.reply) % 2 == 0 for t in done])
    assert ended.value == float(len("7+5") % 2 == 0)
    assert chance_from_here()([[begun]], replace(run, max_new=3))[0][0].missing
    with pytest.raises(RewardlabError, match="verifier"):
        chance_from_here()([[begun]], Run(policy))
