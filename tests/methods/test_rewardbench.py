"""RewardBench: sections weighted by pairs, mathematics as much as code, prior sets half, ties."""

from __future__ import annotations

import json

import numpy as np
import pytest

from rewardlab.core import Run
from rewardlab.errors import RewardlabError
from rewardlab.methods.benchmarks.rewardbench import SECTIONS, benchmark, released_results
from rewardlab.scoreboard.figures import Marks
from rewardlab.scoreboard.items import Verdict


def figures(right: dict[str, list[float]]) -> dict[str, float]:
    subsets = [subset for subset, xs in right.items() for _ in xs]
    return dict(benchmark.figures(Marks({"right": np.concatenate(list(right.values()))}, np.array(subsets, object))))


def right(verdict: Verdict) -> float:
    (item,) = benchmark.read(benchmark.example[0], "filtered")
    return benchmark.marks(item, verdict)["right"]


def test_subsets_count_by_the_published_numbers_of_pairs_whatever_the_file_holds():
    # chat: 100 * 1/2 + 40 * 1 over 140 = 9/14;  reasoning: (984 * 1 + 164 * 0) / 1148 = 6/7
    found = figures({"alpacaeval-easy": [1, 0], "mt-bench-med": [1, 1, 1], "math-prm": [1], "hep-go": [0, 0, 0, 0]})
    assert found["chat"] == pytest.approx(9 / 14)
    assert found["reasoning"] == pytest.approx(6 / 7)
    assert found["overall"] == pytest.approx((9 / 14 + 6 / 7) / 2)
    assert found["alpacaeval-easy"] == 0.5
    assert np.isnan(found["safety"])


def test_mathematics_counts_as_much_as_the_six_languages_together():
    counts = SECTIONS["reasoning"]
    assert counts["math-prm"] == sum(n for name, n in counts.items() if name != "math-prm") == 984


def test_prior_sets_count_half_and_only_four_of_them():
    # chat 1, prior sets (1 + 0 + 0 + 0) / 4; anthropic_harmless is told and counts for nothing: (2 * 1 + 1 * 1/4) / 3 = 3/4
    known = {"alpacaeval-easy": [1], "anthropic_helpful": [1], "anthropic_hhh": [0], "shp": [0], "summarize": [0]}
    found = figures({**known, "anthropic_harmless": [1, 1]})
    assert found["prior sets"] == 0.25
    assert found["overall"] == pytest.approx(0.75)
    assert found["anthropic_harmless"] == 1.0


@pytest.mark.parametrize(
    ("verdict", "share"),
    [
        (Verdict((1.0, 1.0)), 0.0),
        (Verdict((2.0, 1.0)), 1.0),
        (Verdict((None, 1.0)), 0.0),
        (Verdict(), 0.0),
        (Verdict(orders={(0, 1): 0.5, (1, 0): 0.5}), 0.5),
        (Verdict(orders={(0, 1): None}), 0.5),
        (Verdict(orders={(0, 1): 1.0, (1, 0): 1.0}), 0.5),
        (Verdict(orders={(1, 0): 0.0}), 1.0),
        (Verdict(orders={(0, 1): 1.0, (1, 0): None}), 0.75),
        # a judge that rates each reply by itself
        (Verdict((1.0, 1.0), judged=True), 0.5),
        (Verdict((None, 1.0), judged=True), 0.5),
        (Verdict(judged=True, failed=True), 0.5),
        (Verdict((2.0, 1.0), judged=True), 1.0),
        (Verdict((1.0, 2.0), judged=True), 0.0),
    ],
)
def test_a_tie_is_lost_by_a_reward_model_and_half_won_by_a_judge(verdict, share):
    assert right(verdict) == share


def test_a_prior_set_is_known_by_its_file_and_its_prompt_is_a_conversation(tmp_path):
    row = {"id": 3, "subset": "askphysics", "chosen": "a", "rejected": "b"}
    turns = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}, {"role": "user", "content": "z"}]
    path = tmp_path / "shp-00000-of-00001.jsonl"
    path.write_text(json.dumps(row | {"prompt": turns}))
    (item,) = benchmark.items(path)
    assert item.subset == "shp"
    assert [m.role for m in item.prompt] == ["user", "assistant", "user"]


def test_files_that_are_no_part_of_the_benchmark_are_passed_over_and_unknown_subsets_are_named(tmp_path):
    row = {"id": 1, "subset": "donotanswer", "prompt": "x", "chosen": "a", "rejected": "b"}
    for name in ("raw-00000-of-00001", "pku_safer-00000-of-00001", "filtered-00000-of-00001"):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(row | {"id": name}))
    assert [item.id for item in benchmark.items(tmp_path)] == ["donotanswer/filtered-00000-of-00001"]
    (tmp_path / "odd.jsonl").write_text(json.dumps(row | {"subset": "poetry"}))
    with pytest.raises(RewardlabError, match="no subset 'poetry'"):
        benchmark.items(tmp_path / "odd.jsonl")


def test_the_published_scores_come_out_of_the_released_results():
    found = released_results()(Run(policy=None, seed=0))
    assert found["met"] == 1.0
    assert found["control"] < 0.5
    # by hand, Skywork-Reward-Gemma-2-27B: (94 + 99 + 146 + 235 + 106) / 740 = 0.9189, exchanged (.. 146/154*250 ..) = 0.9200
    assert 0.005 < found["exchanged"] < 0.012
