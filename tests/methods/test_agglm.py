"""AggLM: which sets of solutions are trained on, what an aggregator reads, and what is measured."""

from __future__ import annotations

import pytest
import torch
from scripted import ScriptedPolicy

from rewardlab.core import Run, ask
from rewardlab.engine.collate import collate
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.methods.search.agglm import Candidates, agglm, aggregated, mixed, of_candidates
from rewardlab.rewards.reward import reward
from rewardlab.rollouts.independent import independent


@reward
def gold(trajectory):
    return float(trajectory.reply.endswith(f"Answer: {trajectory.problem.answer}"))


def sets_of(*easy):
    return [Candidates(ask("?"), [], (x,), 0) for x in easy]


def test_easy_sets_are_rationed_against_hard_ones():
    sets = sets_of(True, False, True, True, False, True)
    # two are hard: half as many easy ones is one, the first
    assert mixed(sets, 0.5) == [sets[0], sets[1], sets[4]]
    assert mixed(sets, 0.0) == [sets[1], sets[4]]
    assert mixed(sets, 1.0) == [sets[0], sets[1], sets[2], sets[4]]
    assert mixed(sets, 100.0) == sets
    # without a hard one, one easy set is left, so that there is a batch
    easy = sets_of(True, True)
    assert mixed(easy, 0.5) == easy[:1]


SOLVES = {"a": ["Answer: 1", "Answer: 2", "Answer: 2"], "b": ["Answer: 3", "Answer: 3", "Answer: 4"]}


def solver():
    return ScriptedPolicy(lambda t: SOLVES[t.problem.question])


def aggregator():
    """Says 1 to solutions of which one says 1, though two say 2, and 4 to the others; it knows no answer by itself."""
    return ScriptedPolicy(
        lambda t: ["Answer: 1"] if "Answer: 1" in t.problem.question else ["Answer: 4", "Answer: 3"] if "3" in t.problem.question
        else ["Answer: 0"]
    )  # fmt: skip


def test_what_is_read_and_which_credit_follows():
    policy = aggregator()
    run = Run(policy, models={"solver": solver()}, verify=gold())
    problems = [ask("a", "1"), ask("b", "3")]
    part = of_candidates(inner=independent(n=2), n=3, easy=1.0, ask="{question}:{solutions}", between="|")
    groups = part(problems, run)
    # the majority is wrong of a, and right of b
    assert run.metrics == {"hard": 0.5, "kept": 1.0}
    assert [g[0].problem.question for g in groups] == ["a:Answer: 1|Answer: 2|Answer: 2", "b:Answer: 3|Answer: 3|Answer: 4"]
    recipe = agglm(m=3)
    batch = collate(groups, gold()(groups, run), torch.device("cpu"))
    credit = recipe.credit(batch.reward, batch, run)
    # both replies to a are right: no credit; to b the first is wrong, and the second right
    last = [row[batch.mask[i]][-1].item() for i, row in enumerate(credit)]
    assert last[:2] == [0.0, 0.0]
    assert last[2] == pytest.approx(-last[3])
    assert last[3] > 0
    # by hard sets alone, b is not read at all
    (only,) = of_candidates(inner=independent(n=2), n=3, easy=0.0)(problems, run)
    assert only[0].problem.answer == "1"
    assert "Answer: 2" in only[0].problem.question


def test_solutions_are_sampled_at_another_temperature_for_training_than_for_measuring():
    asked, by = [], solver()
    extend = by.extend
    by.extend = lambda rows, sampling, rng: asked.append(sampling.temperature) or extend(rows, sampling, rng)
    run, recipe = Run(aggregator(), models={"solver": by}, verify=gold()), agglm(m=3)
    recipe.rollout([ask("a", "1")], run)
    recipe.measure([ask("a", "1")], run)
    assert asked == [1.5, 1.0]


def test_replies_are_sampled_and_held_back_as_in_the_paper():
    recipe = agglm()
    assert recipe.rollout.settings["inner"].settings["temperature"] == 1.5
    assert recipe.rollout.settings["inner"].settings["n"] == 8
    assert "0.001 * kl_to_reference()" in str(recipe.objective)
    # a base of one's own stays as it is
    assert agglm(grpo(temperature=1.0)).rollout.settings["inner"].settings["temperature"] == 1.0


def test_solutions_are_read_without_their_thinking():
    says = ["<think>12? No.</think>\nSo\nAnswer: 2", "<think>It is 3, or", "Answer: 4"]
    run = Run(ScriptedPolicy(lambda t: ["5"]), models={"solver": ScriptedPolicy(lambda t: says)}, verify=gold())
    ((t,),) = of_candidates(inner=independent(n=1), n=3, ask="{solutions}", between="|")([ask("a", "1")], run)
    # one that was cut off while it thought has nothing else to be read
    assert t.problem.question == "So\nAnswer: 2|<think>It is 3, or|Answer: 4"


def test_measured_against_the_vote_of_the_same_solutions():
    run = Run(aggregator(), models={"solver": solver()}, verify=gold())
    found = aggregated(n=3)([ask("a", "1"), ask("b", "3")], run)
    # a: the minority is right, and found; b: the majority is right, and lost
    assert (found["aggregated"], found["majority"], found["minority"], found["spared"]) == (0.5, 0.5, 1.0, 0.0)
    assert (found["pass@1"], found["best"], found["alone"]) == (0.5, 1.0, 0.0)
