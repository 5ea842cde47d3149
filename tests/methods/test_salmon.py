"""SALMON: margins of both orders, the principle that decides, negations, noise, and what the model is shown."""

from __future__ import annotations

import random

import pytest
from reward_runs import taught
from rows import Replies

from rewardlab.core import Message, Run, ask
from rewardlab.errors import RewardlabError
from rewardlab.methods.reward_models.salmon import asked, asked_of, by_largest_margin, decided, margin, variances
from rewardlab.models.reward_model import load_reward_model
from rewardlab.rollouts.recorded import recorded
from rewardlab.text.principles import with_principles

HEAD = "\n\nA good reply is judged by this:"


def pair(question="Q?", **margins):
    return ask(question, chosen="a", rejected="b", margins=margins)


def test_margins_of_both_orders_count_where_they_agree_in_sign():
    assert [margin(x) for x in (1.5, "2", [1.0, 3.0], [-1.0, -2.0], [1.0, -3.0], [0.0, 2.0])] == [1.5, 2.0, 2.0, -1.5, 0.0, 0.0]
    assert [margin(x) for x in ("much", [1.0], [1.0, None], None)] == [None] * 4
    for wrong in ({}, {"brief": "much"}, "brief"):
        with pytest.raises(RewardlabError, match="margins"):
            groups([ask("Q?", chosen="a", rejected="b", margins=wrong)])


def order(problem, told, scales=None, flip=False):
    found = decided(problem, [asked(problem, name, problem.meta["margins"][name], no) for name, no in told], scales or {}, flip)
    return found and (found.question, found.meta["chosen"], found.meta["rejected"])


def test_the_principle_with_the_largest_margin_decides_and_a_negated_one_the_other_way():
    p = pair(brief=1.0, kind=-2.0, calm=0.0)
    assert order(p, [("brief", False)]) == (f"Q?{HEAD}\n- brief", "a", "b")
    assert order(p, [("brief", False), ("kind", False)]) == (f"Q?{HEAD}\n- brief\n- kind", "b", "a")
    assert order(p, [("brief", False), ("kind", True)]) == (f"Q?{HEAD}\n- brief\n- Not this: kind", "a", "b")
    # in units of its variance the margin of kind is -0.5, and that of brief 1
    assert order(p, [("brief", False), ("kind", False)], {"kind": 4.0, "brief": 1.0})[1:] == ("a", "b")
    assert order(p, [("brief", False)], flip=True)[1:] == ("b", "a")
    assert order(p, [("calm", False)]) is None


def test_rows_may_say_how_the_opposite_of_a_principle_is_put():
    p = ask("Q?", chosen="a", rejected="b", margins={"brief": 1.0}, negations={"brief": "Be long."})
    assert order(p, [("brief", True)]) == (f"Q?{HEAD}\n- Be long.", "b", "a")


def test_variances_are_of_all_margins_seen_and_are_kept_between_steps():
    run = Run(Replies([]))
    # 1 and 3: mean 2, variance 1; equal margins have no variance, and stay as they are
    assert variances(run, [pair(brief=1.0, kind=2.0), pair(brief=3.0, kind=2.0)]) == {"brief": 1.0, "kind": 1.0}
    # 1, 3, 8: mean 4, squares 74 / 3
    assert variances(run, [pair(brief=8.0)])["brief"] == pytest.approx(74 / 3 - 16)


def test_variances_are_of_the_numbers_of_both_orders_also_where_these_disagree():
    # 2, -1, 1, 3: mean 1.25, squares 15 / 4; of the margins 0 and 2 it would be 1
    found = variances(Run(Replies([])), [pair(brief=[2.0, -1.0]), pair(brief=[1.0, "3"])])
    assert found == {"brief": pytest.approx(15 / 4 - 1.25**2)}


def test_the_number_of_principles_is_geometric_with_mean_5_cut_at_the_most_and_half_are_negated():
    p, rng = pair(**{f"p{i}": 1.0 for i in range(12)}), random.Random(0)
    found = [asked_of(p, rng, 8, 0.5) for _ in range(4000)]
    counts = [len(names) for names in found]
    assert (min(counts), max(counts)) == (1, 8)
    chances = [0.2 * 0.8 ** (k - 1) for k in range(1, 9)]
    for k in (1, 2, 8):
        assert counts.count(k) / 4000 == pytest.approx(chances[k - 1] / sum(chances), abs=0.025)
    flat = [a.negated for names in found for a in names]
    assert sum(flat) / len(flat) == pytest.approx(0.5, abs=0.02)


def groups(problems, step=0, **settings):
    run = Run(Replies([]), step=step)
    made = by_largest_margin(inner=recorded(fields=("chosen", "rejected")), **settings)(problems, run)
    return [(group[0].problem.question, *(t.reply for t in group)) for group in made], run.metrics


def test_a_pair_is_labelled_anew_by_other_principles_at_each_visit_and_noise_turns_some_labels():
    p = pair(brief=1.0)
    plain = {tuple(groups([p], step, noise=0.0)[0]) for step in range(30)}
    assert plain == {((f"Q?{HEAD}\n- brief", "a", "b"),), ((f"Q?{HEAD}\n- Not this: brief", "b", "a"),)}
    many = [pair(f"{i}?", brief=1.0) for i in range(1000)]
    assert groups(many, negated=0.0, noise=0.0)[1]["turned"] == 0
    assert groups(many, negated=0.0)[1]["turned"] == pytest.approx(0.1, abs=0.03)
    with pytest.raises(RewardlabError, match="nothing to learn"):
        groups([pair(brief=0.0)])


def test_it_learns_from_a_users_rows_to_rank_a_pair_both_ways_and_the_run_is_a_reward_model(tmp_path):
    # where principles are ignored, half of the pairs are right: the best model kept is one that reads them
    after, _ = taught("salmon", tmp_path, [], steps=60, noise=0.0, most=1, reward_lr=1e-2)
    assert after["pair_accuracy"] > 0.5
    model = load_reward_model(str(tmp_path / "run"), written=True)
    replies = ("Trees save water in winter.", "Because of gravity alone.")
    for principle in ("Be accurate.", "Be brief."):
        asked_for = [Message("user", with_principles("Why do leaves fall?", [principle]))]
        first, second = model.score([(asked_for, reply) for reply in replies])
        assert first != second
