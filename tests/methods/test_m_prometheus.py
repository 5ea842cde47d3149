"""M-Prometheus: one judge of scores and pairs, taught on native rows; translations by their own rubric; the best of n by grade."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from rows import Replies

from rewardlab import registry
from rewardlab.core import Run, ask
from rewardlab.errors import RewardlabError
from rewardlab.judges.named import form_of
from rewardlab.judges.rows import kind_of, mark_of, questions_of
from rewardlab.methods.judges.m_prometheus import TRANSLATION, by_language, gain, is_from, native_rows
from rewardlab.worlds.polyglot import TONGUES, polyglot

GRADED = ask("Warum?", "Wasser.", reply="Schwerkraft.", score=2, feedback="Der Grund fehlt.", language="German")
PAIR = ask("Comment ?", chosen="Sept minutes.", rejected="Au four.", feedback="A le dit.", language="French")
TEXTS = {"direct": "{prompt} {rubric} {answer}: {reply}", "pairwise": "{prompt} {rubric}: {first} / {second}"}


def with_rubric(row):
    return replace(row, meta={**row.meta, "rubric": "R"})


def test_one_judge_learns_scores_and_pairs_with_feedback_before_the_mark():
    groups = native_rows()([GRADED, PAIR], Run(Replies([])))
    assert [g[0].reply for g in groups] == ["Der Grund fehlt. [RESULT] 2", "A le dit. [RESULT] A"]
    # the pair has feedback for one order alone, so that no other is shown
    assert groups[1][0].problem.question.index("Sept") < groups[1][0].problem.question.index("four")


def test_of_a_pair_with_feedback_on_both_orders_the_mark_follows_the_order():
    row = replace(PAIR, meta={**PAIR.meta, "feedback_reversed": "B le dit."})
    said = {native_rows()([row], Run(Replies([]), step=i))[0][0].reply for i in range(20)}
    assert said == {"A le dit. [RESULT] A", "B le dit. [RESULT] B"}


def test_translated_rows_are_left_out_and_replaced_by_further_native_ones():
    foreign = replace(GRADED, meta={**GRADED.meta, "translated": True})
    run = Run(Replies([]), more_problems=lambda n: [PAIR] * n)
    groups = native_rows()([foreign, GRADED, foreign], run)
    assert [kind_of(g[0].problem) for g in groups] == ["scale", "pairwise", "pairwise"]
    # two of five rows seen were translated
    assert run.metrics["left_out"] == pytest.approx(2 / 5)
    only = native_rows(origin="translated")([foreign, GRADED], Run(Replies([])))
    assert len(only) == 1
    assert is_from(foreign, "all")
    # as tables write it
    told = {x: replace(GRADED, meta={**GRADED.meta, "translated": x}) for x in ("false", "no", "0", "", None, "true", "yes", 1)}
    assert [x for x, row in told.items() if is_from(row, "translated")] == ["true", "yes", 1]
    assert is_from(GRADED, "all")
    with pytest.raises(RewardlabError, match="translated"):
        native_rows()([foreign], Run(Replies([])))


def test_a_translation_without_a_rubric_is_judged_by_accuracy_fluency_and_style():
    row = ask("Translate: old", "viejo", reply="viejo", score=5, feedback="Right.", source_language="English")
    (group,) = native_rows()([row], Run(Replies([])))
    assert TRANSLATION in group[0].problem.question
    assert "viejo" in group[0].problem.question
    own = replace(row, meta={**row.meta, "rubric": "Only style."})
    assert TRANSLATION not in native_rows()([own], Run(Replies([])))[0][0].problem.question


def test_a_row_without_feedback_or_of_an_unknown_kind_is_refused():
    with pytest.raises(RewardlabError, match="feedback"):
        native_rows()([ask("Why?", reply="So.", score=3)], Run(Replies([])))
    with pytest.raises(RewardlabError, match="nothing to judge"):
        native_rows()([ask("Why?", reply="So.", feedback="Hm.")], Run(Replies([])))


def test_languages_weigh_the_same_and_pairs_are_judged_in_both_orders():
    german, french = with_rubric(GRADED), with_rubric(PAIR)
    # German: two rows, one right; French: one pair, right in one order of two
    said = ["[[2]]", "[[4]]", "it is [[A]]", "so [[A]]"]
    found = by_language(votes=1, **TEXTS)([german, german, french], Run(Replies(said), max_new=9))
    assert (found["judged_German"], found["judged_French"], found["judged"]) == (0.5, 0.5, 0.5)
    assert (found["pairs"], found["grades"], found["unread"]) == (0.5, 0.5, 0.0)
    said = ["[[2]]", "[[2]]", "no mark", "[[A]]"]
    found = by_language(votes=1, **TEXTS)([german, german, french], Run(Replies(said), max_new=9))
    # by rows it would be 2 of 4; by languages it is the mean of 1 and 0
    assert (found["judged"], found["unread"]) == (0.5, 0.25)
    assert (found["judged_German"], found["judged_French"]) == (1.0, 0.0)


def test_the_candidate_with_the_highest_grade_is_chosen():
    # mean 2.5, best 4: choosing 4 gains all, choosing 1 loses as much, a tie of 4 and 1 gains nothing
    assert gain([0.1, 0.2, 0.9, 0.3], [1, 2, 4, 3]) == 1.0
    assert gain([0.9, 0.2, 0.1, 0.3], [1, 2, 4, 3]) == -1.0
    assert gain([0.9, 0.2, 0.9, 0.3], [1, 2, 4, 3]) == 0.0


def test_a_scale_names_the_nearest_mark_and_refuses_other_scores():
    assert mark_of(form_of("prometheus"), 0.25) == "[RESULT] 2"
    with pytest.raises(RewardlabError, match="no whole number"):
        questions_of(ask("Why?", reply="So.", score=2.5), {"scale": form_of("prometheus")})


def test_by_default_native_rows_are_learnt():
    recipe = registry.build("m_prometheus", {})
    assert recipe.rollout.settings["origin"] == "native"
    assert "imitate" in str(recipe.objective)


def test_rows_of_the_world_that_were_translated_keep_a_score_that_their_words_no_longer_earn():
    task = polyglot(test_size=40)
    rows = [task.train[i] for i in range(200)]
    off = {True: 0, False: 0}
    for row in (r for r in rows if r.meta["kind"] == "scale"):
        earned = 1 + sum(TONGUES[row.meta["language"]][w] in row.meta["reply"].split() for w in row.meta["criteria"])
        off[row.meta["translated"]] += earned != row.meta["score"]
    assert off[False] == 0
    assert off[True] > 5
    assert not any(p.meta["translated"] for p in task.test[:40])
    judged = polyglot(judged=True, named=1.0, confused=0.0, test_size=20)
    for p in judged.test[:20]:
        said = judged.demonstrate(p, random.Random(0))
        assert said.endswith(p.meta["mark"])
