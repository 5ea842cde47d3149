"""Searches over steps, worked out by hand on a policy that follows a table."""

import math

import pytest
import torch
from served_model import choice, serving

from rewardlab.core import Run, Score, ask
from rewardlab.errors import NotFinite, RewardlabError
from rewardlab.methods.search.rebase import reward_balanced, widths
from rewardlab.methods.search.speculative_rejection import gaps_of, rejecting
from rewardlab.models.embedded import untrained
from rewardlab.models.load import load_policy
from rewardlab.rewards.intrinsic import likelihood
from rewardlab.rewards.reward import reward
from rewardlab.rollouts.beams import beams, subtrees
from rewardlab.rollouts.monte_carlo import back_up, monte_carlo_tree
from rewardlab.rollouts.particles import chosen, particles
from rewardlab.rollouts.stepwise import UNSURE, Stepping, grown, started, worths
from rewardlab.rollouts.tree import Node
from tests.helpers.scripted import ScriptedPolicy, last_digit, searched

SEARCHES = {
    "beams": beams(score=likelihood(), width=2, branch=2),
    "subtrees": subtrees(score=likelihood(), trees=2, branch=2),
    "reward_balanced": reward_balanced(score=likelihood(), n=4),
    "particles": particles(score=likelihood(), n=4, weight="score"),
    "rejecting": rejecting(score=likelihood(), n=4, every=4),
    "monte_carlo_tree": monte_carlo_tree(score=likelihood(), iterations=3, branch=2, simulate=True),
}


# ---- steps -----------------------------------------------------------------------------------------------------------


def grow_one(says, size=None, max_new=100, context=1000):
    policy = ScriptedPolicy(says)
    policy.context = context
    run = Run(policy, max_new=max_new)
    row, how = started([ask("?")], run)[0], Stepping(size)
    rows = []
    while row.stop is None:
        (row,) = grown([row], [0], how, run)
        rows.append(row)
    return rows


def test_a_step_that_is_too_long_goes_on_as_a_further_step_and_a_reply_has_at_most_so_many_tokens():
    def says(t):
        return ["abcdefgh"[len(t.reply) :]]

    assert [r.reply for r in grow_one(says, size=3)] == ["abc", "abcdef", "abcdefgh"]
    assert [r.stop for r in grow_one(says, size=3)] == [None, None, "end"]
    short = grow_one(says, size=3, max_new=5)
    assert [(r.reply, r.stop) for r in short] == [("abc", None), ("abcde", "length")]
    # one token of prompt: the context holds four more
    assert grow_one(says, size=3, context=5)[-1].reply == "abcd"


def test_a_served_reply_has_as_many_tokens_as_its_server_counts():
    lines = ("alpha beta", "gamma delta", "epsilon")

    def says(body):
        last = body["messages"][-1]
        done = last["content"].count("\n") if last["role"] == "assistant" else 0
        return choice(lines[done], stop_reason="\n") if done < 2 else choice(lines[done], "length")

    with serving(says) as server:
        run = Run(load_policy(f"{server.name},prefill=true"), max_new=5)
        (row,) = started([ask("?")], run)
        while row.stop is None:
            (row,) = grown([row], [0], Stepping(), run)
        # its server counts words, and its text is held as characters, of which the first step alone has eleven
        assert (row.reply, row.stop) == ("alpha beta\ngamma delta\nepsilon", "length")
        assert [body["max_tokens"] for body in server.asked] == [5, 3, 1]


def test_a_row_with_less_room_than_the_others_is_cut_where_its_reply_ends():
    policy = ScriptedPolicy(lambda t: ["xxxx\n"] if not t.reply else ["yyyyyy"])
    run = Run(policy, max_new=8)
    fresh = started([ask("?")], run)[0]
    (begun,) = grown([fresh], [0], Stepping(), run)
    both = grown([begun, fresh], [1, 0], Stepping(), run)
    assert [(t.reply, t.stop, t.path) for t in both] == [("xxxx\nyyy", "length", (0, 1)), ("xxxx\n", None, (0,))]
    assert int(both[0].mask.sum()) == 8


