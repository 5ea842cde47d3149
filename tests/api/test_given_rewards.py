"""Functions given in Python where a reward is: in training, resuming, planning, answering, searching, measuring and comparing."""

from __future__ import annotations

import json

import pytest

import rewardlab
from rewardlab import RewardlabError, api
from rewardlab.api.exporting import export_recipe
from rewardlab.commands import eval as eval_command
from rewardlab.runs.folder import how_to_resume

SMALL = {"max_new": 4, "eval_problems": 2, "eval_every": 0, "checkpoint_every": 1, "device": "cpu", "steps": 1}
GRPO = {"n": 2, "problems": 2}
ROWS = [{"prompt": f"Say {i}", "answer": str(i)} for i in range(12)]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))


def train(out, reward, method="grpo", **changes):
    settings = {"settings": GRPO} if isinstance(method, str) else {}
    return rewardlab.train(method, "untrained", "rows.jsonl", reward=reward, out=out, **settings, **SMALL | changes)


def lines(out):
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


def spread(by):
    def letters(completion):
        return by * (len(completion) % 7)

    return letters


def test_a_run_is_paid_by_functions_and_a_formula_and_resumes_with_the_same_ones(tmp_path):
    given = [spread(1), "0.5 * length_penalty(per_token=1.0)", lambda completion, answer: float(completion == answer)]
    result = train("run", given)
    logged = lines(result.out)[-1]
    assert {"reward/letters", "reward/lambda", "reward/length_penalty"} <= logged.keys()
    # in this process the functions are known
    assert rewardlab.resume("run", steps=2).summary["steps"] == 2
    assert "rewardlab.resume('run', reward=...)" in how_to_resume(result.out, stopped=True)


@pytest.fixture
def begun_elsewhere():
    """A run whose function this process does not have, as where another process began it."""
    train("run", spread(1))
    from rewardlab.rewards.user import held

    held._held.clear()


def test_a_run_of_another_process_asks_for_its_function_before_anything_is_loaded(begun_elsewhere, tmp_path):
    before = (tmp_path / "run" / "config.json").read_bytes()
    with pytest.raises(RewardlabError, match=r"function in Python, letters \(.*line \d+.*\): give it again.*reward=\.\.\."):
        rewardlab.resume("run", steps=2)
    with pytest.raises(RewardlabError, match="reward= is another function: its code, its defaults"):
        rewardlab.resume("run", steps=2, reward=spread(2))
    with pytest.raises(RewardlabError, match="another function: it is lambda now"):
        rewardlab.resume("run", steps=2, reward=lambda completion: 1.0)
    with pytest.raises(RewardlabError, match=r"paid by the function letters of Python, and reward= has 2"):
        rewardlab.resume("run", steps=2, reward=[spread(1), spread(3)])
    assert (tmp_path / "run" / "config.json").read_bytes() == before
    # a finished run has nothing left to be paid for
    assert rewardlab.resume("run").summary["steps"] == 1
    assert rewardlab.resume("run", steps=2, reward=spread(1)).summary["steps"] == 2


def test_a_run_goes_on_with_another_function_where_that_is_said(begun_elsewhere):
    assert rewardlab.resume("run", steps=2, reward=spread(2), reward_changed=True).summary["steps"] == 2


def test_a_run_that_finds_its_reward_takes_none(tmp_path):
    train("run", "length_penalty()")
    with pytest.raises(RewardlabError, match=r"finds its own reward.*leave reward= out"):
        rewardlab.resume("run", steps=2, reward=spread(1))


def test_a_recipe_with_a_function_is_trained_as_it_is():
    recipe = rewardlab.build("grpo", GRPO)
    result = train("run", None, recipe.but(reward=recipe.reward + spread(1)))
    assert "reward/letters" in lines(result.out)[-1]


def test_what_a_function_asks_for_and_no_row_has_is_refused_before_the_run():
    with pytest.raises(RewardlabError, match=r"the reward lambda of .*asks for unknown argument 'colour'"):
        train("run", lambda completion, colour: 1.0)


