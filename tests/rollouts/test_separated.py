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


def steps(*texts: str, at: str = ";", **settings) -> list[list[str]]:
    policy = untrained(0, hidden=32, layers=1)
    (group,) = separated(inner=written(texts=texts), at=at, **settings)([ask("?")], Run(policy))
    found = []
    for t in group:
        replies = [t.cut(end + 1, policy.decode).reply for end in t.steps]
        # the end token is the last step's
        assert settings or t.steps[-1] == len(t) - 1
        found.append([b[len(a) :] for a, b in zip(["", *replies], replies, strict=False)])
    return found


def test_a_step_ends_where_the_text_does():
    assert steps("take 3; sort; max") == [["take 3;", " sort;", " max"]]
    # a last separator ends the last step, blanks between two are none, and a reply without one is a step
    assert steps("max;", "a;; b", "max") == [["max;"], ["a;", "; b"], ["max"]]
    assert steps("a=1\n\nb=2", at="\n") == [["a=1\n", "\nb=2"]]
    assert steps("a, b", at=", ") == [["a, ", "b"]]


def ends(*texts: str, **settings) -> list[list[str]]:
    """The line of the reply in which each step ends."""
    policy = untrained(0, hidden=32, layers=1)
    (group,) = separated(inner=written(texts=texts), **settings)([ask("?")], Run(policy))
    found = []
    for t in group:
        replies = [t.cut(end + 1, policy.decode).reply for end in t.steps]
        found.append([reply.splitlines()[-1] for reply in replies])
    return found


def test_prose_and_fences_are_no_lines_of_a_program():
    block = "Let us see.\n```python\na=1\n\nb=2\n```\nDone, I hope."
    (found,) = ends(block, at="\n", program=True)
    assert found == ["a=1", "b=2"]
    # the last block of Python; without a block the whole reply; an open block ends with the reply; an empty one has no lines
    two = "```\nx=0\n```\n```py\ny=1\n```\n```text\nz\n```"
    texts = (two, "a=1\nb=2", "So:\n```\na=1\nb=2", "So:\n```\n```\nDone.")
    assert ends(*texts, at="\n", program=True) == [["y=1"], ["a=1", "b=2"], ["a=1", "b=2"], []]
    # all lines are steps where no program is asked for
    assert len(ends(block, at="\n")[0]) == 6


def test_it_wraps_what_samples():
    part = separated(inner=independent(n=3), at=";")
    assert part.rows_per_problem == 3
    with pytest.raises(RewardlabError, match="not empty"):
        separated(inner=independent(), at="")([ask("?")], Run(untrained(0, hidden=32, layers=1), max_new=2))