def test_rows_without_a_verdict_come_last_and_nan_is_refused():
    @reward
    def not_a_number(trajectory):
        return Score(math.nan)

    run = Run(untrained(0), max_new=4)
    rows = started([ask("?")], run)
    assert worths([rows, []], likelihood(), run) == [[UNSURE], []]
    with pytest.raises(NotFinite):
        worths([rows], not_a_number(), run)


def test_rewards_of_steps_find_the_ends_of_lines():
    @reward(steps=True)
    def each_line(trajectory):
        return [(at, 1.0) for at in trajectory.steps]

    replies, _, _ = searched(beams(score=each_line(), width=1, branch=2), {"": ["a\n", "b\nb\n"], "a\n": ["a"], "b\n": ["b\n"]})
    assert replies == [["a\na", "a\na"]]
    policy = ScriptedPolicy({"": ["a\nb\n\nc"]})
    (whole,) = grown(started([ask("?")], run := Run(policy)), [0], Stepping(stop=()), run)
    assert worths([[whole]], each_line(), run) == [[3.0]]


@pytest.mark.parametrize("name", SEARCHES)
def test_every_search_gives_complete_replies_of_a_tree_that_a_seed_repeats(name):
    problems = [ask("1+1=?"), ask("Start with 2.")]
    found = [SEARCHES[name](problems, Run(untrained(3), seed=1, max_new=12)) for _ in range(2)]
    for group in found[0]:
        assert group
        assert all(t.stop in ("end", "length") and t.mask.sum() <= 12 for t in group)
        text = {}
        for t in group:
            for node, a, b in t.spans:
                assert text.setdefault(node, t.ids[a:b].tolist()) == t.ids[a:b].tolist()
    assert [[t.reply for t in g] for g in found[0]] == [[t.reply for t in g] for g in found[1]]


# ---- beam search -----------------------------------------------------------------------------------------------------

TWO = {"": ["a5\n", "b7\n", "c1\n", "d3\n"], "a5\n": ["9", "2"], "b7\n": ["6", "4"]}


def test_a_beam_keeps_the_best_rows():
    replies, (group,), policy = searched(beams(score=last_digit(), width=2, branch=2), TWO)
    # of four first steps b7 and a5 stay, the better one first
    assert policy.calls == [[""] * 4, ["b7\n", "b7\n", "a5\n", "a5\n"]]
    assert replies == [["b7\n6", "b7\n4", "a5\n9", "a5\n2"]]
    assert [t.path for t in group] == [(1, 0), (1, 1), (0, 0), (0, 1)]


def test_an_ended_row_holds_its_place_and_a_finished_problem_leaves_the_batch():
    def says(t):
        if t.problem.question == "0?":
            return ["a9", "b2\n"] if not t.reply else ["3"]
        return ["c8", "d7"]

    replies, _, policy = searched(beams(score=last_digit(), width=1, branch=2), says, problems=2)
    # problem 0: the complete a9 beats b2; problem 1 is complete at once
    assert replies == [["a9"], ["c8", "d7"]]
    assert len(policy.calls) == 1
    replies, _, policy = searched(beams(score=last_digit(), width=2, branch=1), says, problems=2)
    # now b2 stays beside a9, and only it is extended
    assert policy.calls == [[""] * 4, ["b2\n"]]
    assert replies[0] == ["a9", "b2\n3"]


def test_a_row_without_verdict_is_kept_only_where_there_is_no_other():
    says = {"": ["a?\n", "b0\n"], "b0\n": ["1"], "a?\n": ["2"]}
    assert searched(beams(score=last_digit(), width=1, branch=2), says)[0] == [["b0\n1", "b0\n1"]]
    assert searched(beams(score=last_digit(), width=2, branch=1), says)[0] == [["b0\n1", "a?\n2"]]


