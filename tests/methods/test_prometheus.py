"""Prometheus: feedback and then a score by the row's rubric; held-out scores are means of samples, by Pearson's r."""

from __future__ import annotations

import random

import pytest
from rows import Replies

from rewardlab import registry
from rewardlab.core import Run, Trajectory, ask
from rewardlab.errors import RewardlabError
from rewardlab.judges.named import form_of
from rewardlab.methods.judges.prometheus import asked, graded_rows, grades, output
from rewardlab.worlds.graded import criteria, graded

ROW = ask(
    "Why do leaves fall?", "Trees save water.", reply="Gravity.", rubric="Is the cause named?", feedback="It names none.", score=2
)  # fmt: skip
FORM = "{prompt} by {rubric}, best {answer}: {reply}"


def test_feedback_stands_before_the_score_unless_it_is_to_come_last_or_not_at_all():
    form = form_of("prometheus", "scale")
    assert output(ROW, form) == "It names none. [RESULT] 2"
    assert output(ROW, form, "last") == "[RESULT] 2 It names none."
    assert output(ROW, form, "none") == "[RESULT] 2"
    # what is written is read as it was meant: 2 of 1 to 5 is 1/4
    assert [form.read(output(ROW, form, how)).values for how in ("first", "last", "none")] == [(0.25,)] * 3


def test_the_judge_sees_reply_rubric_and_reference_and_each_can_be_left_out():
    form = form_of("prometheus", "scale")
    whole = asked(ROW, form).question
    assert all(text in whole for text in ("Why do leaves fall?", "Gravity.", "Is the cause named?", "Trees save water."))
    assert "Trees save water." not in asked(ROW, form, reference=False).question
    assert "Is the cause named?" not in asked(ROW, form, rubric=False).question
    (group,) = graded_rows(form=FORM)([ROW], Run(Replies([])))
    assert group[0].reply == "It names none. [[2]]"
    assert group[0].problem.question == "Why do leaves fall? by Is the cause named?, best Trees save water.: Gravity."


@pytest.mark.parametrize("score", [0, 6, 2.5, "good", float("nan")])
def test_a_score_off_the_scale_is_refused(score):
    row = ask("Why?", reply="So.", feedback="Short.", score=score)
    with pytest.raises(RewardlabError, match="no whole number from 1 to 5"):
        output(row, form_of("prometheus", "scale"))


def test_a_row_without_feedback_is_refused_only_where_it_is_learnt():
    row = ask("Why?", reply="So.", score="4")
    form = form_of("prometheus", "scale")
    assert output(row, form, "none") == "[RESULT] 4"
    with pytest.raises(RewardlabError, match="feedback"):
        output(row, form)


def test_held_out_scores_are_means_of_samples_and_one_that_cannot_be_read_is_in_the_middle():
    rows = [ask("Why?", "So.", reply=str(i), rubric="r", score=s) for i, s in enumerate((1, 3, 5))]
    said = ["[[1]]", "[[2]]", "[[3]]", "nothing", "[[5]]", "[[4]]"]
    found = grades(form=FORM, k=2)(rows, Run(Replies(said), max_new=9))
    # means 1.5, 3, 4.5: on a line with 1, 3, 5, half a point off at both ends
    assert found["pearson"] == pytest.approx(1.0)
    assert found["error"] == pytest.approx(1 / 3)
    # the one that cannot be read is not exact, although the middle of the scale is the score of its row
    assert (found["unread"], found["exact"]) == (pytest.approx(1 / 6), pytest.approx((1 + 1 + 1) / 6))
    alike = grades(form=FORM, k=1)(rows, Run(Replies(["[[3]]"] * 3), max_new=9))
    assert alike["pearson"] == 0.0


def test_by_default_the_feedback_comes_first_beside_reference_and_rubric():
    recipe = registry.build("prometheus", {})
    assert {k: recipe.rollout.settings[k] for k in ("feedback", "reference", "rubric")} == {
        "feedback": "first", "reference": True, "rubric": True,
    }  # fmt: skip
    assert "imitate" in str(recipe.objective)


def test_in_the_world_of_graded_notes_the_score_counts_what_the_rubric_names_and_rubrics_are_held_out():
    task = graded(by="rubric", counted=4, test_size=30)
    words = {"polite": "please", "urgent": "today", "signed": "Ann", "warm": "dear", "grateful": "thanks", "exact": "7",
             "loud": "!", "curious": "?"}  # fmt: skip
    for p in [*(task.train[i] for i in range(30)), *task.test[:30]]:
        named = p.meta["rubric"].split(", ")
        assert p.meta["score"] == 1 + sum(words[w] in p.meta["reply"].split() for w in named)
        assert all(words[w] in p.answer.split() for w in named)
    seen = {tuple(sorted(task.train[i].meta["criteria"])) for i in range(300)}
    assert seen <= set(criteria(4, False))
    assert {tuple(sorted(p.meta["criteria"])) for p in task.test} <= set(criteria(4, True))
    assert not set(criteria(4, True)) & set(criteria(4, False))


def test_the_careless_judge_of_notes_writes_what_the_verifier_reads():
    task = graded(by="rubric", counted=4, named=1.0, judged=True, test_size=5)
    policy = Replies([task.demonstrate(p, random.Random(0)) for p in task.test])
    said = policy.extend([Trajectory(p) for p in task.test], None, None)
    assert [s.value for row in registry.part("reward", task.verifier)([said], Run(None)) for s in row] == [1.0] * 5
