"""What the training loop says while it runs."""

import json

import pyarrow.parquet as pq

from rewardlab import api
from rewardlab.engine.loop import _shown
from rewardlab.text.answers import NO_ANSWER


def test_an_older_held_out_value_is_shown_with_the_step_it_was_measured_at():
    evaluations = {0: {"pass@1": 0.125, "n": 8}, 10: {"pass@1": 0.25, "n": 8}}
    assert _shown(10, {"reward": 0.5}, evaluations) == "reward 0.500  held-out pass@1 0.250"
    assert _shown(12, {"reward": 0.5}, evaluations) == "reward 0.500  held-out pass@1 0.250 (step 10)"
    assert _shown(12, {}, {}) == ""


def test_the_share_of_replies_without_an_answer_is_logged(tmp_path):
    config = {"steps": 1, "max_new": 4, "eval_every": 0, "eval_problems": 2, "device": "cpu"}
    api.train("grpo", "untrained", "arithmetic", settings={"problems": 4, "n": 4}, out=tmp_path / "run", **config)
    (told,) = [row["no_answer"] for row in map(json.loads, (tmp_path / "run" / "metrics.jsonl").open()) if row["step"] == 1]
    (file,) = (tmp_path / "run" / "rollouts").glob("*.parquet")
    reasons = [row["why"] for row in pq.read_table(file).to_pylist()]
    assert told == sum(NO_ANSWER in why for why in reasons) / len(reasons)
    assert 0 < told < 1
