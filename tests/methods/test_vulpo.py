"""VULPO: verdict, lines and analysis, scaled by how hard the label and the sample are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.engine.collate import collate
from rewardlab.errors import RewardlabError
from rewardlab.methods.shaping.vulpo import MEMORY, stated_lines

FOUND = "no bound on the index\nLines: 3\nAnswer: flawed"
ELSEWHERE = "no bound on the index\nLines: 4\nAnswer: flawed"
NOTHING = "all is well\nLines: none\nAnswer: sound"
RUN = Run(policy=None, verify=registry.part("reward", "final_answer"))


def row(text: str, answer: str | None = "flawed", **meta) -> Trajectory:
    known = {"lines": [3] if answer == "flawed" else [], "analysis": "no bound on the index"} | meta
    zeros = np.zeros(2, np.float32)
    return Trajectory(ask(f"Code {answer}", answer, **known), (Turn("policy", np.zeros(2, np.int64), zeros, zeros, text),), "end")


def totals(*groups: list[Trajectory], run: Run | None = None, **settings) -> list[list[float | None]]:
    return [[s.total for s in r] for r in registry.build("vulpo", settings).reward(list(groups), run or replace(RUN, memory={}))]


# of one label alone the factor is (1 - a) / (1 - a) = 1
def test_lines_and_analysis_count_behind_a_right_verdict():
    plain = {"sample": 0.0, "why": 0.0}
    right, elsewhere, missed = totals([row(FOUND), row(ELSEWHERE), row(NOTHING)], **plain)[0]
    assert (right, elsewhere, missed) == pytest.approx((1.5, 1.0, 0))
    # 3 and 4 are stated, of 3 and 5: F1 = 1/2
    two = row(FOUND.replace("3", "3-4"), lines=[3, 5])
    assert totals([two, row(NOTHING)], **plain)[0] == pytest.approx([1.25, 0])
    # without articles the reply has 8 words, of which 4 are the analysis': F1 = 2 * 4 / 12
    assert totals([row(FOUND), row(NOTHING)], sample=0.0, lines=0.0)[0] == pytest.approx([1 + 0.5 * 8 / 12, 0])
    sound = totals([row(NOTHING, "sound"), row("well\nLines: 2\nAnswer: sound", "sound"), row("", "sound")], **plain)
    assert sound[0] == pytest.approx([1.5, 1.0, 0])


def test_the_rare_label_and_the_hard_sample_pay_more():
    bare = {"lines": 0.0, "why": 0.0}
    groups = [[row(FOUND), *[row(NOTHING)] * 3], [row(NOTHING, "sound")] * 3 + [row(FOUND, "sound")]]
    # accuracy 1/4 and 3/4, missed 3/4 and 1/4, mean 1/2: factors 1.5 and .5;   sample: 1 + 3/4 and 1 + 1/4
    assert totals(*groups, **bare) == [pytest.approx([1.5 * 1.75, 0, 0, 0]), pytest.approx([0.5 * 1.25] * 3 + [0])]
    assert totals(*groups, sample=0.0, **bare)[0][0] == pytest.approx(1.5)
    assert totals(*groups, sample=0.0, highest=1.2, lowest=0.9, **bare) == [
        pytest.approx([1.2, 0, 0, 0]),
        pytest.approx([0.9] * 3 + [0]),
    ]
    # all right, or all wrong alike: no label is harder than another
    assert totals([row(FOUND)] * 2, [row(NOTHING, "sound")] * 2, **bare) == [[1, 1], [1, 1]]
    assert totals([row(NOTHING)], **bare) == [[0]]


def test_accuracy_runs_over_steps_and_scoring_a_step_again_changes_nothing():
    run, bare = replace(RUN, memory={}), {"lines": 0.0, "why": 0.0, "sample": 0.0}
    first = [[row(FOUND), row(NOTHING)], [row(NOTHING, "sound")] * 2]
    for _ in range(2):
        totals(*first, run=run, **bare)
        assert {k: v[2] for k, v in run.memory[MEMORY].items()} == {"flawed": 0.5, "sound": 1.0}
    run.step = 1
    again = [[row(FOUND), row(FOUND)], [row(FOUND, "sound"), row(NOTHING, "sound")]]
    for _ in range(2):
        # .9 * .5 + .1 * 1 = .55, and .95: missed .45 and .05, mean .25: 1.8, and .2, of which .5
        assert totals(*again, run=run, **bare) == [pytest.approx([1.8] * 2), pytest.approx([0, 0.5])]
    # a label that is not seen in a step keeps what is known of it
    run.step = 2
    assert totals([row(FOUND), row(FOUND)], run=run, **bare)[0][0] == pytest.approx(0.405 / ((0.405 + 0.05) / 2))


def test_missing_verdicts_count_in_no_accuracy_and_get_no_credit():
    recipe, run = registry.build("vulpo", {"why": 0.0}), replace(RUN, memory={})
    group = [row(FOUND), row(NOTHING), row(FOUND, None), row(FOUND, lines="unknown")]
    batch = collate([group], recipe.reward([group], run), torch.device("cpu"))
    credit = recipe.credit(batch.reward, batch, run)
    assert run.memory[MEMORY]["flawed"][2] == pytest.approx(2 / 3)
    # 2/3 right; of one label the factor is 1: the first earns (1 + 1/3) (1 + 1/2) = 2, the second 0
    assert credit[:, 0].tolist() == pytest.approx([1, -1, 0, 0])


def test_credit_keeps_the_factors_that_a_division_by_the_deviation_would_take_away():
    recipe, run = registry.build("vulpo", {"lines": 0.0, "why": 0.0}), replace(RUN, memory={})
    groups = [[row(FOUND), *[row(NOTHING)] * 3], [row(NOTHING, "sound")] * 3 + [row(FOUND, "sound")]]
    batch = collate(groups, recipe.reward(groups, run), torch.device("cpu"))
    credit = recipe.credit(batch.reward, batch, run)[:, 0].tolist()
    # the flawed one pays 1.5 * 1.75 = 2.625 once in four, the sound one .5 * 1.25 = .625 three times in four; less their means
    assert credit[:4] == pytest.approx([2.625 * 3 / 4, *[-2.625 / 4] * 3])
    assert credit[4:] == pytest.approx([*[0.625 / 4] * 3, -0.625 * 3 / 4])


def test_answers_that_are_no_labels_are_refused():
    groups = [[replace(row(FOUND), problem=ask(f"q{i}", f"text {i}", lines=[], analysis="x"))] for i in range(70)]
    with pytest.raises(RewardlabError, match="different answers"):
        totals(*groups)


@pytest.mark.parametrize(
    ("reply", "lines"),
    [
        ("Lines: 3, 7-9", {3, 7, 8, 9}),
        ("line: 4\nLines: 5", {5}),
        ("Lines: 7–9, 1234567", {7, 8, 9}),
        ("**Lines**: 2", {2}),
        ("Lines: none", set()),
        ("lines 3 and 4 are wrong", set()),
        ("Lines: 1-999999, 6", {6}),
        ("Lines: 9-7", set()),
        ("Lines:" * 20_000, set()),
        ("", set()),
    ],
)
def test_stated_lines(reply, lines):
    assert stated_lines(reply) == lines


def test_who_calls_everything_sound_is_right_more_often():
    task, verify = registry.task("flaws", test_size=600), registry.part("reward", "final_answer")
    careful, lazy = (
        [v.correct for v in verify.check_all([(p.meta[s], p.answer) for p in task.test])] for s in ("chosen", "rejected")
    )
    assert sum(lazy) > sum(careful) + 15
    assert 0.05 < sum(p.answer == "flawed" for p in task.test) / 600 < 0.18
    assert all(verify.check(p.meta["solution"], p.answer).correct for p in task.test[:50])
    flawed = next(p for p in task.test if p.answer == "flawed")
    number = flawed.meta["lines"][0]
    assert f"{number}: {flawed.meta['code'][number - 1]}" in flawed.question
    assert flawed.meta["analysis"].startswith(f"Line {number} is {flawed.meta['code'][number - 1]}, wanted is")


def test_tokens_of_all_replies_count_the_same_as_in_the_released_script():
    assert str(registry.build("vulpo").weighting) == "token_mean()"
