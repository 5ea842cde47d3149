"""DeepSeek-GRM: scores of several samples are summed, those that the meta RM thinks right; easy and wrong rows are not imitated."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rows import Replies, batch_of, outcome

from rewardlab import registry
from rewardlab.core import Run, Score, Trajectory, ask
from rewardlab.methods.judges.deepseek_grm_spct import Vote, and_hinted, chance_of_best, guided_votes, right_of_hard_rows, summed
from rewardlab.rollouts.independent import independent

FORM = "{prompt}\n{replies}\n"
VOTES = [Vote((7.0, 7.0, 2.0), -1.0), Vote((5.0, 8.0, 9.0), -3.0), Vote(None, 9.0), Vote((6.0, 4.0, 3.0), 0.5)]


def test_the_scores_of_all_samples_are_summed_and_one_that_cannot_be_read_adds_nothing():
    # 7 + 5 + 6, 7 + 8 + 4, 2 + 9 + 3
    assert summed(VOTES, 3) == [18.0, 19.0, 14.0]
    assert summed([Vote(None, 0.0)], 3) == [0.0, 0.0, 0.0]


def test_the_meta_rm_leaves_out_the_samples_that_it_scores_lowest():
    # the two best that can be read: (6, 4, 3) and (7, 7, 2); now the first reply wins, and not the second
    assert summed(VOTES, 3, best=2) == [13.0, 11.0, 5.0]
    assert summed(VOTES, 3, best=1) == [6.0, 4.0, 3.0]
    worth = (1.0, 0.0, 0.0)
    assert (chance_of_best(summed(VOTES, 3), worth), chance_of_best(summed(VOTES, 3, best=2), worth)) == (0.0, 1.0)


def test_replies_that_tie_are_chosen_equally_often():
    assert chance_of_best([7.0, 7.0, 2.0], (1.0, 0.0, 0.0)) == 0.5
    assert chance_of_best([0.1 + 0.2, 0.3, 0.0], (0.0, 1.0, 0.0)) == 0.5
    assert chance_of_best([0.0, 0.0, 0.0], (0.0, 0.0, 1.0)) == pytest.approx(1 / 3)


class Judge(Replies):
    """It gives each reply the score that stands in its text, wherever the reply stands; every other sample is turned round."""

    def extend(self, trajectories, sampling, rng):
        texts = []
        for i, t in enumerate(trajectories):
            worth = [float(text[-1]) for text in t.problem.meta["shown"]]
            scores = worth if i % 2 == 0 else [9 - x for x in worth]
            texts.append(f"[[{', '.join(str(int(x)) for x in scores)}]]")
        self.replies = texts
        return super().extend(trajectories, sampling, rng)


def test_votes_are_taken_in_other_orders_and_put_back(monkeypatch):
    judge = Judge([])
    run = Run(judge, max_new=9)

    def scored(*, model):
        # the meta RM prefers the samples that are not turned round
        return lambda groups, run: [[Score(float(i % 2 == 0))] for i in range(len(groups))]

    monkeypatch.setattr("rewardlab.methods.judges.deepseek_grm_spct.model_score", scored)
    row = ask("Why?", replies=["bad 1", "good 8", "fair 4"], scores=[0, 2, 1])
    found = guided_votes(form=FORM, k=4)([row], run)
    # all four: 1 + 8 + 1 + 8 of the first, and as much of the others: a tie; two kept: 2, 16, 8
    assert (found["guided"], found["voted"]) == (1.0, pytest.approx(1 / 3))
    assert (found["judged"], found["meta_auc"], found["unread"]) == (0.5, 1.0, 0.0)
    single = guided_votes(form=FORM, k=4, best=1)([row], run)
    assert single["guided"] == 1.0


def test_votes_of_which_none_can_be_read_choose_nothing(monkeypatch):
    monkeypatch.setattr(
        "rewardlab.methods.judges.deepseek_grm_spct.model_score", lambda *, model: lambda g, run: [[Score(0.0)]] * len(g)
    )
    row = ask("Why?", replies=["bad 1", "good 8"], scores=[0, 1])
    found = guided_votes(form=FORM, k=2)([row], Run(Replies(["hm", "hm"]), max_new=9))
    # a choice by lot would be right half of the time
    assert (found["guided"], found["voted"], found["judged"], found["unread"]) == (0.0, 0.0, 0.0, 1.0)


def test_right_samples_are_imitated_and_those_of_rows_that_are_always_right_are_not():
    rewards = [(1.0, 1.0), (-1.0, 1.0, -1.0), (-1.0, -1.0)]
    batch = batch_of([[("rdd" if x > 0 else "rd", {"": outcome(x)}) for x in row] for row in rewards])
    weight = right_of_hard_rows()(batch)
    # one sample is kept, of two decisions: the first row is trivial, of the last none is right
    assert weight.sum(1).tolist() == [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    assert weight[3].tolist() == [0.0, 0.5, 0.5]
    assert float(right_of_hard_rows()(batch_of([[("rd", {"": outcome(1.0)})]])).sum()) == 0.0


def test_a_sample_that_was_told_the_best_reply_counts_if_it_is_right_and_does_not_make_a_row_hard():
    batch = batch_of([[("rd", {"": outcome(x)}) for x in row] for row in ((1.0, 1.0, -1.0), (-1.0, -1.0, 1.0))])
    batch.rows = [(replace(t, tag="hinted" if i % 3 == 2 else ""), s) for i, (t, s) in enumerate(batch.rows)]
    # without a hint all of the first row are right, so that it is trivial; of the second the hinted one alone is right
    assert right_of_hard_rows()(batch).sum(1).tolist() == [0.0, 0.0, 0.0, 0.0, 0.0, 1.0]


def test_the_hint_names_the_best_reply_where_it_stands_and_is_not_in_what_is_learnt():
    asked = []

    class Told(Replies):
        def extend(self, trajectories, sampling, rng):
            asked.extend(t.problem.question for t in trajectories)
            return super().extend(trajectories, sampling, rng)

    run = Run(Told(["[[1, 2, 3]]"]), max_new=9)
    row = ask("Why?", shown=["a", "b", "c"], worth=[0.0, 1.0, 0.5])
    ((sample, hinted),) = and_hinted(inner=independent(n=1))([row], run)
    assert asked == ["Why?", "Why?\n\nThe best of these responses is number 2 (B)."]
    assert (sample.tag, hinted.tag, hinted.problem.question, hinted.reply) == ("", "hinted", "Why?", "[[1, 2, 3]]")
    labels = registry.build("deepseek_grm_spct", {"form": FORM}).also[0].recipe.reward
    assert [s.missing for s in labels([[sample, hinted]], Run(None))[0]] == [False, True]


def test_the_highest_score_must_go_to_the_best_reply_alone():
    recipe = registry.build("deepseek_grm_spct", {"form": FORM})
    rows = [
        Replies([said]).extend(Replies([]).read([_question()], [()]), None, None)[0]
        for said in ("[[3, 7, 1]]", "[[7, 7, 1]]", "[[9, 7, 1]]", "7, 3")
    ]
    assert [s.value for s in recipe.reward([rows], Run(None))[0]] == [1.0, -1.0, -1.0, -1.0]
    assert [s.value for s in recipe.also[0].recipe.reward([rows], Run(None))[0]] == [1.0, 0.0, 0.0, 0.0]


def _question():
    return Trajectory(ask("Why?", shown=["a", "b", "c"], worth=[0.0, 1.0, 0.5]))


def test_first_it_imitates_and_then_it_is_rewarded_near_the_policy_that_imitation_made():
    done = []

    class Ops:
        new_stage = staticmethod(lambda: done.append("new stage"))

        @staticmethod
        def standard_step(recipe):
            done.append(f"{recipe.objective} of {recipe.rollout.innermost.settings['n']}")
            rates.append(recipe.update.lr)

    rates = []
    recipe = registry.build("deepseek_grm_spct", {"rft": 1, "lr": 4e-7})
    for step in range(2):
        recipe.loop(recipe, Run(None, step=step), Ops)
    assert done[:2] == ["imitate() of 3", "new stage"]
    assert "0.08 * kl_to_reference" in done[2]
    assert done[2].endswith("of 4")
    # the rates of the paper
    assert rates == [pytest.approx(5e-6), pytest.approx(4e-7)]