def test_a_plan_takes_a_function():
    plan = rewardlab.plan("grpo", "untrained", "rows.jsonl", reward=spread(1), device="cpu")
    assert "from_python(function='letters'" in plan["formula"]


def test_a_search_and_an_answer_take_a_function():
    common = {"problems": 2, "max_new": 4, "device": "cpu"}
    searched = {"model": "untrained", "settings": {"n": 2}, **common}
    found = api.search(["best_of_n"], "rows.jsonl", scorer=len_of, **searched)
    assert found["scorer"].startswith("from_module(")
    by_lambda = api.search("best_of_n", "rows.jsonl", model="untrained", scorer=lambda completion: 1.0, settings={"n": 2}, **common)
    assert by_lambda["results"][0]["replies"] == 2
    assert rewardlab.answer("best_of_n", "untrained", "rows.jsonl", reward=spread(1), **common)["n"] == 1


def len_of(completion):
    return len(completion)


def test_a_measurement_takes_functions_for_its_judge_and_for_what_chooses(capsys):
    common = {"k": (1, 2), "problems": 2, "max_new": 4, "device": "cpu"}
    found = rewardlab.evaluate("untrained", "rows.jsonl", judge=lambda completion: 1.0, best_of=spread(1), **common)
    assert found["pass@1"]["value"] == 1.0
    assert found["best"][1]["value"] == 1.0
    # what is worth as much everywhere tells nothing of its spread; it is no share of 1
    paid = rewardlab.evaluate("untrained", "rows.jsonl", judge=lambda completion: 57.3, best_of=spread(1), **common)["best"][1]
    assert (paid["value"], paid["ci95"]) == (pytest.approx(57.3), None)
    eval_command.show({"best": [paid]})
    assert "57.3" in capsys.readouterr().out
    with pytest.raises(RewardlabError, match="workers are processes of their own: put it at the top of a file"):
        rewardlab.evaluate("untrained", "rows.jsonl", judge=spread(1), workers="ray", **common)


def test_pass_rates_and_filters_take_a_function():
    rated = api.pass_rate_file("rows.jsonl", "rated.jsonl", model="untrained", reward=lambda completion: 1.0, samples=2, max_new=4)
    assert rated["pass_rate"] == 1.0
    judge = api.own_answers(lambda completion: 1.0 if completion == "3" else 0.0)
    assert [fate is None for fate in judge(ROWS[2:5])] == [False, True, False]


def test_what_runs_elsewhere_refuses_a_function_of_this_process(tmp_path):
    with pytest.raises(
        RewardlabError, match=r"letters is a function that this process alone has .*runs of a comparison are processes"
    ):
        rewardlab.compare(["grpo", "rloo"], reward=spread(1), task="rows.jsonl", model="untrained")
    refused = export_recipe(rewardlab.build("grpo").but(reward=spread(1)), tmp_path / "verl", engine="verl")
    assert "letters was given as a function in Python, and verl reads rewards from files" in refused["why"]


def test_a_judge_of_grades_says_what_replies_are_worth_beside_how_many_are_right(tmp_path, monkeypatch):
    """Of verdicts between right and wrong pass@k counts none, so that it says nothing of replies that are all half good."""
    monkeypatch.chdir(tmp_path)
    rows = [{"prompt": f"Say {i}"} for i in range(12)]
    worth = {row["prompt"]: i / 20 for i, row in enumerate(rows)}
    common = {"k": (1, 2), "problems": 12, "max_new": 4, "device": "cpu"}
    found = rewardlab.evaluate("untrained", test=rows, judge=lambda prompt: worth[prompt], **common)
    assert found["pass@1"]["value"] == 0.0
    assert found["mean_verdict"]["value"] == pytest.approx(5.5 / 20)
    low, high = found["mean_verdict"]["ci95"]
    assert low < 5.5 / 20 < high
    whole = rewardlab.evaluate("untrained", test=rows, judge=lambda prompt: float(worth[prompt] > 0.2), **common)
    assert "mean_verdict" not in whole
