"""The published gains of best-of-32 by real process reward models, from their recorded step scores."""

import csv

import pytest

from rewardlab.api.inputs import begin_run
from rewardlab.core import Recipe, Run
from rewardlab.errors import RewardlabError
from rewardlab.models.load import load_policy
from rewardlab.rewards.algebra import aggregate
from rewardlab.rewards.recorded import step_scores_in_data, verdict_in_data
from rewardlab.rollouts.best import best
from rewardlab.rollouts.independent import independent
from rewardlab.runs.config import RunConfig
from rewardlab.tasks.sources import data_file
from rewardlab.tasks.strictprm.problems import SCORERS, adjudicated, problems, strictprm

OFFICIAL = {"qwen_prm": "product", "math_shepherd": "min", "internlm2_7b_reward": "last", "internlm2_1_8b_reward": "last"}
"""What the authors of each model recommend; of the others it is the mean."""


@pytest.fixture(scope="module")
def published():
    try:
        path = data_file("strictprm", "published_gain32.csv")
    except RewardlabError as e:
        pytest.skip(str(e))
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {(r["benchmark"], r["prm"], r["method"]): r for r in rows}


def replies(name, labels="published"):
    task = strictprm(name=name, labels=labels)
    run = begin_run(Recipe(), load_policy("recorded"), task, RunConfig())
    groups = independent(n=32)(list(task.test), run)
    right = verdict_in_data()(groups, run)
    return run, groups, {id(t): s.value for group, row in zip(groups, right, strict=True) for t, s in zip(group, row, strict=True)}


def chosen(run: Run, groups, right, scorer, by) -> float:
    scores = aggregate(step_scores_in_data(column=scorer), by=by)(groups, run)
    return sum(right[id(best()(group, row, run))] for group, row in zip(groups, scores, strict=True)) / len(groups)


@pytest.mark.slow
@pytest.mark.parametrize("name", SCORERS)
def test_published_gains_of_best_of_32_are_met_exactly(name, published):
    run, groups, right = replies(name)
    for scorer in SCORERS[name]:
        for method, by in (("product", "product"), ("gm", "geometric"), ("official", OFFICIAL.get(scorer, "mean"))):
            row = published[name, scorer, method]
            assert round(chosen(run, groups, right, scorer, by), 6) == float(row["pass_at_1"]), (scorer, method)


@pytest.mark.slow
def test_a_published_gain_is_met_exactly(published):
    run, groups, right = replies("gsm8k")
    assert len(groups) == int(published["gsm8k", "qwen_prm", "gm"]["n_total_clean"])
    assert chosen(run, groups, right, "qwen_prm", "geometric") == float(published["gsm8k", "qwen_prm", "gm"]["pass_at_1"])


@pytest.mark.slow
def test_what_was_read_differs_from_the_published_labels_as_adjudicated(published):
    known = [problem.meta["right"] for problem in problems("gsm8k", "published")]
    true = [problem.meta["right"] for problem in problems("gsm8k")]
    changed = sum(a != b for old, new in zip(known, true, strict=True) for a, b in zip(old, new, strict=True))
    assert 0 < changed <= len(adjudicated("gsm8k"))
    assert len(problems("math500")) == 477


def test_without_the_data_it_is_said_what_is_missing(monkeypatch, tmp_path):
    monkeypatch.setenv("REWARDLAB_DATA", str(tmp_path))
    problems.cache_clear()
    task = strictprm(name="gsm8k")
    with pytest.raises(RewardlabError, match=r"strictprm/candidates_gsm8k.jsonl.gz is missing.*REWARDLAB_DATA"):
        _ = task.test[0]
    with pytest.raises(RewardlabError, match="no problems to train on"):
        _ = task.train[0]
