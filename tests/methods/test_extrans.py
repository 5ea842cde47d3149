"""ExTrans: verdicts against an exemplar, the gate of the form, and what both are paid."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from rows import Replies

from rewardlab import build
from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.engine.collate import collate
from rewardlab.errors import RewardlabError
from rewardlab.methods.judges.extrans import against_exemplar, beyond_exemplars, parts
from rewardlab.rewards.reward import reward
from rewardlab.worlds.tongues import quality, right_words, rough_quality, tongues

FOG = ask("Translate: The fog came.", exemplar="Nebel kam.")
MODEL_LIKE = "<think>\nFog creeps; a cat's image.\nPerhaps 'schlich'.\n</think>\n\nDer Nebel schlich heran."


def reply(text: str, problem=FOG) -> Trajectory:
    return Trajectory(problem, (Turn("policy", np.zeros(1, np.int64), text=text),), "end")


def thought(text: str) -> Trajectory:
    return reply(f"<think>hm</think> {text}")


@reward
def length(trajectory):
    return None if "?" in trajectory.reply else float(len(trajectory.reply))


class Judge(Replies):
    """It prefers the longer translation, or always what stands first, or says nothing; thoughts are worth 4 of 5."""

    context = 1 << 40

    def __init__(self, way: str = "longer"):
        super().__init__([])
        self.way, self.asked = way, []

    def extend(self, trajectories, sampling, rng):
        self.asked += [t.problem.question for t in trajectories]
        return [t.plus(Turn("judge", np.zeros(1, np.int64), text=self._of(t.problem.question)), "end") for t in trajectories]

    def _of(self, question: str) -> str:
        if "[Thought]" in question:
            return "Hm." if self.way == "silent" else "[[4]]"
        a, b = question.partition("[Translation A]\n")[2].partition("\n\n[End of")[0].split("\n\n[Translation B]\n")
        mark = "A" if self.way == "first" or len(a) > len(b) else "B"
        return "Neither." if self.way == "silent" else f"B is plainer. [[{mark}]]"


def paid(rows, judge=None, **settings):
    run = Run(Replies([]), models={"judge": judge or Judge()})
    return [s.total for s in build("extrans", settings).reward([rows], run)[0]]


def test_a_reply_is_a_thought_in_tags_and_then_a_translation():
    assert parts(MODEL_LIKE) == ("Fog creeps; a cat's image.\nPerhaps 'schlich'.", "Der Nebel schlich heran.")
    for wrong in (
        "Nebel.",
        "<think>a</think>",
        "<think> </think> Nebel.",
        "<think>a</think>b</think>c",
        "x <think>a</think> b",
        "",
    ):
        assert parts(wrong) is None
    # the chat template opened the thought
    assert parts("Fog creeps.\n</think>\n\nDer Nebel.") == ("Fog creeps.", "Der Nebel.")
    assert parts(" Nebel. ", thinks=False) == ("", "Nebel.")
    assert parts(" ", thinks=False) is None


def test_worse_par_and_better_earn_one_two_and_three_and_a_wrong_form_nothing():
    rows = [thought("Nebel."), thought("Nebel kam."), thought("Der Nebel schlich heran."), reply("Der Nebel schlich heran.")]
    judge = Judge()
    assert paid(rows, judge) == [1.0, 2.0, 3.0, 0.0]
    # the exemplar's own text, and a reply without the form, are not judged; the others in both orders, without their thought
    assert len(judge.asked) == 4
    assert not any("hm" in question for question in judge.asked)
    assert paid(rows, worse=0.0, par=0.5, better=1.0) == [0.0, 0.5, 1.0, 0.0]
    assert paid(rows[3:], thinks=False) == [3.0]


def test_the_credit_is_the_grade_less_the_mean_of_the_group():
    rows = [thought("Nebel."), thought("Nebel kam."), thought("Der Nebel schlich heran."), reply("?")]
    recipe, run = build("extrans"), Run(Replies([]), models={"judge": Judge()})
    batch = collate([rows], recipe.reward([rows], run), torch.device("cpu"))
    # grades 1, 2, 3, 0: mean 1.5, standard deviation 1.29 of the sample
    credit = recipe.credit(batch.reward, batch, run).sum(1)
    assert credit.argsort().tolist() == [3, 0, 1, 2]
    assert credit.sum().item() == pytest.approx(0, abs=1e-5)
    assert (credit[2] / credit[1]).item() == pytest.approx(3)


def test_a_judge_that_goes_by_the_order_finds_all_on_a_par_and_one_that_is_silent_gives_no_verdict():
    rows = [thought("Nebel."), thought("Nebel kam."), thought("Der Nebel schlich heran.")]
    assert paid(rows, Judge("first")) == [2.0, 2.0, 2.0]
    assert paid(rows, Judge("first"), judgements=1) == [3.0, 2.0, 3.0]
    assert paid(rows, Judge("silent")) == [None, 2.0, None]


def test_the_quality_of_the_thought_is_added_where_there_is_one():
    # 4 on a scale from 1 to 5 is .75
    assert paid([thought("Nebel."), reply("Nebel.")], alpha=2.0) == [1.0 + 2 * 0.75, 0.0]
    # a score that cannot be read is the judge's failure, not the reply's
    assert paid([thought("Nebel kam."), reply("Nebel.")], Judge("silent"), alpha=2.0) == [None, 0.0]


def test_a_reward_may_compare_in_place_of_the_judge():
    rows = [thought("Nebel."), thought("Nebel kam."), thought("Nebel kam an."), thought("Wer?"), reply("x")]
    (scores,) = against_exemplar(by=length())([rows], Run(Replies([])))
    # the exemplar has 10 letters
    assert [s.total for s in scores] == [1.0, 2.0, 3.0, None, 0.0]
    (scores,) = against_exemplar(by=length(), within=3.0)([rows], Run(Replies([])))
    assert [s.total for s in scores] == [1.0, 2.0, 2.0, None, 0.0]


def test_a_row_without_an_exemplar_is_refused():
    with pytest.raises(RewardlabError, match="exemplar"):
        against_exemplar()([[reply(MODEL_LIKE, ask("Translate: Fog."))]], Run(Replies([])))


def test_the_lead_counts_better_less_worse_and_a_wrong_form_is_worse():
    policy = Replies(
        ["<think>a</think> Der Nebel schlich.", "<think>a</think> Nebel.", "<think>a</think> Nebel kam.", "Der Nebel."]
    )
    run = Run(policy, max_new=9, models={"judge": Judge()})
    found = beyond_exemplars()([FOG] * 4, run)
    assert (found["worse"], found["par"], found["better"], found["formless"]) == (0.25, 0.25, 0.25, 0.25)
    assert found["lead"] == -0.25


# ---- the world ---------------------------------------------------------------------------------------------------------------


def test_words_are_translated_in_another_order_and_exemplars_slip_now_and_then():
    task = tongues(test_size=400)
    assert quality("hundo malga piska roda vida", "hundo malga piska roda vida") == 1.0
    # two of five in their place; a sixth word counts
    assert quality("hundo malga roda piska auda", "hundo malga piska roda vida") == 0.4
    assert quality("hundo malga piska roda vida vida", "hundo malga piska roda vida") == pytest.approx(5 / 6)
    assert quality("", "hundo") == 0.0
    mean = np.mean([quality(p.meta["exemplar"], p.answer) for p in task.test])
    assert mean == pytest.approx(0.85, abs=0.02)
    assert {len(p.meta["exemplar"].split()) for p in task.test} == {5}


def test_a_rough_score_errs_alike_whenever_it_reads_the_same_text():
    task = tongues(test_size=300)
    rows = [[reply(p.answer, p)] for p in task.test]
    first, again = ([s.total for (s,) in rough_quality(noise=0.3)(rows, Run(None))] for _ in range(2))
    assert first == again
    assert np.std(first) == pytest.approx(0.3, abs=0.04)
    assert np.mean(first) == pytest.approx(1.0, abs=0.06)
    assert {s.total for (s,) in right_words()(rows, Run(None))} == {1.0}
