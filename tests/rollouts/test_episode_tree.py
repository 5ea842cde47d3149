"""Planning in an environment: bounds and returns of the tree by hand, what a search finds, and attempts after reflections."""

from __future__ import annotations

import numpy as np
import pytest

from rewardlab.core import Message, Run, Score, Trajectory, Turn, ask, environment
from rewardlab.errors import RewardlabError
from rewardlab.evals.episodes import planned_success
from rewardlab.rewards.reward import reward
from rewardlab.rollouts.episode_tree import Node, back_up, episode_tree, shown, with_reflection
from rewardlab.rollouts.interactive import interactive
from tests.helpers.scripted import ScriptedPolicy

STEPS = []


@environment(start=lambda problem, seed: (None, {"said": []}))
def two_digits(state, turn):
    """Ends after two replies; its state is changed in place, which a branch must not see."""
    STEPS.append(turn.text)
    state["said"].append(turn.text)
    return Message("user", ",".join(state["said"]), last=len(state["said"]) == 2), state


@reward
def sum_of_digits(trajectory: Trajectory) -> Score:
    return Score(float(sum(int(text) for text in trajectory.replies)))


@reward
def none(trajectory: Trajectory) -> Score:
    return Score(None)


ROW = Trajectory(ask("Q?"))


def test_the_action_with_the_highest_bound_is_chosen():
    # sqrt(ln 3) = 1.048: bounds 1 + 1.048 / 2 = 1.524, 0.2 + 1.048 / 2 = 0.724, and 1.048 of the one that was never taken
    node = Node(ROW, None, actions=[ROW] * 3, returns={0: [1.0], 1: [0.2]}, visits=3)
    assert node.chosen(1.0) == 0
    # twice the bonus: 2.048, 1.248, 2.096
    assert node.chosen(2.0) == 2
    # four returns of mean 1: 1 + 2.096 / 5 = 1.419, below 0.2 + 2.096 / 2 = 1.248 it is not, and below 2.096 it is
    assert Node(ROW, None, actions=[ROW] * 2, returns={0: [0.0, 2.0, 1.0, 1.0], 1: [0.2]}, visits=3).chosen(2.0) == 0
    assert Node(ROW, None, actions=[ROW] * 2).chosen(9.0) == 0


def test_a_value_counts_less_for_each_turn_above_the_leaf():
    def path(stop):
        root, inner = Node(ROW, None), Node(ROW, None)
        inner.parent = (root, 2)
        return root, inner, Node(Trajectory(ask("Q?"), stop=stop), None, (inner, 1))

    root, inner, leaf = path(stop=None)
    back_up(leaf, 10.0, 0.9)
    back_up(leaf, None, 0.9)
    assert (inner.returns, root.returns) == ({1: [9.0]}, {2: [pytest.approx(8.1)]})
    assert [node.visits for node in (leaf, inner, root)] == [3, 3, 3]
    # the last action of an episode earns the value itself
    root, inner, leaf = path(stop="end")
    back_up(leaf, 10.0, 0.9)
    assert (inner.returns, root.returns) == ({1: [10.0]}, {2: [9.0]})


def searched(says, problems=1, score=None, **settings):
    STEPS.clear()
    policy = ScriptedPolicy(says)
    run = Run(policy, max_new=4)
    search = episode_tree(env=two_digits(), score=score or sum_of_digits(), turns=2, **settings)
    return [[t.replies for t in group] for group in search([ask(f"{i}?") for i in range(problems)], run)]


def says(t):
    """At first 1 or 5, but 1 when it is not asked for several; after 1 it may be 9."""
    return ["1", "5"] if not t.replies else ["9", "2"] if t.replies[0] == "1" else ["0", "3"]


def test_a_search_plays_one_episode_an_iteration_and_finds_the_best_one():
    (found,) = searched(says, iterations=6, branch=2, explore=6.0)
    assert len(found) == 6
    assert ["1", "9"] in found
    # every episode is one that the policy could play: no branch has seen the replies of another
    assert all(len(replies) == 2 and replies[0] in "15" for replies in found)
    # each iteration takes one action and plays on: two steps of the environment at most
    assert len(STEPS) <= 12


def test_without_a_bonus_it_stays_where_the_mean_is_higher_and_with_a_large_one_it_looks_elsewhere():
    (stays,) = searched(says, iterations=4, branch=2, explore=0.0)
    assert {replies[0] for replies in stays} == {"1"}
    (looks,) = searched(says, iterations=4, branch=2, explore=100.0)
    assert {replies[0] for replies in looks} == {"1", "5"}


def test_problems_have_trees_of_their_own_and_scores_may_be_missing():
    assert [len(group) for group in searched(says, problems=3, iterations=3, branch=2)] == [3, 3, 3]
    assert [len(group) for group in searched(says, score=none(), iterations=3, branch=2)] == [3]


@reward
def is_small(trajectory: Trajectory) -> Score:
    """Right is what the score of these tests likes least."""
    return Score(float(sum(map(int, trajectory.replies)) <= 3))


def test_the_success_of_plans_is_that_of_their_best_episodes_and_of_any_one():
    play = {"env": two_digits(), "turns": 2}
    plans = {
        "sampled": interactive(n=2, **play),
        "tree": episode_tree(score=sum_of_digits(), iterations=4, branch=2, **play),
        "greedy": interactive(n=1, temperature=0.0, **play),
    }
    # of one problem the two episodes are 1 2 and 5 9, of the other 1 1 and 1 2; only 5 9 is not small
    said = {"a": {0: ["1", "5"], "1": ["2"], "5": ["9"]}, "b": {0: ["1"], "1": ["1", "2"]}}
    policy = ScriptedPolicy(lambda t: said[t.problem.question][t.replies[0] if t.replies else 0])
    run = Run(policy, max_new=4, verify=is_small())
    found = planned_success(score=sum_of_digits(), **plans)([ask("a"), ask("b")], run)
    assert {name: found[name] for name in ("best", "random", "greedy", "n")} == {
        "best": 0.5,
        "random": 0.75,
        "greedy": 1.0,
        "n": 2.0,
    }
    # the tree of the first problem finds 5 9, too, and everything is small in the second
    assert found["tree"] == 0.5
    with pytest.raises(RewardlabError, match="verifier"):
        planned_success(score=sum_of_digits(), **plans)([ask("a")], Run(policy, max_new=4))


