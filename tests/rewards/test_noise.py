"""Judges of known quality err alike along a reply, and each reply for itself."""

from __future__ import annotations

import numpy as np
import pytest

from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.methods.objectives.noisy_verifier_correction import noisy_verdict
from rewardlab.methods.process.aurora_universal_prm import noisy_steps
from rewardlab.rewards.critiques import noisy_critiques
from rewardlab.rewards.imperfect import imperfect
from rewardlab.rewards.imperfect_steps import imperfect_steps
from rewardlab.rewards.noise import errors
from rewardlab.rewards.reward import reward

N = 2000


def written(i: int, lines: list[str]) -> Trajectory:
    ids = np.array([i, *(hash_of(line) for line in lines)])
    return Trajectory(ask("Q"), (Turn("policy", ids, text="\n".join(lines)),), steps=tuple(range(1, len(lines) + 1)))


def hash_of(line: str) -> int:
    return int.from_bytes(line.encode()[-4:], "little")


@reward
def wrong(trajectory):
    return 0.0


@reward
def sound(trajectory):
    return 1.0


@reward(steps=True)
def wrong_steps(trajectory):
    return [(at, 0.0) for at in trajectory.steps]


def told(part, rows) -> np.ndarray:
    return np.array([score.total for score in part([rows], Run(policy=None, verify=wrong()))[0]])


def at_steps(part, rows) -> np.ndarray:
    return np.array([[x for _, x in score.steps] for score in part([rows], Run(policy=None))[0]])


def alike(a, b) -> float:
    return float(np.corrcoef(a, b)[0, 1])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("part", "least"), [(imperfect(inner=wrong()), 0.75), (noisy_verdict(false_positive=0.5, spread=0.0), 0.5)]
)
def test_beginnings_of_a_reply_are_judged_alike_and_replies_are_not(part, least):
    lines = [[f"w{i} a", f"b{i}", f"c{i}"] for i in range(N)]
    short, more, whole = (told(part, [written(i, lines[i][:k]) for i in range(N)]) for k in (1, 2, 3))
    assert alike(short, more) > least
    assert alike(more, whole) > least
    assert abs(alike(whole, np.roll(whole, 1))) < 0.06
    # a line that is not finished is part of its reply
    assert alike(told(part, [written(i, [f"w{i}"]) for i in range(N)]), short) > least


def test_z_at_d_steps_correlates_by_the_root_of_what_is_left():
    found = np.array([errors(("x", i), [1, 2, 3, 4, 5], fresh=0.2) for i in range(4000)])
    assert found.std(0) == pytest.approx([1] * 5, abs=0.04)
    # (1 - .2)^(d / 2) for d = 1 and 4
    assert alike(found[:, 0], found[:, 1]) == pytest.approx(0.8**0.5, abs=0.02)
    assert alike(found[:, 0], found[:, 4]) == pytest.approx(0.8**2, abs=0.03)
    apart = np.array([errors(("x", i), [1, 2], fresh=1.0) for i in range(4000)])
    assert abs(alike(*apart.T)) < 0.05


@pytest.mark.slow
def test_what_reads_all_beginnings_does_not_average_the_noise_away():
    # log-odds are linear in z:  the mean of five independent ones would have a variance of .2, here of about .76
    part = imperfect(inner=wrong())
    rows = [[written(i, [f"w{i}", f"b{i}", "c", "d", "e"][:k]) for i in range(N)] for k in range(1, 6)]
    said = np.array([told(part, row) for row in rows])
    odds = np.log(said / (1 - said))
    assert odds.mean(0).var() / odds[0].var() > 0.6


@pytest.mark.slow
def test_a_mistake_is_not_given_away_by_the_fall_of_a_shared_error():
    right, off = ([written(i, [f"w{i}", f"b{i}"]) for i in range(N)] for _ in range(2))
    said, other = told(imperfect(auc=0.8, inner=sound()), right), told(imperfect(auc=0.8, inner=wrong()), off)
    assert (said > other).mean() == pytest.approx(0.8, abs=0.03)


@pytest.mark.slow
@pytest.mark.parametrize(
    "part",
    [
        imperfect_steps(inner=wrong_steps()),
        noisy_steps(inner=wrong_steps(), miss=0.5),
        noisy_critiques(inner=wrong_steps(), miss=0.5, votes=1),
    ],
    ids=str,
)
def test_steps_of_a_reply_are_judged_alike_and_those_of_others_are_not(part):
    found = at_steps(part, [written(i, [f"a{i}", f"b{i}", f"c{i}"]) for i in range(N)])
    assert alike(found[:, 0], found[:, 1]) > 0.5
    assert alike(found[:, 1], found[:, 2]) > 0.5
    assert abs(alike(found[:, 0], np.roll(found[:, 0], 1))) < 0.06
