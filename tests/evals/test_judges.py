"""How judges are measured, against numbers worked out by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run, Sampling, Trajectory, rollout
from rewardlab.errors import RewardlabError
from rewardlab.evals.judges import first_error, first_error_f1, judge_auc
from rewardlab.models.embedded import untrained
from rewardlab.rewards.reward import reward
from rewardlab.text.splitters import mark
from rewardlab.util.outputs import values
from rewardlab.util.ranking import auc_of


def test_auc_is_the_share_of_pairs_in_the_right_order():
    # right 3, 1; wrong 2, 1, 0: 3 beats all three; 1 loses to 2, ties with 1, beats 0
    scored = [(3.0, True), (1.0, True), (2.0, False), (1.0, False), (0.0, False)]
    assert auc_of(scored) == pytest.approx((3 + 1.5) / 6)
    assert auc_of([(s, not ok) for s, ok in scored]) == pytest.approx(1 - 4.5 / 6)
    assert auc_of([(5.0, True), (5.0, False)]) == 0.5
    assert math.isnan(auc_of([(1.0, True), (2.0, True)]))
    assert math.isnan(auc_of([]))
    with pytest.raises(RewardlabError, match="not finite"):
        auc_of([(math.nan, True), (0.0, False)])


def test_finding_first_errors_by_hand():
    gold = [[True, True], [True, True], [False, True], [True, False], [True, False]]
    said = [[True, True], [True, False], [False, False], [False, False], [True]]
    # 1 of 2 clean ones left alone; 1 of 3 errors found, the second put too early, the third judgement not whole
    assert first_error_f1(gold, said) == pytest.approx(2 * (1 / 2) * (1 / 3) / (1 / 2 + 1 / 3))
    assert first_error_f1(gold, [[]] * 5) == 0
    assert first_error([True, False, False]) == 1
    assert first_error([True]) is None


@rollout
def written(problems, run, *, texts):
    """The same solutions to every problem, in order."""
    prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    groups = [run.policy.write([t] * len(texts), texts) for t in prompts]
    return [[mark(t, "newline", run.policy.pieces) for t in group] for group in groups]


@reward
def short(trajectory):
    """Replies of at most 12 characters are right."""
    return float(len(trajectory.reply) <= 12)


@reward(steps=True)
def long_lines(trajectory):
    """Lines of more than 5 characters are right."""
    return [(at, float(len(line) > 5)) for at, line in zip(trajectory.steps, trajectory.reply.splitlines(), strict=True)]


TEXTS = ("1+2=3\nAnswer: 3", "12+2=14", "3", "4+4=8\n8+1=9\n9")


def judged():
    policy = untrained(0)
    judge, reference = policy.copy("judge", value_head=True), untrained(1)
    torch.nn.init.normal_(judge.model.value_head, generator=torch.Generator().manual_seed(2))
    run = Run(policy, reference=reference, models={"judge": judge, "implicit": untrained(2)}, verify=short())
    return run, registry.task("arithmetic", test_size=3).test


@pytest.mark.parametrize("implicit", [False, True])
def test_a_judge_is_measured_on_replies_and_on_their_steps(implicit):
    run, problems = judged()
    part = written(texts=TEXTS)
    model = "implicit" if implicit else "judge"
    found = judge_auc(rollout=part, steps=long_lines(), model=model, implicit=implicit)(problems, run)
    whole, steps = [], []
    for group in part(problems, run):
        if implicit:
            ratios = [a - b for a, b in zip(run.models["implicit"].score(group), run.reference.score(group), strict=True)]
            row_scores = [float(x[t.mask].sum()) for x, t in zip(ratios, group, strict=True)]
        else:
            at_each = values(run.models["judge"], group)
            row_scores = [float(v[-1]) for v in at_each]
        whole.append([(s, len(t.reply) <= 12) for s, t in zip(row_scores, group, strict=True)])
        for i, t in enumerate(group):
            first = int(np.argmax(t.mask))
            for at, line in zip(t.steps, t.reply.splitlines(), strict=True):
                score = float(ratios[i][first : at + 1].sum()) if implicit else float(at_each[i][at])
                steps.append((score, len(line) > 5))
                first = at + 1
    assert found["n"] == 12
    assert found["outcome_auc"] == pytest.approx(auc_of([pair for row in whole for pair in row]))
    assert found["outcome_auc_within"] == pytest.approx(np.mean([auc_of(row) for row in whole]))
    assert found["step_auc"] == pytest.approx(auc_of(steps))
    assert 0 < found["step_auc"] < 1


def test_where_there_is_nothing_to_compare_there_is_no_number():
    run, problems = judged()
    found = judge_auc(rollout=written(texts=("3", "4")), model="judge")(problems, replace(run))
    assert math.isnan(found["outcome_auc"])
    assert math.isnan(found["outcome_auc_within"])
    assert "step_auc" not in found


def test_sampled_replies_are_marked_by_the_rollout_and_judged():
    run, problems = judged()
    part = registry.part("rollout", "independent", n=2, steps="newline")
    found = judge_auc(rollout=part, model="judge")(problems, replace(run, max_new=Sampling(6).max_new))
    assert found["n"] == 6
