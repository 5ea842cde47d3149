"""Derivations: gold solutions hold, the careless teacher errs where it is said to, and each of its lines is judged."""

from __future__ import annotations

import random

import pytest

from rewardlab import registry
from rewardlab.core import Trajectory, ask
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import untrained
from rewardlab.rewards.steps import derived_steps
from rewardlab.text.derivations import check
from rewardlab.text.splitters import mark
from rewardlab.worlds.derivations import Step, derivations, read, slip, write


@pytest.mark.parametrize("lines", [1, 3, 5])
def test_gold_solutions_hold_and_end_at_the_goal(lines):
    verifier, task = registry.part("reward", "derivation"), derivations(lines=lines, test_size=50)
    for problem in task.test:
        meta = problem.meta
        verdict = verifier.check(meta["solution"], problem.answer, **meta)
        assert (verdict.correct, verdict.tests) == (True, (True,) * lines)
        # every premise is needed, and said
        assert len(meta["steps"]) == lines
        assert problem.question.splitlines()[:-1] == [f"{i}:{p}" for i, p in enumerate(meta["premises"], 1)]


def test_the_teacher_takes_modus_tollens_for_its_converse_and_no_other_rule():
    rng, sure = random.Random(0), {"biased": 1.0, "error": 0.0}
    assert slip(Step("~p", "mt", (1, 2)), 4, rng, **sure) == Step("p", "mt", (1, 2))
    assert slip(Step("q", "mp", (1, 2)), 4, rng, **sure) == Step("q", "mp", (1, 2))
    assert read(write(4, Step("p&~q", "mp", (1, 2)))) == Step("p&~q", "mp", (1, 2))


def test_slips_are_wrong_lines_at_their_rate():
    task, wrong = derivations(biased=0.0, error=0.3, test_size=1), []
    for i in range(300):
        problem = task.train[i]
        # the first line alone: later ones may be wrong because of it
        line = task.demonstrate(problem, random.Random(i)).splitlines()[0]
        wrong.append(not check([line], problem.meta["premises"])[0].right)
    assert 0.22 < sum(wrong) / len(wrong) < 0.34


def test_verdicts_on_derivations():
    verifier, premises = registry.part("reward", "derivation"), ["p->q", "p"]
    assert verifier.check("3 mp 1 2:q", "q", premises=premises).correct
    assert verifier.check(" 3 mp 1 2:q\n\n", {"premises": premises, "goal": "q"}).correct
    stated = verifier.check("3 mp 1 2:p&q\n4 and 3:r", "r", premises=premises)
    assert (stated.correct, stated.tests, stated.parts["steps"]) == (False, (True, False), 0.5)
    assert verifier.check("3 mp 1 2:p&q", "q", premises=premises).why == "the last line is not the goal"
    assert verifier.check("", "q", premises=premises).correct is False
    for goal, given in (("q", None), (None, premises), ("q(", premises), ("q", ["p->"])):
        assert verifier.check("3 mp 1 2:q", goal, premises=given).correct is None


def test_steps_are_rewarded_at_the_ends_of_lines():
    policy = untrained(0)
    problem = ask("1:p->q\n2:q\nShow:p", "p", premises=["p->q", "q"])

    def paid(reply: str, problem=problem, **settings):
        (t,) = policy.write(policy.read([Trajectory(problem)], [problem.prompt]), [reply])
        t = mark(t, "newline", policy.pieces)
        score = derived_steps(**settings)([[t]])[0][0]
        return None if score.missing else [dict(score.steps)[at] for at in t.steps]

    reply = "3 mt 1 2:p\n4 or 3:p|r"
    assert paid(reply) == [0.0, 1.0]
    assert paid(reply, wrong=-1.0) == [-1.0, 1.0]
    assert paid(reply, premises="given") is None
    assert paid(reply, ask("?", "p", premises=["p->"])) is None


def test_what_is_asked_for_is_checked():
    with pytest.raises(RewardlabError, match="between 1 and 5"):
        derivations(lines=6)
    with pytest.raises(RewardlabError, match="biased is a probability"):
        derivations(biased=1.5)


def test_formal_trains_on_derivations_and_holds_out_chains_that_its_policy_has_seen():
    task, seen = registry.task("formal", test_size=20), registry.task("formal:train=all", test_size=20)
    assert {task.train[i].meta["kind"] for i in range(10)} == {"derivation"}
    assert [seen.train[i].meta["kind"] for i in range(4)] == ["derivation", "chain"] * 2
    assert {p.meta["kind"] for p in task.test} == {"chain"}
    assert task.warmed_as == "formal:train=all,error=0.2"
    verifier = registry.part("reward", "named_verifier")
    for problem in (task.train[0], task.test[0]):
        assert verifier.check(problem.meta["solution"], problem.answer, **problem.meta).correct
        assert isinstance(seen.demonstrate(problem, random.Random(0)), str)
