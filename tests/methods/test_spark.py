"""SPARK: which tasks are made from rollouts, what they are paid, and reflection at test."""

import random
from dataclasses import replace

import pytest
import torch

from rewardlab import build
from rewardlab.core import Run, Score, Trajectory, ask, rollout
from rewardlab.credit.group import center
from rewardlab.engine.collate import collate
from rewardlab.errors import RewardlabError
from rewardlab.methods.judges.spark import KIND, judged_right, point_form, recycled, recycling, self_reflection
from rewardlab.verifiers.match import final_answer
from tests.helpers.rows import Replies

SUM = ask("What is half of 46?", "23")
RIGHT = "Half of 40 is 20, half of 6 is 3.\nThe answer is \\boxed{23}."
WRONG = "Half of 46 is 28."


def group(texts, problem=SUM):
    return Replies([]).write([Trajectory(problem)] * len(texts), texts)


def verdicts(groups):
    return final_answer()(groups, Run(None))


def tasks_of(groups, seeds=200, **settings):
    return [t for seed in range(seeds) for t in recycled(groups, verdicts(groups), random.Random(seed), share=1.0, **settings)]


def test_mixed_groups_make_pairs_and_single_answers_and_a_reflection():
    tasks = tasks_of([group([RIGHT, RIGHT, RIGHT, WRONG])])
    judge = [t for t in tasks if t.meta[KIND] == "judge"]
    assert len(judge) == len(tasks) - len(judge) == 200
    pairs = [t.meta for t in judge if len(t.meta["worth"]) == 2]
    # 140 of 200 expected, give or take three standard deviations of 6.5
    assert 120 <= len(pairs) <= 160
    assert {tuple(m["shown"]) + tuple(m["worth"]) for m in pairs} == {("23", "28", 1.0, 0.0), ("28", "23", 0.0, 1.0)}
    single = [(m["shown"], m["worth"]) for t in judge if len((m := t.meta)["worth"]) == 1]
    # as many right as wrong ones, though three replies of four are right
    assert {worth[0] for _, worth in single} == {0.0, 1.0}
    assert 15 <= sum(worth == [1.0] for _, worth in single) <= 45
    assert all((shown == ["23"]) == (worth == [1.0]) for shown, worth in single)
    # the gold answer is that of the question alone, and is never shown beside the replies
    assert all(t.answer is None for t in judge)
    again = [t for t in tasks if t.meta[KIND] == "reflect"]
    assert all(t.answer == "23" and WRONG in t.question and "23" not in t.question for t in again)


def test_alike_groups_make_single_answers_and_right_ones_no_reflection():
    tasks = tasks_of([group([RIGHT, RIGHT])], seeds=5)
    assert [(t.meta[KIND], t.meta["worth"]) for t in tasks] == [("judge", [1.0])] * 5
    tasks = tasks_of([group([WRONG, WRONG])], seeds=1)
    assert [(t.meta[KIND], t.meta.get("worth")) for t in tasks] == [("judge", [0.0]), ("reflect", None)]
    # no verdict, and empty replies, make none
    nobody = ask("Why?", None)
    assert tasks_of([group(["so", "so"], nobody)], seeds=1) == []
    assert tasks_of([group(["", " "])], seeds=1) == []


def test_a_reply_that_was_cut_off_before_its_answer_is_not_judged_by_a_number_on_its_way():
    cut = [replace(t, stop="length") for t in group(["First, 3 * 4 is 12, and then the", "Answer: 28, but let me check whether"])]
    judge, again = tasks_of([cut], seeds=1), tasks_of([cut[:1]], seeds=1)
    assert [t.meta["shown"] for t in judge if t.meta[KIND] == "judge"] == [["28, but let me check whether"]]
    # alone it can be shown entire, to be solved anew
    assert [t.meta[KIND] for t in again] == ["reflect"]


def test_the_answer_alone_is_shown_but_to_half_of_the_reflections():
    groups = [group([f"Half of 46 is {i}9, I think.\nAnswer: {i}9"], ask(f"{i}: half of 46?", "23")) for i in range(4)]
    tasks = recycled(groups, verdicts(groups), random.Random(0), share=1.0)
    again = [t for t in tasks if t.meta[KIND] == "reflect"]
    assert ["I think" in t.question for t in again] == [True, True, False, False]
    assert all(t.question.endswith("[Wrong reply]\n" + f"{i}9") for i, t in enumerate(again) if i > 1)
    assert not any("I think" in t.question for t in tasks if t.meta[KIND] == "judge")
    whole = recycled(groups, verdicts(groups), random.Random(0), share=1.0, whole=True)
    assert all("I think" in t.question for t in whole)
    # at most half as many of each kind as there are problems
    half = [t.meta[KIND] for t in recycled(groups, verdicts(groups), random.Random(0), share=0.5)]
    assert half == ["judge"] * 2 + ["reflect"] * 2
    assert recycled(groups, verdicts(groups), random.Random(0), share=0.0) == []


