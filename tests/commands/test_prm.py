"""`rewardlab prm`: measuring models that score steps, through the command line."""

from __future__ import annotations

import json

import pytest

from rewardlab import api
from rewardlab.commands.cli import main
from rewardlab.errors import RewardlabError
from rewardlab.prm import load_scorer
from tests.helpers.checkpoints import checkpoint

ROWS = [
    {"id": "a-0", "problem": "1+2", "steps": ["1+2=3", "3*2=7"], "label": 1},
    {"id": "a-1", "problem": "2+2", "steps": ["2+2=4", "4*2=8"], "label": -1},
    {"id": "a-2", "problem": "3+2", "steps": ["3+2=6"], "label": 0},
    {"id": "a-3", "problem": "5+2", "steps": ["5+2=7", " "], "label": -1},
]


@pytest.fixture
def prm(tmp_path, words):
    checkpoint(tmp_path / "prm", words, "LlamaForTokenClassification", num_labels=2)
    return tmp_path / "prm"


@pytest.fixture
def data(tmp_path):
    (tmp_path / "data").mkdir()
    for name, rows in (("one", ROWS), ("two", ROWS[:2])):
        (tmp_path / "data" / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path / "data"


def test_eval_measures_a_scorer(prm, data, tmp_path, capsys):
    chances = load_scorer(str(prm), "cpu").score([(row["problem"], row["steps"]) for row in ROWS[:3]])
    # between the chances of the first solution's steps, so that something is found and something is not
    at = sum(chances[0]) / 2
    page, out = tmp_path / "page.html", tmp_path / "scored.jsonl"
    argv = ["prm", "eval", str(prm), "--on", str(data / "one.jsonl"), "--threshold", str(at), "--device", "cpu"]
    assert main([*argv, "--page", str(page), "--out", str(out), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    judged = [next((k for k, c in enumerate(row) if c <= at), -1) for row in chances]
    error = [judged[0] == 1, judged[2] == 0]
    assert found["first_error"]["error_accuracy"] == sum(error) / 2
    assert found["first_error"]["correct_accuracy"] == (judged[1] == -1)
    # the solution with a blank step
    assert (found["solutions"], found["left_out"], found["convention"]) == (3, 1, "head")
    assert found["cost"]["tokens"] > 20
    assert found["steps"]["n"] == 5
    written = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["chances"] for row in written] == [pytest.approx(row, abs=1e-5) for row in chances]
    text = page.read_text()
    assert all(title in text for title in ("First errors", "Calibration", "By place of the step", "<svg", f"threshold {at:.3g}"))
    assert "PRMBench" not in text
    # and for people
    assert main(argv) == 0
    assert "First errors" in capsys.readouterr().out


def test_a_folder_is_measured_file_by_file(prm, data):
    found = api.evaluate_scorer(str(prm), data, device="cpu")
    assert (found["solutions"], found["subsets"]["one"]["n_error"], found["subsets"]["two"]["n_error"]) == (5, 2, 1)
    f1 = [found["subsets"][name]["f1"] for name in ("one", "two")]
    assert found["subsets"]["mean_f1"] == sum(f1) / 2


def test_a_threshold_is_chosen_on_other_problems_than_it_is_measured_on(prm, tmp_path):
    rows = [{**ROWS[i % 2], "problem": f"{i // 2}+2"} for i in range(40)]
    (tmp_path / "many.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = api.evaluate_scorer(str(prm), tmp_path / "many.jsonl", device="cpu", fit_threshold=True)
    # both solutions of a problem are on the same side
    assert found["solutions"] + found["threshold_fitted_on"] == 40
    assert found["threshold_fitted_on"] % 2 == 0
    assert 0 < found["threshold_fitted_on"] < 40
    assert found["threshold"] != 0.5
    limited = api.evaluate_scorer(str(prm), tmp_path / "many.jsonl", device="cpu", limit=7)
    assert (limited["solutions"], limited["threshold"]) == (7, 0.5)


def test_a_threshold_is_not_fitted_on_what_cannot_tell_it(prm, tmp_path):
    # one problem has no other half, and right solutions alone have no F1
    for name, rows in (("one", ROWS[:2]), ("right", [{**ROWS[0], "problem": f"{i}+2", "label": -1} for i in range(20)])):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        with pytest.raises(RewardlabError, match=r"no threshold can be fitted on .*Give more, or a --threshold"):
            api.evaluate_scorer(str(prm), tmp_path / f"{name}.jsonl", device="cpu", fit_threshold=True)


def test_eval_says_what_is_wrong(prm, data, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("REWARDLAB_DATA", str(tmp_path))
    for argv, message in (
        (["--on", "processbench"], "the files of processbench are not there"),
        (["--on", "nowhere.jsonl"], "there is no file nowhere.jsonl; a benchmark is one of processbench, prmbench"),
        (["--on", str(data), "--threshold", "2"], "--threshold must be a number from 0 to 1"),
        (["--on", str(data), "--format", "prmbunch"], "unknown format of solutions 'prmbunch'"),
    ):
        assert main(["prm", "eval", str(prm), *argv]) == 2
        assert message in capsys.readouterr().err


def test_solutions_without_labels_are_told_the_command_that_labels_them(tmp_path, words, capsys):
    checkpoint(tmp_path / "model", words)
    rows = [{"prompt": f"1+{i}", "steps": [f"1+{i}={i + 1}"], "answer": str(i + 1)} for i in range(20)]
    (tmp_path / "solutions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    argv = ["prm", "train", str(tmp_path / "solutions.jsonl"), "--model", str(tmp_path / "model"), "--out", str(tmp_path / "prm")]
    assert main([*argv, "--steps", "1", "--device", "cpu"]) == 2
    assert "none of the 20 solutions has a label: rewardlab prm label --solutions FILE" in capsys.readouterr().err
