"""How often answers are right that are forced in the midst of a reply."""

from __future__ import annotations

import numpy as np
import pytest

from rewardlab.core import Run, Sampling, Trajectory, Turn, ask
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import untrained
from rewardlab.rewards.forced_answer import begin, forced_accuracy
from rewardlab.rewards.reward import reward
from rewardlab.text.splitters import mark

PROBLEM = ask("Start with 7.", "7")


@reward
def even(trajectory):
    """Replies with an even number of letters are right, those that begin with x have no verdict."""
    return None if trajectory.reply.startswith("x") else float(len(trajectory.reply) % 2 == 0)


@pytest.fixture(scope="module")
def policy():
    return untrained(0, hidden=32, layers=1)


def written(policy, *texts):
    (prompt,) = policy.read([Trajectory(PROBLEM)], [PROBLEM.prompt])
    return [mark(t, "newline", policy.pieces) for t in policy.write([prompt] * len(texts), texts)]


def ends(policy, text: str, **settings) -> list[int]:
    """Which lines of a reply are followed by a forced answer, from 0."""
    (row,) = written(policy, text)
    (score,) = forced_accuracy(n=1, tokens=2, **settings)([[row]], Run(policy, verify=even()))[0]
    return [row.steps.index(at) for at, _ in score.steps]


def test_the_share_of_right_answers_after_each_step_but_the_last(policy):
    rows = written(policy, "7+5=12\n12-5=7\nAnswer: 7", "Answer: 3", "7+5=12\nAnswer: 12")
    run = Run(policy, verify=even())
    before = policy.token_count.generated
    first, second, third = forced_accuracy(n=6, tokens=4)([rows], run)[0]
    # two beginnings, of which the third row's is the first row's too: sampled once
    assert policy.token_count.generated - before <= 2 * 6 * 4
    forced = begin(policy, [PROBLEM] * 2, ["7+5=12\nAnswer:", "7+5=12\n12-5=7\nAnswer:"])
    again = policy.extend([t for t in forced for _ in range(6)], Sampling(4, 0.6, 0.95), Run(policy).rng("forced"))
    assert all(t.reply.startswith("7+5=12\n") and "\nAnswer:" in t.reply for t in again)
    wanted = [float(np.mean([len(t.reply) % 2 == 0 for t in again[k : k + 6]])) for k in (0, 6)]
    assert first.steps == ((rows[0].steps[0], wanted[0]), (rows[0].steps[1], wanted[1]))
    # a reply of one step has nothing to be judged by, and that is no failure
    assert (second.steps, second.missing) == ((), False)
    assert third.steps == ((rows[2].steps[0], wanted[0]),)


def test_an_answer_is_no_longer_than_a_reply(policy):
    (row,) = written(policy, "7+5=12\n12-5=7\nAnswer: 7")
    before = policy.token_count.generated
    # what would not fit the context if it were as long as it may be, is asked for
    (score,) = forced_accuracy(n=3, tokens=100_000)([[row]], Run(policy, max_new=5, verify=even()))[0]
    assert len(score.steps) == 2
    assert 0 < policy.token_count.generated - before <= 2 * 3 * 5


def test_steps_whose_answers_have_no_verdict_are_left_out(policy):
    rows = written(policy, "x7+5\n7\nAnswer: 7")
    assert forced_accuracy(n=2)([rows], Run(policy, verify=even()))[0][0].steps == ()


def test_where_a_reply_is_cut(policy):
    text = "one\ntwo\nwait, three\nfour\nwait, five\nAnswer: 5"
    assert ends(policy, text) == [0, 1, 2, 3, 4]
    # before the lines that match, and after the whole reasoning
    assert ends(policy, text, at="wait") == [1, 3, 4]
    assert ends(policy, text, at="nothing") == [4]
    two = len(policy.pieces(written(policy, "one\ntwo\n")[0].ids)) - len(policy.read([Trajectory(PROBLEM)], [PROBLEM.prompt])[0])
    assert ends(policy, text, at="wait", after=two + 9) == [3, 4]
    assert ends(policy, text, at="wait", apart=200) == [1, 4]
    assert ends(policy, text, at="wait", apart=5) == [1, 3, 4]


def test_thinking_is_closed_and_what_follows_it_is_the_answer(policy):
    text = "<think>\none\ntwo\n</think>\nAnswer:\n7"
    assert ends(policy, text) == [0, 1, 2, 3]
    (row,) = written(policy, text)
    said = []

    @reward
    def seen(trajectory):
        said.append(trajectory.reply)
        return 1.0

    forced_accuracy(n=1, tokens=1)([[row]], Run(policy, verify=seen()))
    # the line that closes it begins as the one before does, and is sampled with it
    assert [s[: s.rindex("</think>") + 9] for s in said] == [
        "<think>\n</think>\n", "<think>\none\n</think>\n", "<think>\none\ntwo\n</think>\n"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("template", "text", "thinks"),
    [
        ("", "<think>\none\ntwo\nthr", False),  # cut off within the thinking
        ("<think>\n", "one\ntwo\nthr", False),  # the prompt as it is read has opened it
        ("", "one\ntwo\nthr", True),  # it is said that a template does
    ],
)
def test_thinking_that_was_cut_off_is_closed_before_an_answer_is_forced(policy, template, text, thinks):
    (begun,) = policy.read([Trajectory(PROBLEM)], [PROBLEM.prompt])
    (whole,) = policy.write([begun], [template])
    begun = Trajectory(PROBLEM, (Turn(None, whole.ids[:-1], text=begun.turns[0].text),))
    (row,) = (mark(t, "newline", policy.pieces) for t in policy.write([begun], [text]))
    said = []

    @reward
    def seen(trajectory):
        said.append(trajectory.reply)
        return 1.0

    forced_accuracy(n=1, tokens=1, thinks=thinks)([[row]], Run(policy, verify=seen()))
    assert said
    assert all("\n</think>\n" in s and "Answer:" not in s for s in said)


def test_it_says_what_it_needs(policy):
    rows = written(policy, "1\n2")
    with pytest.raises(RewardlabError, match="task's verifier"):
        forced_accuracy()([rows], Run(policy))
    bare = policy.write([rows[0].cut(3)], ["1"])
    with pytest.raises(RewardlabError, match='steps="newline"'):
        forced_accuracy()([bare], Run(policy, verify=even()))
    assert forced_accuracy()([], Run(policy, verify=even())) == []