def test_lookahead_scores_where_a_row_leads_and_discards_it():
    says = {"": ["a9\n", "b1\n"], "a9\n": ["0\n"], "b1\n": ["8\n"], "b1\n8\n": ["5"], "a9\n0\n": ["5"]}
    plain, _, _ = searched(beams(score=last_digit(), width=1, branch=2), says)
    ahead, (group,), policy = searched(beams(score=last_digit(), width=1, branch=2, ahead=1), says)
    assert {reply[:1] for reply in plain[0]} == {"a"}
    assert {reply[:1] for reply in ahead[0]} == {"b"}
    # what was looked at is sampled again
    assert policy.calls[:3] == [["", ""], ["a9\n", "b1\n"], ["b1\n", "b1\n"]]
    assert all(t.path[0] == 1 for t in group)


def test_subtrees_stay_apart():
    def says(t):
        return ["a9\n", "b1\n", "c3\n", "d2\n"] if not t.reply else ["5", "6"]

    replies, (group,), policy = searched(subtrees(score=last_digit(), trees=2, branch=2), says)
    # the second tree follows its own best, c3, though a9 is better; one beam of width 2 holds a9 and c3 as well, of width 1 only a9
    assert policy.calls == [[""] * 4, ["a9\n", "a9\n", "c3\n", "c3\n"]]
    assert replies == [["a9\n6", "c3\n6"]]
    assert [t.path for t in group] == [(0, 1), (2, 1)]


# ---- the budget of a tree --------------------------------------------------------------------------------------------


def test_widths_by_hand():
    # e^(0, -1, -2) / sum = .665, .245, .090: ceil(.665 * 8) = 6, ceil(2 * .731) = 2, and nothing is left
    assert widths([0.0, -0.2, -0.4], 8, 0.2) == [6, 2, 0]
    assert widths([-0.4, 0.0, -0.2], 8, 0.2) == [0, 6, 2]
    assert widths([0.5, 0.5], 4, 0.2) == [2, 2]
    assert widths([0.3] * 3, 4, 0.2) == [2, 1, 1]
    assert widths([UNSURE, 0.1], 4, 0.2) == [0, 4]
    assert widths([UNSURE, UNSURE], 4, 0.2) == [2, 2]
    assert widths([], 0, 0.2) == []


def test_a_reward_balanced_tree_spends_what_is_left_on_its_best_rows():
    says = {"": ["a9\n", "b1\n", "c5", "d9\n"], "a9\n": ["1", "2"], "d9\n": ["3"]}
    replies, _, policy = searched(reward_balanced(score=last_digit(), n=4, balance=0.2), says)
    # c5 is complete, so three are left for a9, b1 and d9: shares .496, .009, .496 give 2, 0, 1
    assert policy.calls == [[""] * 4, ["a9\n", "a9\n", "d9\n"]]
    assert replies == [["c5", "a9\n1", "a9\n2", "d9\n3"]]


# ---- particles -------------------------------------------------------------------------------------------------------


def test_particles_are_chosen_in_proportion_to_their_weights():
    rng = torch.Generator().manual_seed(0)
    logs = [math.log(0.5), math.log(0.25), math.log(0.25), UNSURE]
    # evenly spaced places: exactly 2, 1, 1, whatever the offset
    for _ in range(20):
        assert chosen(logs, "systematic", rng) == [0, 0, 1, 2]
    counts = [0] * 4
    for _ in range(500):
        for k in chosen(logs, "multinomial", rng):
            counts[k] += 1
    assert counts[3] == 0
    assert counts[0] == pytest.approx(1000, abs=90)
    assert sorted(set(chosen([UNSURE] * 4, "systematic", rng))) == [0, 1, 2, 3]


def test_particles_follow_the_odds():
    says = {"": ["a9\n", "b1\n"], "a9\n": ["4"], "b1\n": ["4"]}
    # odds 9 and 1/9: the shares are 81/82 and 1/82, so that of two places both are a9 for nearly every offset
    replies, (group,), policy = searched(particles(score=last_digit(), n=2, resampling="systematic"), says)
    assert policy.calls == [["", ""], ["a9\n", "a9\n"]]
    assert replies == [["a9\n4", "a9\n4"]]
    assert [t.path for t in group] == [(0, 0), (0, 1)]


