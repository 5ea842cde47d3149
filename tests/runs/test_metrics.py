"""Which evaluation is the best: one rule for the model that is kept, the summary, the report and what is said of a run."""

from __future__ import annotations

import json
import math

import pytest

from rewardlab.engine.loop import _best
from rewardlab.report.summary import summarise
from rewardlab.runs.metrics import best_step
from rewardlab.runs.record import Recorder


@pytest.mark.parametrize(
    ("values", "best"),
    [({0: 0.5, 2: 0.7, 4: 0.6}, 2), ({0: 0.5, 2: 0.5}, 0), ({4: 0.5, 0: 0.1, 2: 0.5}, 2), ({0: math.nan, 2: -1.0}, 2),
     ({0: None, 2: True}, None), ({}, None)],
)  # fmt: skip
def test_the_highest_is_the_best_and_of_equal_ones_the_earliest(values, best):
    assert best_step(values) == best


# the third is above the second by less than a page shows
VALUES = {0: 0.5, 2: 0.6, 4: 0.6 + 1e-12, 6: 0.6 + 1e-12, 8: 0.3}


def test_the_model_that_is_kept_is_the_one_that_all_others_name(tmp_path, monkeypatch):
    kept = []
    recorder = Recorder(tmp_path)
    monkeypatch.setattr(recorder, "model", lambda model, name: kept.append((model, name)))
    for step, value in VALUES.items():
        recorder.keep_best(step, value, f"weights of step {step}")
    assert kept[-1] == ("weights of step 4", "best")
    assert len(kept) == 3
    assert _best({step: {"score": value} for step, value in VALUES.items()})["step"] == 4
    lines = [{"step": step, "eval/score": value} for step, value in VALUES.items()]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "config.json").write_text(json.dumps({"method": "grpo", "steps": 8}))
    assert summarise(tmp_path)["best"]["step"] == 4
