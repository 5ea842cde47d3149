"""GenPRM: relative progress as labels, and a judge that learns from the rationales that agree with them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run, Score, Term, TokenCount, Trajectory, Turn, ask, rollout
from rewardlab.engine.step import Ops, standard_loop
from rewardlab.methods.process.genprm import (
    DECIDE,
    Checking,
    agreed,
    any_right,
    executed_checks,
    first_errors_labelled,
    genprm,
    rationales,
    steps_to_check,
)
from rewardlab.models.embedded import untrained
from rewardlab.rewards.progress import relative_progress
from rewardlab.rewards.reward import reward
from rewardlab.runs.config import RunConfig

ROW = (Turn("policy", np.zeros(5, np.int64)),)


def says(steps, value=None):
    @reward(over="groups")
    def said(groups, run):
        paid = None if steps is None else Score(terms={"q": Term(None, tuple(enumerate(steps, 1)))})
        return [[Score(value) if paid is None and value is not None else paid or Score(None) for _ in group] for group in groups]

    return said()


def labels(steps, first, eps=0.8):
    (score,) = relative_progress(inner=says(steps), start=says(None, first).named("start"), eps=eps)(
        [[Trajectory(ask("?"), ROW)]], Run(policy=None)
    )[0]
    return None if score.missing else [paid for _, paid in score.steps]


@pytest.mark.parametrize(
    ("steps", "first", "want"),
    [
        # 1/4 of 1/2 is lost half, and so on: .5, .8, 4
        ([0.25, 0.2, 0.8], 0.5, [0, 1, 1]),
        # a hard problem: no step loses anything, though each is below a half
        ([0.125, 0.125, 1.0], 0.125, [1, 1, 1]),
        # a continuation that makes up for a wrong step does not make it right
        ([1.0, 0.125, 0.0], 1.0, [1, 0, 0]),
        # nothing left to lose, and nothing is found again after that
        ([0.0, 0.5, 0.5], 0.5, [0, 0, 0]),
        ([0.5, 0.5], 0.0, [0, 0]),
        ([], 0.5, []),
    ],
)
def test_a_right_step_keeps_its_share_of_the_chance(steps, first, want):
    assert labels(steps, first) == want


def test_hard_labels_ask_for_one_continuation_and_no_verdict_stays_none():
    assert [any_right.function(x) for x in (0.0, 0.125, 1.0)] == [0, 1, 1]
    assert labels([0.5], None) is None
    assert labels(None, 0.5) is None


def test_the_f1_of_first_errors_by_hand():
    @rollout
    def three(problems, run):
        return [[Trajectory(problems[0], ROW, steps=(1, 2, 3), tag=str(k)) for k in range(4)]]

    def rows(*labels):
        @reward(steps=True)
        def said(t):
            return [(at, x) for at, x in enumerate(labels[int(t.tag)], 1) if x is not None]

        return said()

    true = rows([1, 0, 0], [1, 1, 0], [1, 1, 1], [1, 1, 1])
    x = rows([1, 0.25, 1], [0, 1, 0], [0.5, 1, 1], [1, 1, None])
    measure = first_errors_labelled(truth=true, annotators={"x": x, "truth": true}, rollout=three())
    found = measure([ask("?")], Run(policy=None))
    # one of two flawed ones is located; of two right ones one is cleared, and one has a step without a label
    assert (found["located.x"], found["cleared.x"], found["f1.x"]) == (0.5, 0.5, 0.5)
    assert (found["f1.truth"], found["flawed"], found["n"]) == (1.0, 0.5, 4)


class Writer:
    """Writes the same two replies, whatever it is asked, and remembers what that was."""

    context, name = 5000, "judge"

    def __init__(self, policy, verdict):
        self.policy, self.token_count = policy, TokenCount()
        self.replies = ["```python\nprint(12)\n```\n", f"\\boxed{{{verdict}}}"]

    def __getattr__(self, name):
        return getattr(self.policy, name)

    def extend(self, rows, sampling, rng):
        return self.policy.write(rows, [self.reply(t) for t in rows])

    def reply(self, t):
        return self.replies[len(t.turns) > 1]


def solution(policy):
    (row,) = policy.write(policy.read([Trajectory(ask("Start with 7."))], [ask("Start with 7.").prompt]), ["7+5=12\nAnswer: 12"])
    ends = [i for i, c in enumerate(policy.pieces(row.ids)) if c == "\n"]
    return Trajectory(row.problem, row.turns, "end", steps=(ends[-1], len(row) - 1))


class Checker(Writer):
    """Says of a step, by its number and how often it was asked, what the table has; None: no verdict."""

    def __init__(self, policy, table):
        super().__init__(policy, "Yes")
        self.table = {number: iter(said) for number, said in table.items()}

    def reply(self, t):
        if len(t.turns) == 1:
            return self.replies[0]
        said = next(self.table[int(t.problem.question.split("Is step ")[1][0])])
        return "I cannot tell." if said is None else f"\\boxed{{{said}}}"


@pytest.mark.parametrize(
    ("table", "kept", "share"),
    [
        # the labels are right and wrong: of two checks the first says so of both steps
        ({1: ["Yes", "Yes"], 2: ["No", "Yes"]}, 1, 0.5),
        # each step is judged rightly once, but no check judges both so
        ({1: ["Yes", "No"], 2: ["Yes", "No"]}, 0, 0.0),
        # a check that lacks a verdict is none
        ({1: [None, "Yes"], 2: ["No", "No"]}, 1, 1.0),
        ({1: [None, None], 2: ["No", "No"]}, 0, None),
    ],
)
def test_a_check_is_learnt_whole_if_all_of_its_verdicts_are_the_labels(table, kept, share):
    policy = untrained(0)
    row = solution(policy)
    score = Score(steps=((row.steps[0], 1.0), (row.steps[1], 0.0)))
    run = Run(policy, models={"writer": Checker(policy, table)})
    found = agreed(votes=2)([[row, row]], [[score, Score(None)]], run)
    assert ["\n2: Answer: 12" in p.question for p in found] == [False, True] * kept
    assert run.metrics.get("agreed") == share
    for p, verdict in zip(found, ("Yes", "No"), strict=False):
        code, output, end = p.meta["solution"]
        assert (code, end) == ("```python\nprint(12)\n```\n", f"\\boxed{{{verdict}}}")
        # the real output of the real program
        assert output == DECIDE.replace("{output}", "12")


def test_each_solution_is_checked_by_itself():
    policy = untrained(0)
    row = solution(policy)
    right, flawed = (Score(steps=((row.steps[0], 1.0), (row.steps[1], second))) for second in (1.0, 0.0))
    run = Run(policy, models={"writer": Writer(policy, "Yes")})
    # of the flawed one the first step is judged rightly, too
    assert len(agreed()([[row, row]], [[right, flawed]], run)) == 2
    assert run.metrics["agreed"] == 0.5


def test_the_judge_learns_what_it_agreed_on_and_the_policy_does_not():
    task, policy = registry.task("arithmetic", test_size=2), untrained(hidden=32, layers=1)
    policy.context = 2000
    judge = policy.copy("judge")
    recipe = genprm(n=1, continuations=1, votes=1, writer="copy:policy", lr=1e-2).but(problems=1)

    @reward(steps=True)
    def labelled(t):
        return [(at, 1.0) for at in t.steps]

    recipe = recipe.but(reward=labelled(), measure=None)
    assert recipe.learns
    assert not genprm().learns
    before = [{k: v.clone() for k, v in m.state().items()} for m in (policy, judge)]

    def same_after(writer):
        run = Run(policy, models={"judge": judge, "writer": writer}, max_new=6, seed=1)
        standard_loop(recipe, run, Ops(recipe, run, task, RunConfig(steps=2)))
        return [all(torch.equal(m.state()[k], v) for k, v in old.items()) for m, old in zip((policy, judge), before, strict=True)]

    # an untrained model writes no verdict, and nothing is learnt from that
    assert same_after(policy.copy("writer")) == [True, True]
    assert same_after(Writer(policy, "Yes")) == [True, False]


@pytest.mark.parametrize(("verdict", "right"), [("\\text{Yes}", True), ("no", False), (" Yes", True), ("Maybe", None)])
def test_verdicts_are_read_as_models_write_them(verdict, right):
    policy = untrained(hidden=32, layers=1)
    t, run = solution(policy), Run(policy, models={"judge": Writer(policy, verdict)})
    (found,) = rationales(run, "judge", steps_to_check(t)[:1], Checking())
    assert found[0].right is right
    (score,) = executed_checks()([[t]], run)[0]
    assert [0 < x < 1 for _, x in score.steps] == ([] if right is None else [True, True])


def test_unmarked_replies_are_cut_into_steps():
    policy = untrained(0)
    row = Trajectory(ask("Start with 7."), solution(policy).turns, "end")
    (score,) = executed_checks()([[row]], Run(policy, models={"judge": Writer(policy, "Yes")}))[0]
    assert len(score.steps) == 2