def test_the_scores_themselves_may_be_the_log_weights():
    says = {"": ["a9\n", "b1\n"], "a9\n": ["4"], "b1\n": ["4"]}

    def second(weight):
        search = particles(score=last_digit(), n=2, resampling="systematic", weight=weight)
        return {reply for seed in range(8) for reply in searched(search, says, seed=seed)[2].calls[1]}

    # shares .69 and .31, against 81/82 and 1/82
    assert second("score") == {"a9\n", "b1\n"}
    assert second("log-odds") == {"a9\n"}


def test_an_ended_particle_is_resampled_and_not_extended():
    says = {"": ["a9", "b1\n"], "b1\n": ["4"]}
    replies, _, policy = searched(particles(score=last_digit(), n=2, resampling="systematic"), says)
    assert policy.calls == [["", ""]]
    assert replies == [["a9", "a9"]]


def test_scores_that_are_no_chances_have_no_odds():
    with pytest.raises(RewardlabError, match=r"a chance from 0 to 1, and a row has the score -.*weight=score"):
        particles(score=likelihood(), n=2)([ask("1+1=?")], Run(untrained(0), max_new=4))


# ---- rejection -------------------------------------------------------------------------------------------------------


def test_the_worst_rows_are_given_up():
    full = ["a1a9", "b2b9", "c3c9", "d4d9"]

    def says(t):
        whole = next((text for text in full if t.reply and text.startswith(t.reply)), None)
        return full if whole is None else [whole[len(t.reply) :]]

    replies, _, policy = searched(rejecting(score=last_digit(), n=4, reject=0.5, every=2), says)
    # 4, then 2, then 1 that only has its end to write
    assert policy.calls == [[""] * 4, ["d4", "c3"], ["d4d9"]]
    assert replies == [["d4d9"]]
    kept, _, _ = searched(rejecting(score=last_digit(), n=4, reject=0.0, every=2), says)
    assert sorted(kept[0]) == full


def test_so_many_are_given_up_as_the_share_says():
    texts = [f"{i:02d}a9" for i in range(100)]

    def says(t):
        whole = next((text for text in texts if t.reply and text.startswith(t.reply)), None)
        return texts if whole is None else [whole[len(t.reply) :]]

    # 29 of 100 go, of the 71 then 20, and of the 51 then 14
    _, _, policy = searched(rejecting(score=last_digit(), n=100, reject=0.29, every=2), says)
    assert [len(rows) for rows in policy.calls] == [100, 71, 51, 37]


def test_rows_are_scored_when_they_fill_what_the_others_have_left():
    # 16 at 125 tokens, 8 at 250, 4 at 500, 2 at 1000
    assert gaps_of(16, 0.5, 125) == [125, 125, 250, 500]
    # a quarter of 8, 6, 5 and 4 goes, and none of 3: lengths 80 / 8, 80 / 6, 80 / 5 and 80 / 4
    assert gaps_of(8, 0.25, 10) == [10, 3, 3, 4]
    assert gaps_of(8, 0.0, 10) == []
    assert gaps_of(8, 1.0, 10) == [10]
    told = []
    policy = ScriptedPolicy(lambda t: ["a" * 64])
    plain = policy.extend
    policy.extend = lambda rows, sampling, rng: told.append((len(rows), sampling.max_new)) or plain(rows, sampling, rng)
    rejecting(score=last_digit(), n=8)([ask("?")], Run(policy, max_new=64))
    # 64 / 8; then to 64 / 4, 64 / 2, and all of the last one
    assert told == [(8, 8), (4, 8), (2, 16), (1, 32)]


def test_a_complete_reply_is_compared_with_partial_ones():
    def says(t):
        return ["9", "b1bb"] if not t.reply else ["bb"[: 4 - len(t.reply)]]

    replies, _, policy = searched(rejecting(score=last_digit(), n=2, reject=0.5, every=2), says)
    assert (replies, len(policy.calls)) == ([["9"]], 1)


def test_a_complete_reply_that_partial_ones_push_out_is_among_the_answers():
    says = {"": ["8", "a9bb", "b1bb"], "a9": ["bb"], "a9b": ["1"]}

    def said(t):
        return says[t.reply]

    # of .8, .9 and .1 two stay, of .8 and .9 one, which ends at .1
    replies, _, _ = searched(rejecting(score=last_digit(), n=3, reject=0.5, every=2), said)
    assert replies == [["8", "a9b1"]]


