"""mR3: traces whose verdict is the label, of rows that are not easy, easy ones first, for scores, pairs and labels."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from rows import Replies

from rewardlab import registry
from rewardlab.core import Run, ask
from rewardlab.errors import RewardlabError
from rewardlab.methods.judges.mr3 import PUBLISHED, curriculum, failures, ordered, traced_rows, traces_of, verdicts_by_kind


def said(score: str, thought: str = "Hm.") -> str:
    return f'<think>{thought}</think> {{"explanation": "So.", "score": {score}}}'


GRADED = ask("Why?", reply="So.", score=2, language="a", judgement=said("2"))
PAIR = ask("How?", chosen="Good.", rejected="Bad.", language="b", judgement=said('"Assistant A"'))
LABEL = ask("17 + 5?", reply="22", label=True, language="b", judgement=said('"true"'))


def given(row, **columns):
    return replace(row, meta={**row.meta, **columns})


@pytest.mark.parametrize("row", [GRADED, PAIR, LABEL], ids=["score", "pair", "label"])
def test_a_trace_is_kept_where_its_verdict_is_the_label(row):
    (kept,) = traces_of(row, PUBLISHED, "english")
    assert kept.trace == row.meta["judgement"]
    wrong = given(row, judgement=said({"scale": "3", "pairwise": '"Assistant B"', "verdict": '"false"'}[kept.question.kind]))
    assert traces_of(wrong, PUBLISHED, "english") == []
    assert len(traces_of(wrong, PUBLISHED, "english", right=False)) == 1
    assert traces_of(given(row, judgement="<think>I cannot say."), PUBLISHED, "english") == []


def test_the_order_of_a_pair_decides_which_verdict_is_right():
    row = given(PAIR, judgement_reversed=said('"Assistant B"', "The other way round."))
    assert [t.question.back for t in traces_of(row, PUBLISHED, "english")] == ["", "_reversed"]
    assert traces_of(given(PAIR, judgement=None, judgement_reversed=said('"Assistant A"')), PUBLISHED, "english") == []


def test_the_rubric_of_the_row_is_told_and_each_kind_says_what_it_may_answer():
    questions = {t.question.kind: t.question.asked for row in (given(GRADED, rubric="Warmth."), PAIR, LABEL)
                 for t in traces_of(row, PUBLISHED, "english")}  # fmt: skip
    told = {kind: "\n".join(m.text for m in q.prompt) for kind, q in questions.items()}
    assert "Warmth." in told["scale"]
    assert "1 to 5" in told["scale"]
    assert '"Assistant A" or "Assistant B"' in told["pairwise"]
    assert '{"explanation"' in told["pairwise"]
    assert '"true" or "false"' in told["verdict"]
    assert "harms nobody" in told["verdict"]


def test_a_reply_in_the_style_of_a_real_model_is_read():
    thought = '<think>\nOkay, B rambles... "score": "Assistant B"? No.\n</think>\n'
    long = thought + '```json\n{"explanation": "A is right.",\n "score": "A"}\n```'
    assert PUBLISHED["pairwise"].read(long, 2).values == (1.0, 0.0)
    assert PUBLISHED["scale"].read('{"explanation": "ok", "score": 4}').values == (0.75,)
    assert PUBLISHED["verdict"].read('{"explanation": "no", "score": "false"}').values == (0.0,)
    assert PUBLISHED["scale"].read("I would say four.").values is None


def test_rows_that_no_attempt_misses_are_left_out_and_the_rest_goes_from_easy_to_hard():
    failed = [0.5, 0.0, 1.0, 0.25]
    assert ordered(failed, "easy_to_hard", False, 0) == [3, 0, 2]
    assert ordered(failed, "hard_to_easy", False, 0) == [2, 0, 3]
    assert ordered(failed, "easy_to_hard", True, 0) == [1, 3, 0, 2]
    assert ordered(failed, "given", False, 0) == [0, 2, 3]
    # where all are easy none is left out: there would be nothing to learn
    assert sorted(ordered([0.0, 0.0], "easy_to_hard", False, 0)) == [0, 1]


def test_hardness_is_the_share_of_attempts_that_miss_the_mark():
    asked = [traces_of(row, PUBLISHED, "english")[0].question for row in (GRADED, LABEL)]
    run = Run(Replies([said("2"), said("3"), said('"true"'), said('"true"')]), max_new=9)
    assert failures(run, asked, PUBLISHED, 2) == [0.5, 0.0]


def play(steps: int, **settings):
    """The questions of each step's problems, for rows with a stated difficulty."""
    rows = [given(GRADED, difficulty=d, name=n, judgement=said("2" if n != "wrong" else "5"))
            for n, d in (("hard", 0.9), ("easy", 0.0), ("mid", 0.5), ("wrong", 0.1), ("low", 0.2))]  # fmt: skip
    seen = []
    ops = SimpleNamespace(task=SimpleTask(rows), position=0, standard_step=None, once=lambda make: make())

    def step(recipe, run, ops):
        seen.append([ops.task.train[i].meta["name"] for i in range(recipe.update.problems)])

    run = Run(Replies([]))
    recipe = registry.build("mr3", {"problems": settings.pop("problems", 2)})
    loop = curriculum(**({"pool": 5, "attempts": 2, "order": "easy_to_hard", "easy": False, "right": True,
                          "language": "english", "inner": registered(step)} | settings))  # fmt: skip
    for run.step in range(steps):
        loop(recipe, run, ops)
    return seen, run, ops


