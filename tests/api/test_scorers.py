"""A run that trained a reward model is measured by the measure of its method, and used as methods with a reward model use it."""

from __future__ import annotations

import json

import pytest

from rewardlab import api, registry
from rewardlab.api.measuring import begun_again
from rewardlab.api.scorers import scorer_recipe
from rewardlab.commands import cli
from rewardlab.core import Message
from rewardlab.engine.checkpoint import load_weights
from rewardlab.errors import RewardlabError
from rewardlab.evals.pairs import end_values
from rewardlab.models.embedded import tokenizer
from rewardlab.models.reward_model import load_reward_model
from rewardlab.models.writing import how_written
from rewardlab.rollouts.explained import with_reply
from rewardlab.scoreboard.run import scoreboard
from tests.helpers.checkpoints import checkpoint
from tests.helpers.reward_runs import one_step, taught

SHORT = {"steps": 1, "eval_problems": 8, "max_new": 4, "device": "cpu"}


def pairs(path, count=40, start=0):
    rows = [{"prompt": f"What is {i} + 1?", "chosen": f"{i + 1}", "rejected": f"{i} is it"} for i in range(start, start + count)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scorers")
    checkpoint(folder / "model", tokenizer(), max_position_embeddings=512)
    (folder / "sums.jsonl").write_text("".join(f'{{"prompt": "What is {i} + 1?", "answer": "{i + 1}"}}\n' for i in range(20)))
    task, settings = pairs(folder / "pairs.jsonl"), {"problems": 8}
    api.train("bradley_terry", str(folder / "model"), task, settings=settings, out=folder / "rm", **SHORT)
    return folder


def test_a_reward_model_is_measured_on_pairs_as_in_its_run(here, tmp_path):
    rm = str(here / "rm")
    after = json.loads((here / "rm" / "summary.json").read_text())["best"]
    found = api.evaluate(rm, problems=8, device="cpu")
    assert found["pair_accuracy"] == {"value": after["pair_accuracy"], "ci95": after["ci95"]}
    assert found["n"] == after["n"]
    other = pairs(tmp_path / "other.jsonl", count=12, start=100)
    assert api.evaluate(rm, other, test=pairs(tmp_path / "test.jsonl", count=7, start=200), device="cpu")["n"] == 7


def test_rows_without_pairs_are_refused_by_their_columns(here):
    with pytest.raises(RewardlabError, match="2 columns that the data lacks:\n  chosen: "):
        api.evaluate(str(here / "rm"), str(here / "sums.jsonl"), device="cpu")


def test_only_the_run_of_a_scorer_is_measured_so(here, tmp_path):
    api.train(
        "grpo", str(here / "model"), str(here / "sums.jsonl"), settings={"problems": 2, "n": 2}, out=tmp_path / "run", **SHORT
    )
    assert scorer_recipe(str(tmp_path / "run")) is scorer_recipe(str(here / "model")) is scorer_recipe("embedded") is None
    assert "pass@1" in api.evaluate(str(tmp_path / "run"), k=(1,), problems=2, device="cpu")
    assert scorer_recipe(str(here / "rm")).name == "bradley_terry"


@pytest.mark.parametrize("method", ["secrets_rlhf_2", "skywork_reward_v2", "cheems"])
def test_a_loop_before_the_first_step_does_not_change_what_a_run_is(method, here, tmp_path):
    rows = [json.loads(line) for line in (here / "pairs.jsonl").read_text().splitlines()]
    verified = tmp_path / "verified.jsonl"
    verified.write_text("".join(json.dumps({**row, "gold": i % 2 == 0}) + "\n" for i, row in enumerate(rows)))
    settings = {"problems": 8, **({"votes": 2} if method == "secrets_rlhf_2" else {})}
    run = api.train(method, str(here / "model"), str(verified), settings=settings, out=tmp_path / "run", **SHORT)
    found = api.evaluate(str(run.out), problems=8, device="cpu")
    assert found["pair_accuracy"]["value"] == run.summary["best"]["pair_accuracy"]
    # other held-out pairs need not say whether they were verified
    assert api.evaluate(str(run.out), str(here / "pairs.jsonl"), problems=3, device="cpu")["n"] == 3


def test_pairs_with_votes_teach_ties_and_lack_none(here, tmp_path):
    rows = [json.loads(line) for line in (here / "pairs.jsonl").read_text().splitlines()]
    votes = tmp_path / "votes.jsonl"
    votes.write_text("".join(json.dumps({**row, "chosen_score": 2, "rejected_score": 2}) + "\n" for row in rows))
    settings = {"problems": 8, "labels": "votes"}
    found = api.train("bradley_terry", str(here / "model"), str(votes), settings=settings, out=tmp_path / "run", **SHORT)
    step = [json.loads(line) for line in (found.out / "metrics.jsonl").read_text().splitlines()][-1]
    # all are ties, so a loss below log 2 cannot be
    assert step["reward/loss"] >= 0.693147
    task = str(here / "pairs.jsonl")
    with pytest.raises(RewardlabError, match=r"2 columns that the data lacks:\n  chosen_score: .*\n  rejected_score: "):
        api.train("bradley_terry", str(here / "model"), task, settings=settings, out=tmp_path / "none", **SHORT)


def test_a_measure_of_pairs_tells_length_and_calibration(here):
    """The fixture's better replies are the shorter ones, all of them."""
    found = api.evaluate(str(here / "rm"), problems=8, device="cpu")
    assert found["pair_accuracy.shorter"] == found["pair_accuracy"]["value"]
    assert "pair_accuracy.longer" not in found
    assert 0 <= found["ece"] <= 1
    assert 0 <= found["brier"] <= 1


@pytest.mark.parametrize("written", ["{}", "model_score(model='{}')"])
def test_a_folder_given_as_a_reward_is_told_how_it_is_used(here, written, tmp_path, capsys):
    for folder in (here / "rm", here / "model"):
        argv = [
            "train", "grpo", "--task", str(here / "sums.jsonl"), "--model", str(here / "model"), "--steps", "1", "--max-new", "4",
            "--reward", written.format(folder), "--device", "cpu", "--out", str(tmp_path / "run"),
        ]  # fmt: skip
        assert cli.main(argv) == 2
        assert f"model:{folder}" in capsys.readouterr().err


def test_an_export_and_any_classifier_are_measured_on_pairs(here, tmp_path):
    """As the run is, whose own measure reads the same pairs by the policy's tokens."""
    api.export(here / "rm", tmp_path / "out")
    own, named = api.evaluate(str(here / "rm"), problems=8, device="cpu"), {"problems": 8, "device": "cpu"}
    for model in (str(tmp_path / "out"), f"model:{tmp_path / 'out'}", f"{tmp_path / 'out'}?layout=ours"):
        found = api.evaluate(model, str(here / "pairs.jsonl"), **named)
        # the policy rounds as the run did, in bfloat16 where the processor multiplies it, and a classifier in another order
        about = {key: pytest.approx(own[key], rel=1e-3) for key in ("ece", "brier")}
        assert found == own | about | {"model": model}
    # of another origin: read by its own template
    checkpoint(tmp_path / "theirs", tokenizer(), "LlamaForSequenceClassification", num_labels=1)
    assert api.evaluate(str(tmp_path / "theirs"), str(here / "pairs.jsonl"), **named)["n"] == 6
    with pytest.raises(RewardlabError, match="rows of sums lack a text in the column 'chosen' or 'rejected'"):
        api.evaluate(str(tmp_path / "out"), str(here / "sums.jsonl"), device="cpu")


def test_pairs_that_differ_in_several_turns_are_scored_whole(here, tmp_path):
    """The user's message between two replies is read, in training, in the run's measure and by an export."""
    rows = []
    for i in range(20):
        told = [
            {"role": "user", "content": f"What is {i}?"},
            {"role": "assistant", "content": "a"},
            {"role": "user", "content": "so"},
        ]
        rows.append(
            {
                "chosen": [*told, {"role": "assistant", "content": "b"}],
                "rejected": [told[0], {"role": "assistant", "content": "no"}],
            }
        )
    (file := tmp_path / "whole.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = api.train("bradley_terry", str(here / "model"), str(file), settings={"problems": 4}, out=tmp_path / "rm", **SHORT)
    api.export(run.out, tmp_path / "out")
    own = api.evaluate(str(run.out), problems=8, device="cpu")
    found = api.evaluate(str(tmp_path / "out"), str(file), problems=8, device="cpu")
    assert found["pair_accuracy"] == own["pair_accuracy"]
    assert found["brier"] == pytest.approx(own["brier"], rel=1e-3)


@pytest.mark.parametrize("method", ["acemath", "gradesql"])
def test_the_run_of_a_method_that_reads_other_rows_is_measured_on_plain_pairs_too(method, here, tmp_path):
    one_step(method, tmp_path)
    found = api.evaluate(str(tmp_path / "run"), str(here / "pairs.jsonl"), problems=8, device="cpu")
    assert found["n"] == 6
    assert set(found) >= {"pair_accuracy", "pair_accuracy.shorter", "ece"}
    scores = load_reward_model(str(tmp_path / "run"), "cpu").score([([Message("user", "What is 1 + 1?")], "2")])
    assert len(scores) == 1


def test_a_reward_model_under_a_principle_is_measured_on_plain_pairs(here, tmp_path, capsys):
    one_step("salmon", tmp_path)
    argv = ["eval", f"{tmp_path / 'run'}?principle=Be brief.", "--task", str(here / "pairs.jsonl"), "--device", "cpu"]
    assert cli.main([*argv, "--problems", "4"]) == 0
    assert "pair_accuracy" in capsys.readouterr().out


def test_what_a_method_remembers_is_there_when_its_run_is_measured(here, tmp_path):
    """The goal of goal_conditioned_rm, without which every prefix is worth the same."""
    settings, task = {"problems": 8, "reward_lr": 1e-2}, str(here / "pairs.jsonl")
    run = api.train(
        "goal_conditioned_rm", str(here / "model"), task, settings=settings, out=tmp_path / "run", **SHORT | {"steps": 3}
    )
    found, known = api.evaluate(str(run.out), problems=8, device="cpu"), run.summary["best"]
    assert known["step"] > 0
    assert found["goal_auroc"] == pytest.approx(known["goal_auroc"])
    assert found["prefix_auroc"] == pytest.approx(known["prefix_auroc"])
    assert found["goal_auroc"] != 0.5


def test_an_evaluation_tells_the_share_of_replies_that_were_cut_off(capsys):
    given = ["eval", "untrained", "--task", "arithmetic", "--problems", "4", "--k", "2", "--device", "cpu"]
    assert cli.main([*given, "--max-new", "1"]) == 0
    printed = capsys.readouterr().out
    assert "warning: 100% of the replies were cut off at the length limit" in printed
    found = api.evaluate("untrained", "arithmetic", k=(2,), problems=4, max_new=1, device="cpu")
    assert found["cut_off"] == 1.0
    flags = ["answer", "majority_vote", "--model", "untrained", "--task", "arithmetic", "--problems", "2", "--n", "2"]
    assert cli.main([*flags, "--max-new", "1", "--device", "cpu"]) == 0
    assert "warning: 100% of the replies were cut off" in capsys.readouterr().out


def test_a_measure_on_part_of_a_file_says_so(tmp_path, capsys):
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps({"prompt": f"{i}+1=?", "answer": i + 1}) + "\n" for i in range(30)))
    task = str(tmp_path / "rows.jsonl")
    tested = api.evaluate("untrained", task, k=(1,), max_new=2)["n"]
    told = " ".join(capsys.readouterr().err.split())
    assert tested < 30
    assert f"measured on the {tested} of 30 rows" in told
    assert f"--test {task}" in told
    assert api.evaluate("untrained", task, k=(1,), max_new=2, test=task)["n"] == 30
    assert "measured on the" not in capsys.readouterr().err


