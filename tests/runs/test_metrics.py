"""Which evaluation is the best: one rule for the model that is kept, the summary, the report and what is said of a run."""

from __future__ import annotations

import json
import math

import pytest

from rewardlab.engine.ending import _best
from rewardlab.report.summary import summarise
from rewardlab.runs.metrics import best_step
from rewardlab.runs.record import Recorder


@pytest.mark.parametrize(
    ("values", "best"),
    [({0: 0.5, 2: 0.7, 4: 0.6}, 2), ({4: 0.5, 0: 0.1, 2: 0.5}, 2), ({0: math.nan, 2: -1.0}, 2),
     ({0: None, 2: True}, None), ({}, None),
     # a head that no step has trained gives all replies one score, which is a pair accuracy of .5
     ({0: 0.5, 2: 0.5}, 2), ({0: 0.5, 2: 0.4, 4: 0.5, 6: 0.5}, 4), ({0: 0.5, 2: 0.4}, 0), ({0: 0.5}, 0)],
)  # fmt: skip
def test_the_highest_is_the_best_and_of_equal_ones_the_earliest_that_trained(values, best):
    assert best_step(values) == best


# the third is above the second by less than a page shows
VALUES = {0: 0.5, 2: 0.6, 4: 0.6 + 1e-12, 6: 0.6 + 1e-12, 8: 0.3}


def test_the_model_that_is_kept_is_the_one_that_all_others_name(tmp_path, monkeypatch):
    kept = []
    recorder = Recorder(tmp_path)
    monkeypatch.setattr(recorder, "model", lambda model, name, notes: kept.append((model, name)))
    for step, value in VALUES.items():
        recorder.keep_best(step, value, f"weights of step {step}")
    assert kept[-1] == ("weights of step 4", "best")
    assert len(kept) == 3
    assert _best({step: {"score": value} for step, value in VALUES.items()})["step"] == 4
    lines = [{"step": step, "eval/score": value} for step, value in VALUES.items()]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "config.json").write_text(json.dumps({"method": "grpo", "steps": 8}))
    assert summarise(tmp_path)["best"]["step"] == 4


class Weights:
    def __init__(self, step):
        self.step = step

    def save(self, folder):
        (folder / "weights").write_text(f"of step {self.step}")


def best_of(folder):
    """The weights in best/, and the step that they are said to be of; None where there are none."""
    best = folder / "best"
    return ((best / "weights").read_text(), json.loads((best / "step.json").read_text())) if best.exists() else None


def measured(folder, values):
    """A run that was killed after these evaluations."""
    recorder = Recorder(folder)
    for step, value in values.items():
        recorder.keep_best(step, value, Weights(step))
        recorder.line(step, {"eval/score": value})
    return Recorder(folder)


def resumed(recorder, step, unmeasured=False):
    lines = recorder.rewind(step, unmeasured)
    recorder.measured = {line["step"]: line["eval/score"] for line in lines}
    recorder.restore_best(step, Weights(step))
    return best_of(recorder.folder)


def test_the_best_model_of_a_step_that_a_resumed_run_makes_again_is_not_kept(tmp_path):
    recorder = measured(tmp_path / "a", {0: 0.1, 2: 0.5, 4: 0.9})
    assert best_of(tmp_path / "a") == ("of step 4", {"step": 4})
    # at the step of the checkpoint itself the model is at hand
    assert resumed(recorder, 2) == ("of step 2", {"step": 2})
    assert resumed(recorder, 2) == ("of step 2", {"step": 2})
    # that of an earlier one is only where models are kept
    recorder = measured(tmp_path / "b", {0: 0.1, 2: 0.5, 4: 0.9})
    assert resumed(recorder, 3) is None
    recorder = measured(tmp_path / "c", {0: 0.1, 2: 0.5, 4: 0.9})
    recorder.model(Weights(2), "models/step-000002")
    assert resumed(recorder, 3) == ("of step 2", {"step": 2})
    # a step that is evaluated again has no line yet
    recorder = measured(tmp_path / "d", {0: 0.5, 2: 0.4, 4: 0.9})
    recorder.model(Weights(0), "models/step-000000")
    assert resumed(recorder, 4, unmeasured=True) == ("of step 0", {"step": 0})


def test_the_best_model_of_a_line_that_is_kept_stays_and_so_does_one_of_an_unknown_step(tmp_path):
    recorder = measured(tmp_path / "a", {0: 0.1, 2: 0.5, 4: 0.3})
    assert resumed(recorder, 3) == ("of step 2", {"step": 2})
    # as older versions wrote it
    (tmp_path / "a" / "best" / "step.json").unlink()
    recorder.rewind(0)
    assert (tmp_path / "a" / "best").exists()
    # killed between the model and the line that would name it
    recorder = measured(tmp_path / "b", {0: 0.1, 2: 0.5})
    recorder.keep_best(4, 0.9, Weights(4))
    assert resumed(recorder, 2) == ("of step 2", {"step": 2})


def test_where_training_ends_as_good_as_it_began_the_trained_model_is_kept(tmp_path):
    recorder = measured(tmp_path / "a", {0: 0.5, 2: 0.5, 4: 0.5})
    assert best_of(tmp_path / "a") == ("of step 2", {"step": 2})
    assert resumed(recorder, 4) == ("of step 2", {"step": 2})


def kept_by_an_older_version(folder):
    """A run whose best model is the first of equal ones: that of step 0."""
    recorder = measured(folder, {0: 0.5, 2: 0.5})
    (folder / "best" / "weights").write_text("of step 0")
    (folder / "best" / "step.json").write_text(json.dumps({"step": 0}))
    (folder / "config.json").write_text(json.dumps({"method": "bradley_terry", "recipe": {}, "steps": 2}))
    return recorder


def test_what_an_older_version_has_kept_is_told_as_it_is_and_mended_where_the_run_goes_on(tmp_path):
    recorder = kept_by_an_older_version(tmp_path / "run")
    assert summarise(tmp_path / "run")["best"]["step"] == 0
    assert resumed(recorder, 2) == ("of step 2", {"step": 2})
    assert summarise(tmp_path / "run")["best"]["step"] == 2
