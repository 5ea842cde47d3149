"""DARWIN: beams of mutated instructions, of which the worst go on from what the best have written."""

from __future__ import annotations

import pytest

from rewardlab import registry
from rewardlab.core import Run, ask
from rewardlab.errors import RewardlabError
from rewardlab.methods.search.darwin_reward_steering import claim, darwin_reward_steering, evolved, mutations, update_archive
from rewardlab.rollouts.best import best
from tests.helpers.scripted import ScriptedPolicy, last_digit

COLUMN = {"mutate": "column", "iterations": 1, "n": 3, "keep": 1}


def found(says, seed="2", problem=None, **settings):
    """The group of one problem. says: (what is asked, the reply so far) -> what follows; `seed` is the reply to it as it is."""

    def follow(t):
        return [seed] if len(policy.calls) == 1 else [says[t.problem.question, t.reply]]

    policy = ScriptedPolicy(follow)
    problem = problem or ask("Q?", rewrite=["A?", "B?"])
    (group,) = evolved(score=last_digit(), **settings)([problem], Run(policy, seed=3, max_new=100))
    return group, policy


FIRST = {("Q?", ""): "1\n", ("A?", ""): "3\n", ("B?", ""): "5\n"}


def test_the_worst_go_on_from_the_best_each_under_its_own_instruction():
    group, _ = found(FIRST | {("Q?", "5\n"): "7", ("A?", "5\n"): "9", ("B?", "5\n"): "4"}, **COLUMN)
    assert [t.reply for t in group] == ["2", "5\n7", "5\n9", "5\n4"]
    # what is copied is one step of the tree, and what follows it is not
    assert [t.path for t in group] == [(0,), (3, 1), (3, 2), (3, 3)]
    assert all(len(t.spans) == len(t.path) for t in group)
    # all are replies to the problem as it was asked
    assert {t.problem.question for t in group} == {"Q?"}
    scores = last_digit()([group])[0]
    assert best()(group, scores, None).reply == "5\n9"


def test_a_complete_reply_stays_however_bad_and_may_be_copied_when_good():
    group, policy = found({("Q?", ""): "1", ("A?", ""): "8", ("B?", ""): "5\n"}, **COLUMN)
    assert [t.reply for t in group] == ["2", "1", "8", "8"]
    assert [t.stop for t in group] == ["end"] * 4
    assert len(policy.calls) == 2


def test_as_many_as_are_kept_are_not_replaced():
    says = FIRST | {("A?", "3\n"): "3", ("B?", "5\n"): "5", ("Q?", "3\n"): "7", ("Q?", "5\n"): "7"}
    group, _ = found(says, **COLUMN | {"keep": 2})
    assert [t.reply for t in group][2:] == ["3\n3", "5\n5"]
    assert group[1].reply in ("3\n7", "5\n7")


def test_the_archive_takes_children_that_beat_their_parent():
    for children, wanted in (
        ([("A", 0.4), ("B", 0.9)], {"A": 0.4, "B": 0.9}),
        # the same words with a better reply: the parent stays, with the new reward
        ([("Q", 0.4)], {"Q": 0.4}),
        ([("A", 0.2), ("B", 0.1)], {"Q": 0.2}),
        ([("A", 0.3), ("B", 0.1)], {"A": 0.3}),
    ):
        archive = {"Q": 0.2}
        update_archive(archive, "Q", children)
        assert archive == wanted


LIST = "Sure:\n1. A?\n2. B?"


def test_the_policy_mutates_what_the_archive_holds():
    says = {("again: Q? 2", ""): LIST, ("A?", ""): "9", ("B?", ""): "1"}
    # A? beats its parent, and is what the second iteration mutates; B? does not
    says |= {("again: A? 2", ""): "I cannot"}
    group, policy = found(says, problem=ask("Q?"), n=2, iterations=2, mutate="policy", template="again: {question} {n}", keep=1)
    # a mutation that fails leaves the instruction as it is
    assert [t.reply for t in group] == ["2", "9", "1", "9", "9"]
    # the reply, the mutation and the beams, twice
    assert [len(call) for call in policy.calls] == [1, 1, 2, 1, 2]


def test_a_list_counts_if_it_is_as_long_as_it_should_be():
    assert mutations(LIST, 2) == ["A?", "B?"]
    assert mutations(LIST, 3) == mutations("A?\nB?", 2) == []
    assert mutations("1. A?\n 2. Add 3.14 to it.", 2) == ["A?", "Add 3.14 to it."]
    # what a model lists while it thinks is no list of instructions
    assert mutations("<think>\n1. More detail.\n2. Less.\n</think>\n1. A?\n2. B?", 2) == ["A?", "B?"]


def test_without_mutation_all_beams_read_the_question():
    group, _ = found({("Q?", ""): "4"}, **COLUMN | {"mutate": "none"})
    assert [t.reply for t in group] == ["2", "4", "4", "4"]


def test_a_problem_without_wordings_is_refused():
    with pytest.raises(RewardlabError, match="no other wordings in 'rewrite'"):
        found({}, problem=ask("Q?"), **COLUMN)


def test_what_steers_also_chooses_and_both_sides_of_the_claim_have_as_many_beams():
    recipe = darwin_reward_steering(score=last_digit())
    assert recipe.reward == recipe.rollout.settings["score"] == last_digit()
    ours, theirs = (registry.build("darwin_reward_steering", s) for s in (claim.settings, claim.versus_settings))
    assert ours.rows_per_problem == theirs.rows_per_problem == 7
    a, b = ours.rollout.settings, theirs.rollout.settings
    assert {k for k in a if a[k] != b[k]} == {"mutate"}