# ---- reflection --------------------------------------------------------------------------------------------------------------


def attempts(low, threshold, n=3):
    """A policy that says `low` twice, and 9 twice once it was told a reflection."""
    asked = []

    def replies(t):
        if "STATUS: FAIL" in t.problem.question:
            asked.append(t.problem.question)
            return ["say more"]
        return ["9"] if "say more" in t.problem.question else [low]

    policy, problem = ScriptedPolicy(replies), ask("Big?")
    run = Run(policy, max_new=20)
    (group,) = with_reflection(env=two_digits(), score=sum_of_digits(), n=n, turns=2, threshold=threshold)([problem], run)
    return group, asked, run.metrics["attempts"], problem


def test_an_attempt_below_the_threshold_is_made_again_after_a_reflection():
    (t,), asked, count, problem = attempts("2", threshold=5)
    assert (t.replies, count) == (["9", "9"], 2)
    # the row is one of the problem as it was asked
    assert t.problem is problem
    assert asked == [
        "You were given a task:\n\nBig?\n\nThis is what you did:\n\nAction: 2\nObservation: ?\nAction: 2\nObservation: 2,2\n\n"
        "STATUS: FAIL\n\nIn a few sentences: why, and what is your new plan?"
    ]


def test_a_good_attempt_stands_and_where_none_is_good_the_first_does():
    (t,), asked, count, _ = attempts("8", threshold=5)
    assert (t.replies, asked, count) == (["8", "8"], [], 1)
    # a score at the threshold is not above it
    (t,), asked, count, _ = attempts("2", threshold=18)
    assert (t.replies, len(asked), count) == (["2", "2"], 2, 3)
    assert shown(t).startswith("Action: 2\n")


def said_of(episodes):
    return {"seen": len(episodes), "digits": sum(len(t.ends) for t in episodes)}


class Strict(ScriptedPolicy):
    """Reads a token for each word, and refuses a row that leaves no room for a reply, as policies do."""

    def read(self, trajectories, messages):
        said = [" ".join(m.text for m in new) for new in messages]
        return [t.plus(Turn(None, np.ones(len(x.split()), np.int64), text=x)) for t, x in zip(trajectories, said, strict=True)]

    def extend(self, trajectories, sampling, rng):
        for t in trajectories:
            self.check_fits(t, sampling.max_new)
        return super().extend(trajectories, sampling, rng)


@environment(start=lambda problem, seed: (None, 0))
def wordy(state, turn):
    """Six words after each reply, for ever."""
    return Message("user", "on and on and on again"), state + 1


def test_an_episode_without_room_for_another_reply_ends_where_it_is_searched():
    # a word and four tokens of a reply; then two tokens and six words an action: 1 + 8 + 4 = 13 fit, 9 + 8 + 4 = 21 do not
    policy = Strict(lambda t: ["1", "2"])
    policy.context = 20
    search = episode_tree(env=wordy(), score=sum_of_digits(), turns=9, iterations=4, branch=2)
    (group,) = search([ask("Go?")], Run(policy, max_new=4))
    assert [(t.stop, len(t.replies)) for t in group] == [("context", 2)] * 4


def test_as_many_reflections_are_read_as_leave_room():
    """Each says six words; the third attempt reads the last one alone, and what cannot be read once more is not reflected on."""
    heard = []

    def replies(t):
        if "STATUS: FAIL" in t.problem.question:
            return [f"{'ab'[len(heard) % 2]} b c d e f"]
        heard.append(t.problem.question)
        return ["2"]

    policy = Strict(replies)
    told, asks = "{question} {reflections}", "STATUS: FAIL {question}"
    play = {"env": two_digits(), "score": sum_of_digits(), "turns": 1, "threshold": 9.0, "n": 4, "told": told}
    policy.context = 1 + 6 + 12
    with_reflection(ask=asks, **play)([ask("Big?")], Run(policy, max_new=12))
    assert heard == ["Big?", "Big? b b c d e f", "Big? a b c d e f", "Big? b b c d e f"]
    heard.clear()
    # STATUS: FAIL, the question, and the episode: 2 + 1 + 4 words, and 12 of a reply, are more than 18
    policy.context = 18
    with_reflection(ask="STATUS: FAIL {question} {episode}", **play)([ask("Big?")], Run(policy, max_new=12))
    assert heard == ["Big?"] * 4


@environment(start=lambda problem, seed: (None, {"said": []}), logged=said_of)
def counting_digits(state, turn):
    """As `two_digits`, and says of how many episodes it was asked to tell."""
    return two_digits.function(state, turn)


@pytest.mark.parametrize("make", [
    lambda: episode_tree(env=counting_digits(), score=sum_of_digits(), iterations=3, branch=2, turns=2),
    lambda: with_reflection(env=counting_digits(), score=none(), n=3, turns=2),
])  # fmt: skip
def test_what_an_environment_says_of_episodes_is_said_of_all_of_a_step(make):
    policy = ScriptedPolicy(lambda t: ["1", "2"])
    run = Run(policy=policy, max_new=10)
    make()([ask("Q?")], run)
    assert run.metrics["seen"] == 3
    assert run.metrics["digits"] == 6
