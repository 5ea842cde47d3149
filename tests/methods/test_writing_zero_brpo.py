"""Writing-Zero: comparisons with a reply of the group, advantages as they are, and lopsided groups left out."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from rows import Replies, batch_of, outcome

from rewardlab import registry
from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.errors import RewardlabError
from rewardlab.methods.judges.writing_zero_brpo import beats_reference, preferred_to_start
from rewardlab.rewards.reward import reward

RAIN = ask("Write about rain.", draft="It rains a lot.")


def reply(text: str, problem=RAIN) -> Trajectory:
    return Trajectory(problem, (Turn("policy", np.zeros(1, np.int64), text=text),), "end")


@reward
def length(trajectory):
    return float(len(trajectory.reply))


class Judge(Replies):
    """It scores texts by their length, and adds to the first one what stands first is liked for."""

    context = 10_000

    def __init__(self, first: float = 0.0, said: str = ""):
        super().__init__([])
        self.first, self.said, self.asked = first, said, []

    def extend(self, trajectories, sampling, rng):
        self.asked += [t.problem.question for t in trajectories]
        return [
            t.plus(Turn("judge", np.zeros(1, np.int64), text=self.said or self._of(t.problem.question)), "end")
            for t in trajectories
        ]

    def _of(self, question: str) -> str:
        texts = question.partition("[Reply A]\n")[2].partition("\n\nEnd with")[0].split("\n\n[Reply B]\n")
        a, b = (len(text) / 10 for text in texts)
        return f"Principle: length. [[{min(10, a + self.first):.1f}, {b:.1f}]]"


GROUP = [reply("r" * k) for k in (5, 10, 15, 20)]


def rewards(run: Run, groups=None, **settings) -> list[list[float | None]]:
    return [[s.value for s in row] for row in beats_reference(**settings)(groups or [GROUP], run)]


def test_replies_are_paid_by_the_order_relative_to_one_of_them_which_itself_earns_nothing():
    """By length, whichever of the four is the reference, those above it earn 1 and those below it -1."""
    chosen = set()
    for seed in range(20):
        (row,) = rewards(Run(Replies([]), seed=seed), by=length())
        assert row == rewards(Run(Replies([]), seed=seed), by=length())[0]
        at = row.index(0.0)
        assert row == [*[-1.0] * at, 0.0, *[1.0] * (3 - at)]
        chosen.add(at)
    assert chosen == {0, 1, 2, 3}


def test_the_reference_is_another_one_in_another_step():
    seen = {tuple(rewards(Run(Replies([]), step=step, steps=9), by=length())[0]) for step in range(9)}
    assert len(seen) > 1


def test_a_judge_is_asked_in_both_orders_so_that_the_place_of_a_text_does_not_count():
    judge = Judge(first=3.0)
    (row,) = rewards(Run(judge, models={"judge": judge}))
    at = row.index(0.0)
    assert row == [*[-1.0] * at, 0.0, *[1.0] * (3 - at)]
    # three comparisons, twice each
    assert len(judge.asked) == 6
    one = Judge(first=3.0)
    (biased,) = rewards(Run(one, models={"judge": one}), judgements=1)
    assert sorted(biased) == [0.0, 1.0, 1.0, 1.0]


def test_no_judgement_is_no_verdict_and_the_same_text_is_not_preferred():
    silent = Judge(said="I like both.")
    (row,) = rewards(Run(silent, models={"judge": silent}))
    assert row.count(None) == 3
    same = [reply("rain"), reply("rain"), reply("rain")]
    assert sorted(rewards(Run(silent, models={"judge": silent}), [same])[0]) == [-1.0, -1.0, 0.0]


def test_a_fixed_text_may_be_the_reference():
    # "It rains a lot." has 15 letters
    assert rewards(Run(Replies([])), by=length(), reference="draft") == [[-1.0, -1.0, -1.0, 1.0]]
    judge = Judge()
    assert rewards(Run(judge, models={"judge": judge}), reference="draft") == [[-1.0, -1.0, -1.0, 1.0]]
    with pytest.raises(RewardlabError, match="'other'"):
        rewards(Run(judge, models={"judge": judge}), reference="other")


def test_advantages_are_the_rewards_and_lopsided_groups_have_none():
    """|sum| / n: 1/4 and 3/4, of which only the first is at most .6; a row without a verdict counts in neither."""
    even = [("rd", {"": outcome(x)}) for x in (1.0, 1.0, -1.0, 0.0)]
    lopsided = [("rd", {"": outcome(x)}) for x in (1.0, 1.0, 1.0, 0.0)]
    missing = [("rdd", {"": outcome(x)}) for x in (1.0, -1.0, 0.0, None)]
    batch = batch_of([even, lopsided, missing])
    run = Run(None)
    credit = registry.build("writing_zero_brpo").credit(batch.reward, batch, run)
    assert credit[:4, 1].tolist() == [1.0, 1.0, -1.0, 0.0]
    assert not credit[4:8].any()
    assert torch.equal(credit[8:, 1:], torch.tensor([[1.0, 1.0], [-1.0, -1.0], [0.0, 0.0], [0.0, 0.0]]))
    assert run.metrics["lopsided"] == pytest.approx(1 / 3)


def test_held_out_replies_are_compared_with_those_of_the_policy_as_it_began():
    run = Run(Replies(["long reply", "same", "no"]), reference=Replies(["short", "same", "yes!"]))
    found = preferred_to_start(by=length())([ask(f"Write {i}") for i in range(3)], run)
    assert found["preferred"] == pytest.approx(0.5)


def test_held_out_comparisons_that_cannot_be_read_say_nothing_of_the_policy():
    said = Replies(["no scores", "no scores", "[[7, 3]]", "[[3, 7]]"])
    run = Run(Replies(["a", "b"]), reference=Replies(["c", "d"]), models={"judge": said})
    found = preferred_to_start()([ask("Write 0"), ask("Write 1")], run)
    # the second reply is preferred in both orders; of the first nothing is known
    assert (found["preferred"], found["judge_no_verdict"], found["n"]) == (1.0, 0.5, 1.0)
    silent = Run(Replies(["a"]), reference=Replies(["c"]), models={"judge": Replies(["hm", "hm"])})
    found = preferred_to_start()([ask("Write 0")], silent)
    assert (found["preferred"], found["judge_no_verdict"]) == (0.5, 1.0)


def test_a_reply_without_a_readable_judgement_says_what_the_judge_wrote_and_what_to_do():
    group = [reply("one"), reply("two")]
    run = Run(Replies([]), models={"judge": Replies(["I cannot tell."] * 2)})
    (scores,) = beats_reference()([group], run)
    (unread,) = [s for s in scores if s.value is None]
    assert "I cannot tell." in unread.why
    assert "--judge" in unread.why
    assert run.metrics["judge_no_verdict"] == 1.0