def test_a_model_that_cannot_score_and_write_is_refused_in_the_dry_run(tmp_path):
    checkpoint(tmp_path / "model", tokenizer(), max_position_embeddings=512, tie_word_embeddings=False)
    rows = [{"prompt": f"{i}+1=", "chosen": str(i + 1), "rejected": "0"} for i in range(4)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    model, task = str(tmp_path / "model"), str(tmp_path / "rows.jsonl")
    with pytest.raises(RewardlabError, match=r"log-probs in one model.*--shared false"):
        api.plan("critic_rm", model, task, device="cpu")
    with pytest.raises(RewardlabError, match="leave out --keep-language"):
        api.plan("bradley_terry", model, task, settings={"keep_language": 0.1}, device="cpu")
    assert api.plan("critic_rm", model, task, settings={"shared": False}, device="cpu")["formula"]


@pytest.mark.parametrize(("method", "settings"), [("critic_rm", {"shared": False, "k": 2}), ("themis_tool_augmented_rm", {})])
def test_an_export_holds_the_writer_and_scores_as_the_run_does(method, settings, tmp_path):
    """Score by score; the writer was taught too."""
    taught(method, tmp_path, ["a"], steps=4, writer_lr=3e-3, **settings)
    run, rm, rows = tmp_path / "run", str(tmp_path / "rm"), str(tmp_path / "rows.jsonl")
    assert "which the model in writer/ writes first" in api.export(run, rm)["reads"]
    assert "load the scoring half alone" in (tmp_path / "rm" / "README.md").read_text()
    ops = begun_again(run, "be read")
    load_weights(run / "checkpoints", ops.learners)
    task = registry.task(rows)
    sides = [(p, p.meta[side]) for p in (*task.train.problems, *task.test) for side in ("chosen", "rejected")]
    groups = how_written(ops.recipe)([with_reply(*side) for side in sides], ops.run.for_evaluation())
    own = end_values(ops.run.models["reward"], [t for group in groups for t in group]).reshape(len(sides), -1).mean(1)
    whole, alone = load_reward_model(rm, "cpu", "float32"), load_reward_model(f"{rm}?reads=plain", "cpu", "float32")
    asked = [(p.prompt, reply) for p, reply in sides]
    assert whole.score(asked) == pytest.approx(own.tolist(), abs=1e-4)
    assert whole.score(asked) != pytest.approx(alone.score(asked), abs=1e-4)
    measured = api.evaluate(rm, rows, test=rows, problems=2, device="cpu")
    assert measured["n"] == 2
    assert "overall" in scoreboard([rm], ["pairs"], data=rows)["raters"][rm]["pairs"]["figures"]


@pytest.mark.parametrize("method", ["critic_rm", "themis_tool_augmented_rm"])
def test_an_export_without_its_writer_says_so(method, tmp_path):
    one_step(method, tmp_path)
    api.export(tmp_path / "run", tmp_path / "rm")
    (tmp_path / "rm" / "writes.json").unlink()
    with pytest.raises(RewardlabError, match=r"This export holds the scorer alone.*reads=plain"):
        load_reward_model(str(tmp_path / "rm"))
