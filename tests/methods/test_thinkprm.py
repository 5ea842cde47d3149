"""ThinkPRM: which chains are kept, what is learnt from them, and how a verifier is measured."""

from __future__ import annotations

import math

import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run, Trajectory
from rewardlab.engine.step import Ops, standard_loop
from rewardlab.methods.process.thinkprm import chances_right, every_verdict_right, first_accepted, judged, thinkprm, verdicts_of
from rewardlab.models.embedded import untrained
from rewardlab.runs.config import RunConfig
from rewardlab.worlds.verdicts import to_judge

LINES = ["7+5=13", "13*3=39", "Answer: 39"]
"""The first is wrong, and what follows goes on from it rightly."""
PROBLEM = to_judge("Start with 7. Add 5. Multiply by 3.", LINES, False, verdicts=[False, True, True])
GOOD = "7+5=12 13 -\n13*3=39 39 +\nAnswer: 39 39 +\nFinal: -"
LUCKY = "7+5=13 13 +\n13*3=38 39 -\nAnswer: 39 39 +\nFinal: -"
WRONG = "7+5=12 13 -\n13*3=39 39 +\nAnswer: 39 39 +\nFinal: +"
SHORT = "7+5=12 13 -\nFinal: -"
RAMBLING = "Let me see."


def paid(chain, problem=PROBLEM, **settings):
    policy = untrained(0, task=registry.task("verdicts", test_size=1))
    row = policy.write(policy.read([Trajectory(problem)], [problem.prompt]), [chain])[0]
    return every_verdict_right(**settings)([[row]], Run(policy=None))[0][0].value


@pytest.mark.parametrize(("chain", "each", "last"), [(GOOD, 1, 1), (LUCKY, 0, 1), (WRONG, 0, 0), (SHORT, 0, 1), (RAMBLING, 0, 0)])
def test_every_verdict_must_be_right_and_not_the_last_alone(chain, each, last):
    assert paid(chain) == each
    assert paid(chain, steps=False) == last


BOXES = """<think>Step 1: Start with 7, add 5: 12, and not 13. Is it \\boxed{correct}? No, the step is \\boxed{incorrect}.

Step 2: 13 times 3 is 39. The step is **\\boxed{\\text{correct}}**.
Step 3: it repeats the line before. \\boxed{Correct}
</think>
Is the solution correct? No"""


def test_chains_as_reasoning_models_write_them():
    assert verdicts_of(BOXES) == ([False, True, True], False)
    assert (paid(BOXES), paid(BOXES.replace("? No", "? **Yes**"))) == (1.0, 0.0)
    # another step is blamed, and the last word is right: lucky
    lucky = BOXES.replace("incorrect}.", "correct}.").replace("Correct}", "incorrect}")
    assert (paid(lucky), paid(lucky, steps=False)) == (0.0, 1.0)
    # without a last word all steps must be right
    assert verdicts_of("Step 1 is \\boxed{correct}.\nSo is step 2: \\boxed{correct}") == ([True, True], True)
    assert verdicts_of("Let me see.") == ([], None)


def test_the_chance_is_that_of_the_last_word(policy):
    class Yes:
        context = 1000

        def write(self, rows, texts):
            self.texts = texts
            return policy.write(rows, texts)

        def score(self, rows):
            found = policy.score(rows)
            for x, t in zip(found, rows, strict=True):
                x[-len(t.turns[-1].ids) :] = 0.0
                x[-1] = math.log(0.75 if t.reply.endswith("Yes") else 0.25)
            return found

    judge, row = Yes(), policy.read([Trajectory(PROBLEM)], [PROBLEM.prompt])[0]
    unfinished, silent = "Step 1 is \\boxed{correct}.", "Let me see."
    assert chances_right(judge, [row] * 3, [BOXES, unfinished, silent]) == [pytest.approx(0.75), pytest.approx(0.75), None]
    assert judge.texts[1:2] == [f"{unfinished}\nIs the solution correct? Yes"]


def test_a_solution_without_labels_has_no_verdict():
    assert paid(GOOD, to_judge("Start with 7.", LINES, False)) is None
    assert paid(GOOD, to_judge("Start with 7.", LINES, None, verdicts=[False, True, True])) is None
    assert paid(GOOD, to_judge("Start with 7.", LINES, False, verdicts="[false, true, true]")) == 1.0


