"""What a judge of steps is worth, against numbers worked out by hand."""

import math

import numpy as np
import pytest

from rewardlab.core import Run, Score, Trajectory, ask, rollout
from rewardlab.methods.process import fover as step_judges
from rewardlab.methods.process.fover import step_judgements
from rewardlab.models.embedded import untrained
from rewardlab.rewards.reward import reward
from rewardlab.text.splitters import mark

# right lines are "a": log-odds of each line
SOLUTIONS = {"a\na": (3.0, 1.0), "a\nb": (2.0, -1.0), "b\na": (1.0, 2.0), "a\nc": (0.5, 0.5)}


@rollout
def written(problems, run):
    prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    groups = [run.policy.write([t] * 4, list(SOLUTIONS)) for t in prompts]
    return [[mark(t, "newline", run.policy.pieces) for t in group] for group in groups]


@reward
def right(trajectory):
    return None if "c" in trajectory.reply else float("b" not in trajectory.reply)


@reward(steps=True)
def lines(trajectory):
    return [(at, float(line == "a")) for at, line in zip(trajectory.steps, trajectory.reply.split("\n"), strict=True)]


def said(model, rows):
    """The log-odds that are written above."""
    tables = [np.zeros(len(t)) for t in rows]
    for table, t in zip(tables, rows, strict=True):
        table[list(t.steps)] = SOLUTIONS[t.reply]
    return tables


def test_the_numbers_by_hand(monkeypatch):
    monkeypatch.setattr(step_judges, "values", said)
    run = Run(untrained(0), models={"prm": object()}, verify=right())
    found = step_judgements(rollout=written(), steps=lines())([ask("?", "1")], run)
    # right steps 3, 1, 2, 2; wrong -1, 1: all four above -1; 3, 2, 2 above 1, and 1 ties with it
    assert found["step_auc"] == pytest.approx((4 + 3.5) / 8)
    # the clean one is judged clean; of the two flawed ones the first error of one is found
    assert found["first_error_f1"] == pytest.approx(2 * 1 * 0.5 / 1.5)
    # least scores 1, -1, 1: the first of equals, which is right; the one without a verdict is left out
    assert (found["best_of_k"], found["pass@1"], found["n"]) == (1.0, pytest.approx(1 / 3), 3.0)
    higher = step_judgements(rollout=written(), steps=lines(), threshold=0.74)([ask("?", "1")], run)
    # sigmoid(1) = .731 is wrong now: the clean one is not clean, and both first errors are found
    assert higher["first_error_f1"] == 0.0


def test_without_labels_nothing_is_known(monkeypatch):
    @reward(steps=True)
    def nothing(trajectory):
        return Score(None)

    monkeypatch.setattr(step_judges, "values", said)
    run = Run(untrained(0), models={"prm": object()}, verify=right())
    found = step_judgements(rollout=written(), steps=nothing())([ask("?", "1")], run)
    assert math.isnan(found["step_auc"])
    assert math.isnan(found["best_of_k"])
