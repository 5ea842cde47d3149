"""Steps divided by a text."""

from __future__ import annotations

import pytest

from rewardlab.core import Run, Trajectory, ask, rollout
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import untrained
from rewardlab.rollouts.independent import independent
from rewardlab.rollouts.separated import separated


@rollout
def written(problems, run, *, texts: tuple[str, ...] = ()):
    (prompt,) = run.policy.read([Trajectory(problems[0])], [problems[0].prompt])
    return [run.policy.write([prompt] * len(texts), list(texts))]


def steps(*texts: str, at: str = ";") -> list[list[str]]:
    policy = untrained(0, hidden=32, layers=1)
    (group,) = separated(of=written(texts=texts), at=at)([ask("?")], Run(policy))
    found = []
    for t in group:
        replies = [t.cut(end + 1, policy.decode).reply for end in t.steps]
        # the end token is the last step's
        assert t.steps[-1] == len(t) - 1
        found.append([b[len(a) :] for a, b in zip(["", *replies], replies, strict=False)])
    return found


def test_a_step_ends_where_the_text_does():
    assert steps("take 3; sort; max") == [["take 3;", " sort;", " max"]]
    # a last separator ends the last step, blanks between two are none, and a reply without one is a step
    assert steps("max;", "a;; b", "max") == [["max;"], ["a;", "; b"], ["max"]]
    assert steps("a=1\n\nb=2", at="\n") == [["a=1\n", "\nb=2"]]
    assert steps("a, b", at=", ") == [["a, ", "b"]]


def test_it_wraps_what_samples():
    part = separated(of=independent(n=3), at=";")
    assert part.rows_per_problem == 3
    with pytest.raises(RewardlabError, match="not empty"):
        separated(of=independent(), at="")([ask("?")], Run(untrained(0, hidden=32, layers=1), max_new=2))