class Says:
    """A writer that says these chains in turn, whatever it is asked."""

    def __init__(self, policy, *chains):
        self.policy, self.chains, self.token_count = policy, chains, policy.token_count

    def __getattr__(self, name):
        return getattr(self.policy, name)

    def extend(self, rows, sampling, rng):
        return self.policy.write(rows, [self.chains[i % len(self.chains)] for i in range(len(rows))])


@pytest.fixture
def policy():
    return untrained(0, task=registry.task("verdicts", test_size=1), hidden=32, layers=1)


def test_the_first_chain_that_is_accepted_is_learnt_and_the_others_dropped(policy):
    run = Run(policy, models={"writer": Says(policy, LUCKY, WRONG, GOOD, GOOD)})
    kept = first_accepted(by=every_verdict_right(), n=4)([PROBLEM, PROBLEM], run)
    assert [[t.reply for t in group] for group in kept] == [[GOOD], [GOOD]]
    assert run.metrics["accepted"] == 0.5
    last = first_accepted(by=every_verdict_right(steps=False), n=4)([PROBLEM], run)
    assert last[0][0].reply == LUCKY
    # two chains a problem: the first has none, the second two
    some = first_accepted(by=every_verdict_right(), n=2)([PROBLEM, PROBLEM], run)
    assert [group[0].reply for group in some] == [GOOD]


def test_nothing_is_learnt_from_a_step_without_an_accepted_chain(policy):
    task = registry.task("verdicts", test_size=1)
    recipe = thinkprm(n=2).but(problems=2, weight_decay=0.0)

    def step(*chains):
        before = {k: v.clone() for k, v in policy.state().items()}
        run = Run(policy, models={"writer": Says(policy, *chains)}, max_new=80, steps=1)
        ops = Ops(recipe, run, task, RunConfig(steps=1))
        ops.problems = lambda n=None: [PROBLEM] * 2
        standard_loop(recipe, run, ops)
        assert math.isfinite(run.metrics["loss"])
        return any(not torch.equal(v, before[k]) for k, v in policy.state().items())

    assert step(LUCKY, WRONG) is False
    assert step(LUCKY, GOOD) is True


def test_the_measure_by_hand(policy):
    clean = to_judge("Start with 7.", ["Answer: 7"], True, verdicts=[True])
    right, spared = "Answer: 7 7 +\nFinal: +", "Answer: 7 7 +\nFinal: -"
    # the flawed solution: its error found, and another blamed; the right one: judged so, and with the wrong last word
    run = Run(Says(policy, GOOD, LUCKY, right, spared), max_new=80)
    found = judged(chains=2)([PROBLEM, clean], run)
    assert found["verdict"] == 0.75
    assert found["lucky"] == pytest.approx(1 / 3)
    # half of the flawed are located, all of the right ones cleared
    assert found["step_f1"] == pytest.approx(2 * 0.5 / 1.5)
    assert 0 <= found["auc"] <= 1


def test_the_score_is_the_mean_chance_of_the_chains(policy):
    class Sure(Says):
        """Of the final verdict + as likely as the chain's first word says."""

        def score(self, rows):
            found = self.policy.score(rows)
            chance = {"a": 0.9, "b": 0.1, "c": 0.6, "d": 0.6}
            for x, t in zip(found, rows, strict=True):
                x[-len(t.turns[-1].ids) :] = 0.0
                p = chance[t.reply[0]]
                x[-1] = math.log(p if t.reply.endswith("+") else 1 - p)
            return found

    clean = to_judge("Start with 7.", ["Answer: 7"], True, verdicts=[True])
    # one chain says .9 of the flawed solution and .6 of the right one; the mean of two says .5 and .6
    verifier = Sure(policy, "a\nFinal: +", "b\nFinal: -", "c\nFinal: +", "d\nFinal: +")
    found = judged(chains=2)([PROBLEM, clean], Run(verifier, max_new=80))
    assert (found["auc_of_one"], found["auc"]) == (0.0, 1.0)