def SimpleTask(rows):
    from rewardlab.core import Task

    return Task(name="t", train=rows, test=rows, verifier="exact_match")


def registered(function):
    from rewardlab.core import loop

    return loop(function)()


def test_training_takes_the_kept_rows_in_order_and_begins_anew_at_their_end():
    seen, run, ops = play(2)
    assert seen == [["low", "mid"], ["hard", "low"]]
    assert run.metrics["traced"] == pytest.approx(4 / 5)
    # the task is the user's again after each step, and its position has moved on
    assert len(ops.task.train) == 5
    assert ops.position == 4


def test_by_default_every_row_of_the_data_is_in_the_order():
    rows = [given(GRADED, name=k, difficulty=1 + k % 7) for k in range(1500)]
    ops, run = SimpleNamespace(task=SimpleTask(rows), position=0, standard_step=lambda recipe: None), Run(Replies([]))
    recipe = registry.build("mr3")
    recipe.loop(recipe, run, ops)
    assert sorted(run.memory["mr3.order"]) == list(range(1500))
    # and of data without an end as many as are attempted at once
    run, ops.position = Run(Replies([])), 0
    ops.task = replace(ops.task, train=Endless())
    recipe.loop(recipe, run, ops)
    assert sorted(run.memory["mr3.order"]) == list(range(1024))


class Endless:
    def __getitem__(self, i):
        return given(GRADED, difficulty=1)


def test_fewer_rows_than_a_step_takes_come_again_within_it():
    # what samples takes as many rows as the run's recipe says
    seen, _, ops = play(1, problems=6)
    assert seen == [["low", "mid", "hard", "low", "mid", "hard"]]
    assert ops.position == 6


def test_without_filters_the_rows_come_as_they_are():
    seen, _, _ = play(2, order="given", easy=True, right=False)
    assert seen == [["hard", "easy"], ["mid", "wrong"]]


def test_rows_without_a_right_trace_end_in_an_error_that_says_so():
    with pytest.raises(RewardlabError, match="judgement_target"):
        play(1, language="target")


def test_a_trace_in_the_rows_language_begins_with_its_opening():
    row = given(GRADED, judgement_target=said("2", "Weil."), opening="Gut, ich denke auf Deutsch.")
    (group,) = traced_rows(language="target")([row], Run(Replies([])))
    assert group[0].reply == "Gut, ich denke auf Deutsch. " + said("2", "Weil.")
    (english,) = traced_rows(opening="Gut.")([GRADED], Run(Replies([])))
    assert english[0].reply == said("2")


def test_kinds_of_verdict_weigh_the_same():
    texts = [said("2"), said("4"), said('"Assistant A"'), said('"Assistant A"'), said('"true"')]
    found = verdicts_by_kind()([GRADED, GRADED, PAIR, LABEL], Run(Replies(texts), max_new=9))
    assert (found["judged_scale"], found["judged_pairwise"], found["judged_verdict"]) == (0.5, 0.5, 1.0)
    assert found["judged"] == pytest.approx(2 / 3)
    # of a 1 in 2, of b 2 in 3
    assert found["worst_language"] == 0.5


def test_by_default_traces_are_filtered_and_ordered():
    settings = registry.build("mr3", {}).loop.settings
    assert (settings["order"], settings["easy"], settings["right"]) == ("easy_to_hard", False, True)
