"""AURORA: a judge under several prompts, who knows the reference answer."""

from __future__ import annotations

import numpy as np
from rows import Replies

from rewardlab import registry
from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.core.policy import TokenCount
from rewardlab.methods.process.aurora_universal_prm import PROMPTS, aurora_universal_prm, check
from rewardlab.models.embedded import untrained
from rewardlab.rewards.reward import reward


@reward
def even(trajectory):
    return float(len(trajectory.reply) % 2 == 0)


class Judge(Replies):
    """A judge whose verdict depends on the prompt; `asked` holds what it was asked."""

    name, context, token_count = "judge", 10_000, TokenCount()

    def __init__(self, replies):
        super().__init__(replies)
        self.asked = []

    def read(self, trajectories, messages):
        self.asked += [t.problem.question for t in trajectories]
        return list(trajectories)

    def extend(self, trajectories, sampling, rng):
        said = self.replies.pop(0)
        return [t.plus(Turn("judge", np.zeros(1, np.int64), text=said), "end") for t in trajectories]


def test_four_prompts_vote_with_the_reference_at_hand():
    judge = Judge(["0: right\n1: right", "0: right\n1: wrong", "0: wrong\n1: wrong", "I cannot say"])
    problem = ask("6 times 7?", "42")
    row = Trajectory(problem, (Turn("policy", np.zeros(2, np.int64), text="6*7\n=41"),), "end", steps=(0, 1))
    run = Run(None, models={"judge": judge}, verify=even())
    ((score,),) = aurora_universal_prm().also[-1].recipe.reward([[row]], run)
    assert len(judge.asked) == len(PROMPTS) == len(set(judge.asked)) == 4
    assert all("Reference answer: 42" in text and "=41" in text and "6 times 7?" in text for text in judge.asked)
    # the reply is wrong (it has 7 letters): the first verdict has no vote, and of the others one of two finds step 0 right
    assert score.steps == ((1, 0.0),)


def test_what_its_claim_measures():
    task = registry.task("arithmetic", test_size=4)
    found = check.by(task.test, Run(untrained(hidden=32, layers=1), max_new=24, seed=1, verify=even()))
    assert {check.measure, check.against, check.fault.number} <= set(found)
