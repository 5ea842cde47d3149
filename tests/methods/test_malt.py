"""MALT: what a role says is worth the mean of the ends below it; positives are imitated, then pairs of one input compared."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from rows import Replies

from rewardlab import registry
from rewardlab.core import Run, Sampling, Task, Turn, ask
from rewardlab.engine.step import Ops
from rewardlab.errors import RewardlabError
from rewardlab.methods.baselines.dpo import dpo
from rewardlab.methods.sampling.malt import ROLES, Said, by_role, chains_accuracy, credited, malt, role_tree
from rewardlab.models.embedded import untrained
from rewardlab.models.learners import learner_model
from rewardlab.rewards.reward import reward
from rewardlab.runs.config import RunConfig
from rewardlab.tasks.sources import Shuffled
from rewardlab.worlds.drafts import criticise, drafts, refine

Q = ask("Q", "right")
PROBLEMS = [ask(f"{i}+{i}=?", str(2 * i)) for i in range(10, 18)]
TASK = Task("sums", Shuffled(PROBLEMS), PROBLEMS[:2], "final_number", max_new=4)
PAID = {"right": 1.0, "half": 0.5}


@reward
def as_said(trajectory):
    """No verdict for "?"."""
    return None if trajectory.reply == "?" else PAID.get(trajectory.reply, 0.0)


class Script(Replies):
    """Says the next line of a script each time that it is asked, and keeps what it has read."""

    name, context = "policy", 1000

    def __init__(self, *lines):
        super().__init__(lines)
        self.lines, self.seen = list(lines), []

    def read(self, trajectories, messages):
        turns = [Turn(None, np.zeros(1, np.int64), text="".join(m.text for m in new)) for new in messages]
        return [t.plus(turn) for t, turn in zip(trajectories, turns, strict=True)]

    def extend(self, trajectories, sampling, rng):
        self.seen += [t.turns[-1].text for t in trajectories]
        return self.write(trajectories, [self.lines.pop(0) for _ in trajectories])


def learnt(*lines, n=2, **settings):
    """What is learnt from the tree of a script: (role, what was read, texts), and the run."""
    run = Run(Script(*lines), max_new=4)
    groups = by_role(by=as_said(), n=n, model="policy", **settings)([Q], run)
    return [(g[0].problem.meta.get("role"), g[0].turns[0].text, tuple(t.reply for t in g)) for g in groups], run


# of the first attempt three of four chains end right, of the second none
TREE = ["g0", "g1", "v00", "v01", "v10", "v11", "right", "right", "right", "bad", "bad", "worse", "bad", "bad"]


def test_each_role_reads_the_question_and_what_was_said_before_it():
    run = Run(Script(*TREE), max_new=4)
    role_tree([Q], [run.policy] * 3, (2, 2, 2), Sampling(4), run.rng("rollout"))
    assert run.policy.seen[:2] == ["Q", "Q"]
    assert run.policy.seen[2:6] == ["Verify.\nQ\ng0"] * 2 + ["Verify.\nQ\ng1"] * 2
    assert run.policy.seen[6:8] == ["Refine.\nQ\ng0\nv00"] * 2
    assert run.policy.seen[-1] == "Refine.\nQ\ng1\nv11"


def test_pairs_are_of_the_same_input_and_values_are_means_over_the_ends_below():
    pairs, run = learnt(*TREE)
    # v01 is worth exactly the threshold, and so are its two ends apart: right above it, "bad" below; g1's critics are all bad
    assert pairs == [
        ("generator", "Q", ("g0", "g1")),
        ("verifier", "Verify.\nQ\ng0", ("v00", "v01")),
        ("refiner", "Refine.\nQ\ng0\nv01", ("right", "bad")),
    ]
    assert run.metrics["ends_well"] == 3 / 8
    assert run.metrics["verifier/positives"] == 1 / 4


def test_positives_alone_are_imitated():
    rows, _ = learnt(*TREE, learn="positives")
    assert [(role, texts) for role, _, texts in rows] == [
        ("generator", ("g0",)), ("verifier", ("v00",)), ("refiner", ("right",)), ("refiner", ("right",)),
    ]  # fmt: skip
    assert learnt(*TREE, learn="positives", roles=("verifier",))[0] == [("verifier", "Verify.\nQ\ng0", ("v00",))]


def test_equal_texts_for_one_input_are_one_with_all_their_ends():
    # "g" twice: 1 right of 8 ends, though the first copy alone has it
    tree = ["g", "g", "v", "v", "v", "v", "right", *["bad"] * 7]
    pairs, _ = learnt(*tree)
    assert pairs == [("refiner", "Refine.\nQ\ng\nv", ("right", "bad"))]


def test_an_end_without_a_verdict_counts_for_nothing():
    # of v00 one end is right and one unknown: its value is 1, not 1/2
    pairs, _ = learnt("g0", "g1", "v00", "v01", "v10", "v11", "right", "?", "bad", "bad", "?", "?", "?", "?")
    assert pairs == [("verifier", "Verify.\nQ\ng0", ("v00", "v01"))]
    assert Said("verifier", Q, {"nobody knows": []}).labelled(0.5) == ([], [])


def test_the_threshold_divides_graded_rewards():
    tree = ["g0", "g1", "v", "w", "v", "w", *["half"] * 4, *["bad"] * 4]
    assert learnt(*tree)[0][0][0] is None  # nothing is above 1/2: rows that teach nothing
    assert ("generator", "Q", ("g0", "g1")) in learnt(*tree, threshold=0.4)[0]


@pytest.mark.parametrize(("learn", "rows"), [("pairs", 2), ("positives", 1)])
def test_trees_that_all_end_alike_give_rows_without_decisions(learn, rows):
    run = Run(Script("g0", "g1", "v00", "v01", "v10", "v11", *["bad"] * 8), max_new=4)
    (group,) = by_role(by=as_said(), n=2, model="policy", learn=learn)([Q], run)
    assert len(group) == rows
    assert not any(t.mask.any() for t in group)


def test_what_has_no_room_or_says_nothing_is_not_learnt():
    script = Script("g", "", "v")
    script.context = 5
    run = Run(script, max_new=5)
    # each prompt is one token here: no role has room for five more
    tree = role_tree([Q], [script] * 3, (1, 1, 1), Sampling(5), run.rng("rollout"))
    assert [t.reply for level in tree for t in level] == ["", "", ""]
    assert credited(tree, [1.0]) == []


def test_unknown_roles_are_refused():
    with pytest.raises(RewardlabError, match="critic"):
        learnt(*TREE, roles=("critic",))


def test_chains_vote_and_refinement_is_counted_both_ways():
    @reward
    def verdict(trajectory):
        return float(trajectory.reply.endswith("right"))

    lines = ["Answer: right", "Answer: b", "Answer: c", "v", "v", "v", "Answer: x", "Answer: right", "Answer: right"]
    run = Run(Script(*lines), max_new=4, verify=verdict())
    got = chains_accuracy()([Q], run)
    assert got["majority"] == 1.0
    assert got["drafted"] == pytest.approx(1 / 3)
    assert got["refined"] == pytest.approx(2 / 3)
    assert got["mended"] == pytest.approx(2 / 3)
    assert got["broken"] == pytest.approx(1 / 3)


def test_other_models_play_their_roles_at_test():
    @reward
    def verdict(trajectory):
        return float(trajectory.reply == "Answer: right")

    critic, refiner = Script("no"), Script("Answer: right")
    run = Run(Script("Answer: bad"), models={"verifier": critic, "refiner": refiner}, max_new=4, verify=verdict())
    assert chains_accuracy(chains=1)([Q], run)["refined"] == 1.0
    assert refiner.seen == ["Refine.\nQ\nAnswer: bad\nno"]


@reward
def odd(trajectory):
    """Something that replies of an untrained policy differ in."""
    return float(len(trajectory.reply) % 2)


def begun(**settings) -> Ops:
    recipe = malt(dpo(problems=2).but(reward=odd()), **settings)
    policy = untrained().copy("policy")
    run = Run(policy, steps=2, max_new=4, verify=registry.part("reward", "final_number"))
    run.reference = policy.copy("reference")
    run.models = {learner.name: learner_model(learner, policy) for learner in recipe.also}
    return Ops(recipe, run, TASK, RunConfig())


def test_positives_are_imitated_first_then_pairs_are_compared_with_the_result():
    ops = begun(n=2, sft_steps=1, temperature=1.0)
    run, policy = ops.run, ops.run.policy
    start = {name: x.clone() for name, x in policy.state().items()}
    assert {len(group) for group in step(ops)} == {1}
    assert any(not torch.equal(x, start[name]) for name, x in policy.state().items())
    imitated = {name: x.clone() for name, x in policy.state().items()}
    assert {len(group) for group in step(ops)} == {2}
    # what was imitated is the reference of what is compared: every pair costs log 2 at first
    assert all(torch.equal(x, imitated[name]) for name, x in run.reference.state().items())
    assert run.metrics["loss"] == pytest.approx(0.6931, abs=1e-3)
    # what writes the trees stays as it was before training
    assert all(torch.equal(x, start[name]) for name, x in run.model("writer").state().items())


@pytest.mark.parametrize(
    ("settings", "imitated", "compared"),
    [
        ({}, set(ROLES), {"verifier", "refiner"}),
        ({"compared": "generator,verifier,refiner"}, set(ROLES), set(ROLES)),
        ({"roles": "generator,refiner"}, {"generator", "refiner"}, {"refiner"}),
        ({"roles": "generator"}, {"generator"}, set()),
    ],
)
def test_the_generator_is_imitated_alone_and_verifier_and_refiner_are_compared_too(settings, imitated, compared):
    def roles_of(groups):
        return {row.problem.meta["role"] for group in groups for row in group if row.mask.any()}

    # at temperature 1 an untrained policy says different things, so that each role has positives and pairs
    assert roles_of(step(begun(sft_steps=1, temperature=1.0, **settings))) == imitated
    ops = begun(sft_steps=0, temperature=1.0, **settings)
    start = {name: x.clone() for name, x in ops.run.policy.state().items()}
    assert roles_of(step(ops)) == compared
    # without any pair nothing is learnt, to the last bit: the optimiser would make a step of what is rounded
    assert all(torch.equal(x, start[name]) for name, x in ops.run.policy.state().items()) == (not compared)


def test_a_name_that_is_no_role_is_refused_where_roles_are_compared():
    with pytest.raises(RewardlabError, match="refinr"):
        step(begun(sft_steps=0, compared="refinr"))


def step(ops):
    ops.recipe.loop(ops.recipe, ops.run, ops)
    ops.run.step += 1
    return ops.step_data.groups


QUESTION = ask("Start with 7. Add 5. Multiply by 3.", "36", steps=["7+5=12", "12*3=36"], solution="")


def gold(problem, rng):
    """A solver without slips."""
    return registry.task("arithmetic", error=0.0, test_size=1).demonstrate(problem, rng)


def test_a_critique_without_doubt_puts_each_wrong_step_right():
    attempt = "7+5=13\n13*3=39\nAnswer: 39"
    assert criticise(QUESTION, attempt, 0.0, random.Random(0)) == "7+5=13 no 7+5=12\n13*3=39\nAnswer: 39\nConclusion: wrong"
    # in doubt throughout: what is wrong passes, what is right does not
    assert criticise(QUESTION, attempt, 1.0, random.Random(0)).startswith("7+5=13\n13*3=39 no 13*3=")


@pytest.mark.parametrize(
    ("critique", "refined"),
    [
        ("7+5=13 no 7+5=12\n13*3=39\nAnswer: 39\nConclusion: wrong", "7+5=12\n12*3=36\nAnswer: 36"),
        ("7+5=12\n12*3=37 no 12*3=36\nAnswer: 37\nConclusion: wrong", "7+5=12\n12*3=36\nAnswer: 36"),
        ("7+5=12\n12*3=36\nAnswer: 36\nConclusion: right", "7+5=12\n12*3=36\nAnswer: 36"),
        # 52 times 3 is beyond what chains may reach: the attempt stays
        ("7+5=12 no 7+5=52\n12*3=36\nAnswer: 36\nConclusion: wrong", "7+5=12\n12*3=36\nAnswer: 36"),
    ],
)  # fmt: skip
def test_a_refined_attempt_follows_its_critique(critique, refined):
    assert refine(QUESTION, critique, gold, random.Random(0)) == refined


def test_the_small_policy_reads_all_roles_and_is_tested_on_questions():
    task = drafts(shown="roles", test_size=20)
    rows = [task.train[i] for i in range(30)]
    assert [p.meta.get("role") for p in rows[:3]] == [None, *ROLES[1:]]
    assert [p.question.split("\n")[0] for p in rows[1:3]] == ["Verify.", "Refine."]
    # the three roles of a problem are about the same question
    assert all(rows[i].question in rows[i + 1].question and rows[i].question in rows[i + 2].question for i in range(0, 30, 3))
    assert all(task.demonstrate(p, random.Random(0)) == p.meta["solution"] for p in rows if "role" in p.meta)
    assert drafts(test_size=20).warmed_as == "drafts:shown=roles,difficulty=3,error=0.1,biased=0.75,doubt=0.2"
    assert all(p.question.startswith("Start") for p in (*task.test, *(drafts(test_size=5).train[i] for i in range(5))))
    with pytest.raises(RewardlabError, match="questions or roles"):
        drafts(shown="neither")
