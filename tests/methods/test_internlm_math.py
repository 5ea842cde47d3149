"""InternLM-Math: lessons in judging own solutions, the verdict that is read from a check, and samples reranked by it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rewardlab import registry
from rewardlab.core import Message, Problem, Run, Score, Trajectory, Turn, ask
from rewardlab.evals.reranked import _mean_of_best, _most_frequent, auc_within, reranked
from rewardlab.methods.imitation.internlm_math import with_lessons_in_judging
from rewardlab.models.embedded import untrained
from rewardlab.rewards.own_verdict import _score, own_verdict, to_check, verdict
from rewardlab.rewards.reward import reward
from rewardlab.rollouts.recorded import recorded


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1 is fine.\nFinal: right", True), ("Final: wrong.", False), ("Final: **Right**", True),
        ("Final: right? No. Final: wrong", False),
        ("right", None), ("Final: rightly", None), ("Final: unsure", None), ("", None),
        ("final: WRONG", False), ("Semifinal: right", None),
    ],
)  # fmt: skip
def test_the_last_verdict_of_a_check_counts(text, said):
    assert verdict(text) is said


def test_signs_are_verdicts_too():
    assert [verdict(text, "+", "-") for text in ("Final: +", "13 -\nFinal: -", "+", "Final: +1")] == [True, False, None, None]


def test_what_a_judge_reads():
    problem = Problem((Message("system", "Be brief."), Message("user", "2+3?")), "5", {"kept": 1})
    read = to_check(problem, "2+3={steps}\nAnswer: 5", "{question}\n{steps}\n{right}")
    assert [m.text for m in read.prompt] == ["Be brief.", "2+3?\n1: 2+3={steps}\n2: Answer: 5\nright"]
    assert (read.answer, read.meta) == ("5", {"kept": 1})


@reward
def is_short(trajectory):
    """As a verifier: no verdict on an empty reply."""
    return float(len(trajectory.reply) < 12) if trajectory.reply else Score(None)


def test_lessons_are_own_solutions_with_the_verifiers_verdict():
    problems = [ask(f"{i}+1?", str(i + 1), solution=f"Answer: {i + 1}") for i in range(6)]
    run = Run(untrained(), verify=is_short(), max_new=8)
    groups = with_lessons_in_judging(inner=recorded(), share=0.5)(problems, run)
    assert len(groups) == 6
    solved = [g[0] for g in groups if g[0].problem.question.endswith("+1?")]
    judged = [g[0] for g in groups if "Check this solution" in g[0].problem.question]
    assert [t.reply for t in solved[:3]] == ["Answer: 1", "Answer: 2", "Answer: 3"]
    assert len(solved) + len(judged) == 6
    assert judged
    for t in judged:
        # what is judged stands in the prompt, numbered by lines
        sample = t.problem.question.partition("Solution:\n1: ")[2].partition("\n\nCheck")[0]
        assert t.reply == f"Final: {'right' if len(sample) < 12 else 'wrong'}" or "\n2: " in sample
        # learnt from as the policy's own
        assert t.mask.any()
    # none: as without
    plain = with_lessons_in_judging(inner=recorded(), share=0.0)(problems, run)
    assert [g[0].reply for g in plain] == [f"Answer: {i + 1}" for i in range(6)]


def row(text: str) -> Trajectory:
    return Trajectory(ask("2+3?", "5"), (Turn("policy", np.zeros(1, np.int64), text=text),), "end")


def test_a_reply_earns_the_share_of_checks_that_find_it_right():
    shares = [_score(said) for said in ([True, False], [None, True, True, False], [False], [None, None], None)]
    assert [s.value for s in shares] == [0.5, 2 / 3, 0.0, None, None]
    assert [s.why for s in shares[3:]] == ["no verdict found", "the reply is too long to be checked"]


def test_a_policy_checks_what_fits_its_context():
    policy = untrained()
    groups = [[row("5"), row("5 " * 600)], [row("6")]]
    # it says nothing that could be read, which is no verdict of right or wrong
    found = own_verdict(samples=2, max_new=8, ask="{question} {solution}")(groups, Run(policy))
    assert [[s.why for s in r] for r in found] == [
        ["no verdict found", "the reply is too long to be checked"],
        ["no verdict found"],
    ]
    assert own_verdict()([], Run(policy)) == []


def test_checks_count_by_their_probability_where_asked():
    by = registry.build("internlm_math", {"soft": True, "checks": 2}).measure.settings["by"]
    assert (by.settings["soft"], by.settings["samples"]) == (True, 2)
    assert registry.build("internlm_math").measure.settings["by"].settings["soft"] is False


def test_reranking_by_hand():
    assert _mean_of_best([0.5, 1.0, 1.0], [True, True, False]) == 0.5
    assert _mean_of_best([-math.inf, 0.0], [True, False]) == 0.0
    assert _mean_of_best([-math.inf] * 2, [True, False]) == 0.5
    assert _most_frequent(["Answer: 1", "Answer: 2", "Answer: 2"]) == 1
    # 2 of 2 pairs won, and one tie of one; a problem with right ones alone says nothing
    assert auc_within([[1.0, 0.0, 0.0], [0.5, 0.5], [1.0, 0.0]], [[True, False, False], [True, False], [True, True]]) == 0.75


@reward
def by_length(trajectory):
    return float(len(trajectory.reply))


def test_the_measure_reranks_the_same_samples_and_random_choice_is_their_mean():
    problems = [ask(f"{i}+1?", str(i + 1)) for i in range(4)]
    found = reranked(by=by_length(), n=4)(problems, Run(untrained(), verify=is_short(), max_new=8))
    # the longest are never the short ones, unless all are
    assert found["reranked"] <= found["pass@1"] <= found["best"]
    assert found["judged"] == 1.0
    assert found["n"] == 4.0


def test_the_small_world_teaches_both_abilities_and_tests_one():
    task = registry.task("versatile:test_size=30")
    assert [task.train[i].meta["ability"] for i in range(4)] == ["solve", "judge"] * 2
    assert {p.meta["ability"] for p in task.test} == {"solve"}
    for i in range(1, 40, 2):
        problem = task.train[i]
        assert verdict(problem.meta["solution"], "+", "-") is (problem.answer == "+")
