"""Rows become questions to a judge; right judgements are paid, kept and counted, by a judge that is scripted."""

import numpy as np
import pytest
from scripted import END, ScriptedPolicy

from rewardlab.core import Run, Turn, ask
from rewardlab.errors import RewardlabError
from rewardlab.evals.judgements import judgement_accuracy
from rewardlab.rewards.judgements import right_judgement
from rewardlab.rollouts.independent import independent
from rewardlab.rollouts.judgements import accepted_judgements, judgements

FORM = "{prompt}\nA: {first}\nB: {second}"
PAIR = ask("q", None, chosen="good", rejected="bad")


class Judge(ScriptedPolicy):
    """It also writes what it is told to, and reads prompts of one token."""

    def write(self, trajectories, texts):
        return [self._written(t, text) for t, text in zip(trajectories, texts, strict=True)]

    def _written(self, t, text):
        ids = np.array([*map(ord, text), END])
        return t.plus(Turn(self.name, ids, np.zeros(len(ids), np.float32), np.zeros(len(ids), np.float32), text, step=0), "end")


def right(t):
    """A judge that prefers the good reply, whatever the order."""
    return ["[[A]]" if "A: good" in t.problem.question else "[[B]]"]


def run_of(says):
    return Run(Judge(says), seed=0, max_new=40)


def test_replies_stand_in_either_order_and_right_verdicts_are_paid():
    run = run_of(lambda t: ["[[A]]", "[[B]]", "hm"])
    rows = [ask(f"q{i}", None, chosen="good", rejected="bad") for i in range(40)]
    groups = judgements(inner=independent(n=3), form=FORM)(rows, run)
    firsts = ["A: good" in g[0].problem.question for g in groups]
    assert 10 < sum(firsts) < 30
    for group, first, scores in zip(groups, firsts, right_judgement(form=FORM)(groups, run), strict=True):
        assert [s.value for s in scores] == ([1.0, -1.0, -1.0] if first else [-1.0, 1.0, -1.0])
        assert group[0].problem.meta["worth"] == ([1.0, 0.0] if first else [0.0, 1.0])


def test_the_same_row_is_asked_in_the_same_order_in_a_step_again():
    asked = [judgements(inner=independent(n=1), form=FORM)([PAIR], run_of(right))[0][0].problem.question for _ in range(2)]
    assert asked[0] == asked[1]


def test_what_is_no_question_gets_no_verdict():
    (score,) = right_judgement()([[run_of(right).policy.read([ask_row()], [()])[0]]], run_of(right))[0]
    assert score.value is None
    assert "it has no column 'worth'" in score.why


def ask_row():
    from rewardlab.core import Trajectory

    return Trajectory(PAIR)


def test_right_judgements_are_kept_the_rows_own_first():
    run = run_of(lambda t: ["wrong [[C]]", "long, and right " + right(t)[0], right(t)[0]])
    own = ask("own", None, chosen="good", rejected="bad", judgement="as the row says [[A]]")
    bad = ask("bad", None, chosen="good", rejected="bad", judgement="[[B]]")
    paid = right_judgement(form=FORM)
    kept = accepted_judgements(by=paid, form=FORM, n=3, keep="longest")([own, bad, PAIR], run)
    # the judgement of a row that is wrong teaches nothing
    assert [g[0].reply[:16] for g in kept] == ["as the row says ", "long, and right "]
    # of the rows' own one of two, of those that were written two of three
    assert run.metrics["accepted"] == 3 / 5
    (first,) = accepted_judgements(by=paid, form=FORM, n=3)([PAIR], run)
    assert first[0].reply.startswith("long")
    (shortest,) = accepted_judgements(by=paid, form=FORM, n=3, keep="shortest")([PAIR], run)
    assert shortest[0].reply in ("[[A]]", "[[B]]")
    every = accepted_judgements(by=paid, form=FORM, n=3, keep="all")
    assert [len(g[0].reply) for g in every([PAIR], run)] == [21, 5]
    assert (every.rows_per_problem, accepted_judgements(by=paid, form=FORM, n=3).rows_per_problem) == (3, 1)


def test_rows_that_are_always_right_are_dropped_where_asked():
    run, paid = run_of(right), right_judgement(form=FORM)
    assert accepted_judgements(by=paid, form=FORM, n=2)([PAIR], run)[0][0].reply
    # a batch without a judgement, from which nothing is learnt
    (empty,) = accepted_judgements(by=paid, form=FORM, n=2, easy=False)([PAIR], run)
    assert empty[0].reply == ""


