"""The plain trained judge: it learns right verdicts, imitates first where asked, and is asked elsewhere as it was in training."""

import json

import pytest

from rewardlab import api, registry
from rewardlab.core import Message
from rewardlab.scoreboard.items import Item
from rewardlab.scoreboard.raters import load_rater

ROWS = [
    {"prompt": "Name a planet.", "chosen": "Mars.", "rejected": "The sun."},
    {"prompt": "What is 2 + 2?", "chosen": "4", "rejected": "5"},
    {"prompt": "Why do leaves fall?", "chosen": "Trees save water in winter.", "rejected": "Because of gravity alone."},
    {"prompt": "How does one boil an egg?", "chosen": "Seven minutes in boiling water.", "rejected": "In a pan, somehow."},
]
TEXT = "{prompt}\n1: {first}\n2: {second}"


def run_of(folder, **settings):
    file = folder / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    settings = {"form": TEXT, "n": 2, "problems": 2, **settings}
    common = {"steps": 2, "eval_problems": 2, "max_new": 8, "device": "cpu"}
    return api.train("trained_judge", "untrained", str(file), out=folder / "run", settings=settings, **common)


def test_a_run_is_asked_on_the_scoreboard_as_in_training(tmp_path):
    run = run_of(tmp_path).out
    judge = load_rater(f"judge:{run}", "cpu")
    assert (judge.form.text, judge.form.kind, judge.by) == (TEXT, "pairwise", "text")
    # unless something else is asked for
    assert load_rater(f"judge:{run}?kind=verdict", "cpu").form.kind == "verdict"
    assert load_rater(f"judge:{run}?form=rm_r1", "cpu").form.name == "rm_r1"
    item = Item("1", (Message("user", "What is 1 + 1?"),), ("2", "3"), (1.0, 0.0))
    (verdict,) = judge.judge([item], registry.method("llmbar").__globals__["benchmark"])
    assert set(verdict.orders) == {(0, 1), (1, 0)}


def test_a_run_is_evaluated_as_a_judge_with_gold_answers_or_without(tmp_path):
    run = run_of(tmp_path).out
    found = api.evaluate(str(run), str(tmp_path / "rows.jsonl"), device="cpu", problems=2)
    assert list(found["judged"]) == ["value", "ci95"]
    assert {"pair_accuracy", "unread", "judgement_tokens"} <= found.keys()
    answered = tmp_path / "answered.jsonl"
    answered.write_text("".join(json.dumps(row | {"answer": "4"}) + "\n" for row in ROWS))
    assert "judged" in api.evaluate(str(run), str(answered), device="cpu", problems=2)


def test_it_imitates_first_and_then_learns_from_verdicts(tmp_path):
    run = run_of(tmp_path, distil=1).out
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    steps = [row for row in rows if "loss" in row]
    assert ["accepted" in row for row in steps] == [True, False]
    # imitation learns at five times the rate, and small judges from their verdicts at less than small policies from rewards
    assert [row["lr"] for row in steps] == pytest.approx([5e-4, 1e-4])
    assert {"eval/judged", "eval/pair_accuracy", "eval/unread"} <= rows[-1].keys()
    # rows of pairs have no other truth than the verdicts that are paid
    assert "truth" not in json.loads((run / "summary.json").read_text())


def test_a_wrong_verdict_costs_what_is_asked():
    recipe = registry.build("trained_judge", {"wrong": 0.0})
    assert recipe.reward.settings["wrong"] == 0.0
