"""Guru: verifiers that rows name, domains that are trained on, and numbers of each domain."""

from __future__ import annotations

import numpy as np
import pytest

from rewardlab import registry
from rewardlab.core import Run, Trajectory, Turn, ask, measure, rollout
from rewardlab.errors import RewardlabError
from rewardlab.evals.domains import by_domain
from rewardlab.methods.curricula.guru import of_domains
from rewardlab.registry.parts import shared_definitions
from rewardlab.rewards.reward import reward
from rewardlab.verifiers.contract import Pair
from rewardlab.verifiers.named import _modules, named_verifier

SUM = {"numbers": [3, 5, 7], "target": 9}


def pair(reply: str, answer, **meta) -> Pair:
    return Pair(reply, answer, "?", meta)


def test_each_row_is_judged_by_the_verifier_that_it_names():
    pairs = [
        pair("Answer: 7", "7"),
        pair("7", "7", verifier="exact_match"),
        pair("Answer: 7", "7", verifier="exact_match"),
        pair("Answer: 7-3+5", SUM, verifier="equation"),
        pair("Answer: b, a, c", ["a", "b"], verifier={"name": "same_set", "measure": "jaccard", "at": 0.5}),
        pair("Answer: b, a, c", ["a", "b"], verifier={"name": "same_set"}),
    ]
    found = named_verifier().check_all(pairs)
    assert [v.correct for v in found] == [True, True, False, True, True, False]
    assert found[4].pays == pytest.approx(2 / 3)


NAMES = ["os:system", "nothing", "named_verifier", "countdown_equation", 3, {"name": "same_set", "at": 7}, {"measure": 1}, ["math"]]


@pytest.mark.parametrize("wanted", NAMES)
def test_a_name_that_is_no_verifiers_gives_no_verdict_on_that_row_alone(wanted):
    bad, good = named_verifier().check_all([pair("Answer: 7", "7", verifier=wanted), pair("Answer: 7", "7")])
    assert bad.correct is None
    assert bad.why
    assert good.correct is True


def test_every_verifier_of_the_package_can_be_named():
    # those of small worlds are theirs
    shared = {
        part.name for path, part in shared_definitions() if part.kind == "verifier" and not {"tasks", "worlds"} & {*path.parts}
    }
    assert set(_modules()) == shared - {"named_verifier"}
    assert "list_program" not in shared
    assert len(shared) > 20


@measure
def share_of_digits(problems, run):
    return {"digits": float(np.mean([p.question.isdigit() for p in problems])), "ci95_low": 0.0, "ci95_high": 0.6, "n": 1.0}


def test_domains_count_alike_in_the_mean():
    problems = [ask(q, domain=d) for q, d in (("1", "a"), ("x", "a"), ("y", "a"), ("z", "a"), ("2", "b"))] + [ask("3")]
    found = by_domain(inner=share_of_digits())(problems, Run(None))
    # 1/4, 1 and 1: their mean, not 3 of 6
    assert {k: v for k, v in found.items() if k.startswith("digits.")} == {"digits.a": 0.25, "digits.b": 1.0, "digits.other": 1.0}
    assert found["digits"] == pytest.approx(0.75)
    assert next(iter(found)) == "digits"
    assert found["n"] == 6
    # three independent intervals of half-width .3:  .3 sqrt(3) / 3
    assert (found["ci95_low"], found["ci95_high"]) == pytest.approx((0.75 - 0.1 * 3**0.5, 0.75 + 0.1 * 3**0.5))


@rollout
def asked(problems, run):
    return [[Trajectory(p, (Turn("policy", np.zeros(1, np.int64), text="x"),), "end")] for p in problems]


def test_problems_of_other_domains_are_replaced():
    source = [ask(str(i), domain="ab"[i % 2]) for i in range(40)]
    taken = [4]

    def more(n):
        taken[0] += n
        return source[taken[0] - n : taken[0]]

    run = Run(None)
    run.more_problems = more
    groups = of_domains(inner=asked(), domains=("a",))(source[:4], run)
    assert [g[0].problem.question for g in groups] == ["0", "2", "4", "6"]
    # a domain to train on is named as it is measured: rows without one are the domain other
    unnamed = [ask("x"), ask("y", domain=""), ask("z", domain="a")]
    assert [g[0].problem.question for g in of_domains(inner=asked(), domains=("other",))(unnamed, Run(None))] == ["x", "y"]
    # without a name nothing is replaced
    assert [g[0].problem.question for g in of_domains(inner=asked())(source[:4], run)] == ["0", "1", "2", "3"]
    with pytest.raises(RewardlabError, match="no problem is of the domains c: the column 'domain' says a, b"):
        of_domains(inner=asked(), domains=("c",))(source[:4], Run(None))


def test_what_a_base_samples_anew_is_of_the_domains_too():
    # every second problem is of domain a; replies are right where the question is even: all right, or all wrong, or mixed
    source = [ask(str(i), "x", domain="ab"[i % 2]) for i in range(80)]
    taken = [4]

    def more(n):
        taken[0] += n
        return source[taken[0] - n : taken[0]]

    @reward
    def mixed_from_question_16_on(trajectory):
        return float(int(trajectory.problem.question) >= 16 and trajectory.path == (0,))

    @rollout
    def twice(problems, run):
        turns = (Turn("policy", np.zeros(1, np.int64), text="x"),)
        return [[Trajectory(p, turns, "end", path=(i,)) for i in range(2)] for p in problems]

    run = Run(None, verify=mixed_from_question_16_on().named("correct"))
    run.more_problems = more
    base = registry.build("dapo")
    recipe = registry.method("guru")(base.but(rollout=base.rollout.with_innermost(twice())), domains="a")
    found = [g[0].problem.question for g in recipe.rollout(source[:4], run)]
    # four mixed groups, none of domain b
    assert found == ["16", "18", "20", "22"]
    # after it the run has the further problems of all domains again
    assert run.more_problems is more


def test_the_small_world_has_both_domains_in_turn_each_with_its_verifier():
    task = registry.task("domains:test_size=6")
    assert [task.train[i].meta["domain"] for i in range(4)] == ["arithmetic", "countdown"] * 2
    judge = registry.part("reward", task.verifier)
    for problem in task.test:
        right, wrong = (Pair(text, problem.answer, "", problem.meta) for text in (problem.meta["solution"], "Answer: 777"))
        assert [v.correct for v in judge.check_all([right, wrong])] == [True, False]
    recipe = registry.build("guru", {"domains": "arithmetic", "k": 4})
    assert recipe.rollout.settings["domains"] == ("arithmetic",)
    assert registry.build("guru", {"domains": "code, logic"}).rollout.settings["domains"] == ("code", "logic")
    assert recipe.measure.settings["inner"].settings["k"] == 4
