"""LE-MCTS: whose step is tried where, and what the steps above it are worth after it."""

from __future__ import annotations

import pytest

from rewardlab import registry
from rewardlab.core import Run, Trajectory, ask
from rewardlab.errors import RewardlabError
from rewardlab.methods.search.le_mcts import State, back_up, descend, ensemble_tree, le_mcts
from rewardlab.models.embedded import untrained
from rewardlab.rewards.intrinsic import likelihood
from tests.helpers.scripted import ScriptedPolicy, last_digit

OURS = {"": ["p2\n"], "p2\n": ["p3"], "q6\n": ["p9"]}
THEIRS = {"": ["q6\n"], "p2\n": ["q1"], "q6\n": ["q4"]}


def searched(iterations, explore=0.0, width=2, models=("policy", "other")):
    policy, other = ScriptedPolicy(OURS), ScriptedPolicy(THEIRS)
    run = Run(policy, models={"other": other}, max_new=50)
    part = ensemble_tree(score=last_digit(), models=models, iterations=iterations, width=width, explore=explore)
    (group,) = part([ask("?")], run)
    return [t.reply for t in group], group, policy, other


def test_models_take_turns_at_each_node_and_go_on_from_each_others_steps():
    # 1 p2 and 2 q6 at the root; then below q6 (.6 > .2): 3 p9, 4 q4; then all that is left is below p2: 5 p3, 6 q1
    assert searched(4)[0] == ["q6\np9", "q6\nq4"]
    replies, group, policy, other = searched(6)
    assert replies == ["p2\np3", "p2\nq1", "q6\np9", "q6\nq4"]
    assert [t.path for t in group] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert all(t.replies == [t.reply] and len(t.spans) == 2 for t in group)
    assert (policy.calls, other.calls) == ([[""], ["q6\n"], ["p2\n"]], [[""], ["q6\n"], ["p2\n"]])
    # nothing is left to try: further iterations cost nothing
    assert searched(20)[2].token_count == policy.token_count


def test_a_tree_without_a_complete_reply_ends_with_its_best_leaf():
    # both models write a last step after the better first one
    assert searched(2)[0] == ["q6\np9", "q6\nq4"]


def test_a_tree_that_is_less_deep_than_replies_are_long_is_ended_by_all_models():
    def says(letter, odd):
        def step(t):
            lines = t.reply.count("\n")
            return [f"{letter}{9 if lines % 2 == odd else 1}" + ("\n" if lines < 12 else "")]

        return step

    run = Run(ScriptedPolicy(says("p", 0)), models={"other": ScriptedPolicy(says("q", 1))}, max_new=100)
    part = ensemble_tree(score=last_digit(), models=("policy", "other"), iterations=4, width=2, explore=0.0)
    (group,) = part([ask("?")], run)
    # thirteen lines, each by the model that is right there, the last one by both
    assert [t.reply for t in group] == ["p9\nq9\n" * 6 + "p9", "p9\nq9\n" * 6 + "q1"]
    assert run.metrics == {"unfinished": 1.0}


def test_one_model_alone_tries_no_step_twice_as_two_children():
    assert searched(8, models=("policy",))[0] == ["p2\np3"]


def node(parent=None, own=0.0):
    child = State(Trajectory(ask("?")), parent, own, own)
    if parent is not None:
        parent.children.append(child)
    return child


def test_a_node_is_worth_its_best_child():
    root = node()
    a = node(root, 0.5)
    back_up(a)
    back_up(node(a, 0.2))
    # its own .5 was a guess: what follows it is .2
    assert (a.value, root.value) == (0.2, 0.2)
    back_up(node(a, 0.8))
    # the mean would be .5
    assert (a.value, root.value, a.visits, root.visits) == (0.8, 0.8, 3, 3)


def test_uct_prefers_what_was_seldom_tried():
    root = node()
    often, seldom = node(root, 0.6), node(root, 0.5)
    root.tried, root.visits, often.visits, seldom.visits = 2, 10, 9, 1
    # sqrt(ln 10) = 1.517: .6 + c .506 against .5 + c 1.517 meet at c = .0989
    assert descend(root, 2, 0.09) is often
    assert descend(root, 2, 0.11) is seldom
    # a node with a step left to try is where the search stops
    root.tried = 1
    assert descend(root, 2, 0.09) is root


def test_real_models_grow_one_tree():
    run = Run(untrained(1), models={"other": untrained(2)}, max_new=8, seed=3)
    part = ensemble_tree(score=likelihood(), models=("policy", "other"), iterations=6, width=2, step_tokens=3)
    first, again = (part([ask("1+1=?"), ask("2+2=?")], Run(run.policy, models=run.models, max_new=8, seed=3)) for _ in range(2))
    assert [[t.reply for t in g] for g in first] == [[t.reply for t in g] for g in again]
    assert all(t.stop is not None and len(t.replies) == 1 and t.mask.sum() <= 8 for g in first for t in g)
    assert run.models["other"].token_count.generated > 0


@pytest.mark.parametrize("models", [(), ("a", "b")])
def test_the_pool_is_the_policy_and_frozen_models(models):
    recipe = le_mcts(models=models, iterations=5)
    assert [(x.init, x.every) for x in recipe.also] == [(m, 0) for m in models]
    assert recipe.rollout.settings["models"] == ("policy", *(x.name for x in recipe.also))


def test_its_width_is_a_whole_number_of_steps():
    assert registry.build("le_mcts", {"width": 4}).rollout.settings["width"] == 4
    with pytest.raises(RewardlabError, match="width of le_mcts must be a whole number above 0"):
        registry.build("le_mcts", {"width": 0})