def test_judgements_are_paid_by_the_verdict_and_reflections_by_the_answer():
    asked = {t.meta[KIND] + str(t.meta.get("worth")): t for t in tasks_of([group([RIGHT, WRONG])])}
    first, second, right = asked["judge[1.0, 0.0]"], asked["judge[0.0, 1.0]"], asked["judge[1.0]"]
    rows = [
        group(["A is right. [[A]]", "[[B]]", "[[C]]"], first),
        group(["[[A]]", "B says 23. [[B]]"], second),
        group(["[[yes]]", "[[no]]", "Conclusion: right", "cut off"], right),
        group([RIGHT, WRONG], asked["reflectNone"]),
        group([RIGHT, WRONG]),
    ]
    run = Run(Replies([]), verify=final_answer())
    scores = build("spark").reward(rows, run)
    assert [[s.total for s in row] for row in scores] == [[1, 0, 0], [0, 1], [1, 0, 1, 0], [1, 0], [1, 0]]
    # 1 + 1 + 2 of 9 judgements
    assert run.metrics["judged"] == pytest.approx(4 / 9)
    assert run.metrics["reflected"] == 0.5
    batch = collate(rows, scores, torch.device("cpu"))
    credit = center()(batch.reward, batch, run).sum(1)
    # each task is a group of its own: 1, 0, 0 has mean 1/3
    assert credit[:5].tolist() == pytest.approx([2 / 3, -1 / 3, -1 / 3, -0.5, 0.5])
    assert judged_right(rows[-1][0]) is None


@rollout
def said(problems, run, *, texts: tuple[str, ...]):
    return [group(texts, p) for p in problems]


def test_one_step_has_the_rollouts_and_those_of_the_tasks_made_from_them():
    policy = Replies([])
    policy.context = 100
    run = Run(policy, verify=final_answer(), max_new=16)
    groups = recycling(inner=said(texts=(RIGHT, WRONG)), share=0.5)([SUM, replace(SUM, answer="28")], run)
    assert [g[0].problem.meta.get(KIND) for g in groups] == [None, None, "judge", "reflect"]
    assert run.metrics["recycled"] == 1.0
    # prompts of nothing fit, and with replies as long as the context none do
    run.max_new = 101
    assert len(recycling(inner=said(texts=(RIGHT, WRONG)))([SUM], run)) == 1


class Thinks(Replies):
    """Answers 28 at first; finds of each answer what it is told; solves again as it is told."""

    context = 10**6

    def __init__(self, finds, again):
        self.finds, self.again, self.asked = finds, again, []

    def extend(self, trajectories, sampling, rng):
        assert sampling.temperature == 0
        questions = [t.problem.question for t in trajectories]
        self.asked.append(questions)
        self.replies = [
            self.finds[q.rpartition("[Answer]\n")[2]] if "[Answer]" in q else self.again if "[Wrong reply]" in q else "28"
            for q in questions
        ]
        return super().extend(trajectories, sampling, rng)


def test_at_test_replies_that_it_finds_wrong_are_solved_again():
    policy = Thinks({"28": "[[no]]", "23": "[[yes]]"}, again="23")
    found = self_reflection()([SUM], Run(policy, verify=final_answer()))
    assert (found["pass@1"], found["reflected"], found["judged"], found["asked_again"]) == (0.0, 1.0, 1.0, 1.0)
    # reply, judgement, reply, judgement: the second judgement is content
    assert [len(row) for row in policy.asked] == [1, 1, 1, 1]
    policy = Thinks({"28": "[[yes]]"}, again="23")
    found = self_reflection()([SUM], Run(policy, verify=final_answer()))
    assert (found["reflected"], found["judged"], found["asked_again"]) == (0.0, 0.0, 0.0)
    assert len(policy.asked) == 2
    # right at first, and made worse by a wrong verdict; never content, it stops after two rounds
    policy = Thinks({"28": "[[no]]", "5": "hm"}, again="5")
    found = self_reflection()([replace(SUM, answer="28")], Run(policy, verify=final_answer()))
    assert (found["pass@1"], found["reflected"], found["judged"]) == (1.0, 0.0, 0.0)
    assert len(policy.asked) == 5
    assert self_reflection(rounds=1)([SUM], Run(Thinks({"28": "[[no]]"}, "23"), verify=final_answer()))["reflected"] == 1.0


def test_judged_is_one_half_for_a_judge_that_always_consents():
    rows = [SUM, replace(SUM, answer="28"), ask("And of 56?", "28"), ask("And of 57?", "28")]
    found = self_reflection()(rows, Run(Thinks({"28": "[[yes]]"}, ""), verify=final_answer()))
    assert (found["pass@1"], found["judged"]) == (0.75, 0.5)


def test_verdicts_are_read_as_models_write_them():
    form = point_form("")
    for text in ("So it is right. [[Yes]]", "[[ yes ]]", "Conclusion: **right**", "[[no]] or rather [[yes]]"):
        assert form.read(text).values == (1.0,)
    for text in ("[[no]]", "Conclusion: wrong"):
        assert form.read(text).values == (0.0,)
    assert form.read("I think yes, it is right").values is None
    assert Score(judged_right(group(["x"])[0])).missing


def test_texts_must_show_what_is_judged():
    with pytest.raises(RewardlabError, match="the text 'pair' has no"):
        build("spark", {"pair": "{prompt} {first}"})