# ---- Monte-Carlo tree search -----------------------------------------------------------------------------------------


def test_values_move_towards_what_is_found_and_unsure_leaves_move_none():
    root = Node(None)
    child = Node(None, root, value=0.8)
    leaf, unsure = Node(None, child, value=0.2), Node(None, child, value=UNSURE)
    back_up(child)
    back_up(leaf)
    # the mean of its own value and of the leaf's
    assert (child.visits, child.value, leaf.visits, root.visits) == (2, pytest.approx(0.5), 1, 2)
    back_up(unsure)
    assert (child.visits, child.value, unsure.value) == (3, pytest.approx(0.5), UNSURE)


def test_a_tree_follows_its_values_and_completes_replies():
    says = {"": ["a9\n", "b1\n"], "a9\n": ["8", "2"], "b1\n": ["7", "3"]}
    replies, _, policy = searched(monte_carlo_tree(score=last_digit(), iterations=2, branch=2, explore=0.0), says)
    # the prompt, then a9
    assert policy.calls == [["", ""], ["a9\n", "a9\n"]]
    assert replies == [["a9\n8", "a9\n2"]]
    # a third visit goes to b1, which was never visited; then nothing is left to expand
    replies, _, policy = searched(monte_carlo_tree(score=last_digit(), iterations=30, branch=2, explore=0.0), says)
    assert policy.calls == [["", ""], ["a9\n", "a9\n"], ["b1\n", "b1\n"]]
    assert len(replies[0]) == 4


def test_puct_may_stay_with_the_best_child():
    says = {"": ["a9\n", "b1\n"], "a9\n": ["8\n", "2\n"], "a9\n8\n": ["1"], "b1\n": ["3"]}
    # Q of a9 after its visit is .9, and b1's .1 plus explore * 1/2 * sqrt(2) / 1: below for explore = .5
    _, _, policy = searched(monte_carlo_tree(score=last_digit(), iterations=3, branch=2, explore=0.5, rule="puct"), says)
    assert policy.calls[2] == ["a9\n8\n", "a9\n8\n"]
    _, _, policy = searched(monte_carlo_tree(score=last_digit(), iterations=3, branch=2, explore=3.0, rule="puct"), says)
    assert policy.calls[2] == ["b1\n", "b1\n"]


def test_simulated_replies_value_the_leaves_and_are_replies():
    says = {"": ["a9\n", "b1\n"], "a9\n": ["0"], "b1\n": ["8"]}
    replies, _, policy = searched(monte_carlo_tree(score=last_digit(), iterations=2, branch=2, simulate=True), says)
    # a9 leads to 0 and b1 to 8: b1 is expanded
    assert policy.calls == [["", ""], ["a9\n", "b1\n"], ["b1\n", "b1\n"]]
    # equal steps are one child
    assert sorted(replies[0]) == ["a9\n0", "b1\n8", "b1\n8"]


def test_a_tree_without_a_complete_reply_completes_its_best_leaf():
    says = {"": ["a9\n", "b1\n"], "a9\n": ["4"]}
    replies, (group,), _ = searched(monte_carlo_tree(score=last_digit(), iterations=1, branch=2), says)
    assert replies == [["a9\n4"]]
    assert group[0].path == (0, 0)


def test_a_tree_that_is_less_deep_than_replies_are_long_is_searched_to_the_end():
    def found(length):
        def says(t):
            lines = t.reply.count("\n")
            return [f"{lines}a1\n", f"{lines}b3\n", f"{lines}c2\n"] if lines < length else ["4", "8"]

        run = Run(ScriptedPolicy(says), max_new=100)
        part = monte_carlo_tree(score=last_digit(), iterations=2, branch=3, explore=0.0)
        return part([ask("?")], run), run.metrics["unfinished"]

    (group,), unfinished = found(12)
    # the best of three steps each time, and two ends
    chain = "".join(f"{i}b3\n" for i in range(12))
    assert [t.reply for t in group] == [chain + "4", chain + "8"]
    assert unfinished == 1.0
    assert found(1)[1] == 0.0