def test_accuracy_in_both_orders():
    rows = [ask(f"q{i}", None, chosen="good", rejected="bad") for i in range(4)]
    found = judgement_accuracy(form=FORM)(rows, run_of(right))
    assert (found["judged"], found["pair_accuracy"], found["consistent"], found["prefers_first"]) == (1.0, 1.0, 1.0, 0.5)
    assert found["judgement_tokens"] == 6.0
    biased = judgement_accuracy(form=FORM)(rows, run_of(lambda t: ["[[A]]"]))
    assert (biased["judged"], biased["pair_accuracy"], biased["consistent"], biased["prefers_first"]) == (0.5, 0.5, 0.0, 1.0)
    silent = judgement_accuracy(form=FORM)(rows, run_of(lambda t: ["hm"]))
    assert (silent["judged"], silent["pair_accuracy"], silent["unread"]) == (0.0, 0.0, 1.0)


def test_votes_are_averaged_over_orders_and_samples():
    # two of three say the right one in each order
    found = judgement_accuracy(form=FORM, k=3)([PAIR], run_of(lambda t: [right(t)[0], right(t)[0], "[[A]]"]))
    assert found["judged"] == 5 / 6
    assert found["pair_accuracy"] == 1.0


def test_single_replies_are_judged_one_by_one_and_ranked():
    form = "{prompt} {reply}"
    found = judgement_accuracy(form=form, kind="verdict")(
        [PAIR], run_of(lambda t: ["[[yes]]" if "good" in t.problem.question else "[[no]]"])
    )
    assert (found["judged"], found["pair_accuracy"]) == (1.0, 1.0)
    assert "consistent" not in found


def test_a_question_that_does_not_fit_the_context_is_left_out():
    run = run_of(right)
    run.policy.context = 30
    kept = accepted_judgements(by=right_judgement(form=FORM), form=FORM, n=1)([PAIR], run)
    assert kept[0][0].reply == ""
    assert run.policy.calls == []


SCORED = "{prompt}\n{replies}\nScores, as [[7, 3]]"


def scoring(t):
    """A judge of lists that prefers the longer reply."""
    return [f"[[{', '.join(str(len(x)) for x in t.problem.meta['shown'])}]]"]


def test_of_several_best_replies_any_may_be_preferred():
    settings = {"form": SCORED, "kind": "scores"}
    row = ask("q", None, replies=["first", "sec", "x"], scores=[3, 3, 1])
    groups = judgements(inner=independent(n=1), **settings)([row], run_of(scoring))
    assert right_judgement(**settings)(groups, run_of(scoring))[0][0].value == 1.0
    tied = ask("q", None, replies=["one", "two", "x"], scores=[3, 3, 1])
    groups = judgements(inner=independent(n=1), **settings)([tied], run_of(scoring))
    # the judge names no best one
    assert right_judgement(**settings)(groups, run_of(scoring))[0][0].value == -1.0


def test_replies_that_are_worth_the_same_say_nothing_of_a_judge():
    settings = {"form": SCORED, "kind": "scores"}
    alike, row = (ask("q", None, replies=["first", "sec"], scores=scores) for scores in ([2, 2], [3, 1]))
    groups = judgements(inner=independent(n=1), **settings)([alike], run_of(scoring))
    (score,) = right_judgement(**settings)(groups, run_of(scoring))[0]
    assert score.value is None
    assert "worth the same" in score.why
    found = judgement_accuracy(**settings)([alike, row], run_of(scoring))
    assert (found["judged"], found["pair_accuracy"]) == (1.0, 1.0)
    with pytest.raises(RewardlabError, match="all 1 held-out rows"):
        judgement_accuracy(**settings)([alike], run_of(scoring))


def test_where_no_question_fits_the_model_it_is_told_and_not_an_index():
    """The form of a judge may be longer than a small model's context: then nothing was accepted, and the question was taught."""
    run = run_of(lambda t: ["[[A]]"])
    run.policy.context = 30
    paid = right_judgement(form=FORM)
    long, short = ask("q", None, chosen="good " * 9, rejected="bad"), ask("q", None, chosen="good", rejected="bad")
    run.policy.read = lambda rows, messages: [t.plus(Turn(None, np.zeros(len(t.problem.question), np.int64))) for t in rows]
    # a judgement of 40 tokens fits neither question, and the shorter question fits by itself
    ((kept,),) = accepted_judgements(by=paid, form=FORM, n=1)([long, short], run)
    assert len(kept) == len(kept.problem.question) < 30
    with pytest.raises(RewardlabError, match="tokens and 0 new ones exceed the model's context of 30"):
        accepted_judgements(by=paid, form=FORM, n=1)([long], run)
