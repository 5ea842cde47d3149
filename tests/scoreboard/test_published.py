"""Published figures beside any benchmark of rewards that come out of our verifiers, votes and selections.

The 54 accuracies of BIG-Bench Hard are in tests/verifiers/test_match.py.
"""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from rewardlab.core import Problem, Run, Score, Trajectory, Turn
from rewardlab.errors import RewardlabError
from rewardlab.evals.passk import pass_at
from rewardlab.rollouts.best import best
from rewardlab.rollouts.vote import majority
from rewardlab.scoreboard.asked import benchmark_of
from rewardlab.tasks.sources import data_file
from rewardlab.verifiers.math.verifier import math


def rows(*place: str) -> list[dict]:
    try:
        path = data_file(*place)
    except RewardlabError as missing:
        pytest.skip(str(missing))
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def replies(texts: list[str]) -> list[Trajectory]:
    return [Trajectory(Problem(()), (Turn("policy", np.zeros(1, np.int64), text=text),)) for text in texts]


def test_the_selections_from_eight_replies_of_qwen_math_come_out():
    """pass@1 .910, majority@8 .930, best of 8 by the reward model .940, pass@8 .960, of 100 problems of MATH."""
    found = {"pass@1": [], "majority@8": [], "best@8": [], "pass@8": []}
    for row in rows("qwen_math_rm", "math_cot_100.jsonl.gz"):
        right, group = row["score"], replies(row["response"])
        scores = [Score(float(score)) for (score,) in row["pred_score"]]
        found["pass@1"].append(pass_at(1, len(right), sum(right)))
        found["pass@8"].append(pass_at(8, len(right), sum(right)))
        for name, select in (("majority@8", majority()), ("best@8", best())):
            chosen = select(group, scores, Run(None))
            found[name].append(right[next(i for i, t in enumerate(group) if t is chosen)])
    assert {name: float(np.mean(x)) for name, x in found.items()} == pytest.approx(
        {"pass@1": 0.91, "majority@8": 0.93, "best@8": 0.94, "pass@8": 0.96}, abs=5e-4
    )


def test_the_accuracies_of_gsm8k_example_solutions_come_out():
    """21.68, 39.04, 34.72 and 56.25%, by our verifier against the gold answers."""
    table = rows("gsm8k_solutions", "example_model_solutions.jsonl.gz")
    names = [name for name, said in table[0].items() if isinstance(said, dict)]
    golds = [row["ground_truth"].rpartition("A:")[2].strip() for row in table]
    found = {}
    for name in names:
        verdicts = math().check_all([(row[name]["solution"], gold) for row, gold in zip(table, golds, strict=True)])
        found[name] = 100 * float(np.mean([v.correct is True for v in verdicts]))
    published = {"6b_finetuning": 21.68, "6b_verification": 39.04, "175b_finetuning": 34.72, "175b_verification": 56.25}
    assert found == pytest.approx(published, abs=0.005)


def test_the_published_shares_of_llmbars_judges_are_those_of_its_released_statistics():
    """The study `llmbar` has the statistics come out of the verdicts; here the table is compared with the statistics."""
    known = {}
    for row in rows("llmbar", "statistics.jsonl.gz"):
        run, name = f"{row['model']}/{row['strategy']}", row["set"].rsplit("/", 1)[-1].lower()
        if row["set"].startswith("LLMBar/"):
            known[run, name] = float(row["correct_average"].rstrip("%")) / 100
    for run in benchmark_of("llmbar").published:
        sets = {name: share for name, share in run.figures.items() if name != "overall"}
        assert len(sets) == 5
        assert sets == pytest.approx({name: known[run.output, name] for name in sets}, abs=5e-5)
