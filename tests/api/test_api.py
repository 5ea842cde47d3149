"""rewardlab from Python: build a recipe, change a part, train, look."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import rewardlab
from rewardlab import Problem, RewardlabError, Task, Trajectory, ask, build, reward, train
from rewardlab.models.embedded import untrained
from rewardlab.rewards.length import length_penalty
from rewardlab.rewards.task import correct
from rewardlab.runs.metrics import read_metrics

SMALL = {"steps": 2, "max_new": 6, "eval_problems": 4, "eval_every": 1, "checkpoint_every": 1, "device": "cpu"}


@reward
def spaces(trajectory: Trajectory, *, worth: float = 1.0) -> float:
    return worth * trajectory.reply.count(" ")


OUTAGE: set[int] = set()


@reward
def fragile(trajectory: Trajectory, run) -> float:
    if run.step in OUTAGE:
        raise OSError("the power went out")
    return trajectory.reply.count(" ")


@pytest.fixture(scope="module")
def policy():
    return untrained()


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def model(policy):
    return policy.copy("policy")


def own_task(n=3):
    return Task("mine", [ask(f"Say {i}", i) for i in range(n)], [ask("Say 9", 9)], "exact_match", max_new=6)


def test_a_policy_learns_by_a_recipe_with_a_part_changed():
    recipe = rewardlab.build("grpo", {"n": 4, "problems": 2})
    recipe = recipe.but(reward=correct() + 0.1 * length_penalty(per_token=0.5))
    result = rewardlab.train(recipe, "untrained", "arithmetic:difficulty=1,test_size=10", **SMALL)
    problem = rewardlab.task("arithmetic").test[0]
    groups = recipe.rollout([problem], result.run)
    scores = recipe.reward(groups, result.run)

    assert len(groups[0]) == 4
    for trajectory, score in zip(groups[0], scores[0], strict=True):
        assert score.terms["length_penalty"].value == pytest.approx(-0.5 * trajectory.mask.sum())
        assert score.value == pytest.approx(score.terms["correct"].value - 0.05 * trajectory.mask.sum())
    assert result.summary["before"]["n"] == result.summary["after"]["n"] == 4
    assert result.out.parts == ("runs", "grpo-arithmetic-s0")
    assert "correct() + 0.1 * length_penalty(per_token=0.5)" in json.loads((result.out / "config.json").read_text())["formula"]


def test_runs_without_a_folder_get_one_each(model):
    first, second = (rewardlab.train(build("rloo", {"problems": 1}), model, own_task(), **SMALL).out for _ in range(2))
    assert (first.name, second.name) == ("rloo-mine-s0", "rloo-mine-s0-2")


def test_a_task_of_ones_own_may_be_a_list_shorter_than_the_training(model):
    recipe = build("grpo", {"n": 2, "problems": 2}).but(reward=spaces(worth=2.0), lr=0.01)
    result = rewardlab.train(recipe, model, own_task(3), **SMALL | {"steps": 6})
    assert [line["step"] for line in read_metrics(result.out)] == list(range(7))
    assert "reward/spaces" in read_metrics(result.out)[-1]
    with pytest.raises(RewardlabError, match="mine has no problems to train on"):
        rewardlab.train(recipe, model, own_task(0), **SMALL)


def test_without_held_out_problems_nothing_is_measured_and_the_last_is_exported(model):
    task = Task("mine", [ask("Say 1", 1), ask("Say 2", 2)], (), "exact_match")
    result = rewardlab.train(build("grpo", {"n": 2, "problems": 2}), model, task, **SMALL)
    assert "before" not in result.summary
    assert rewardlab.export(result.out, "exported")["which"] == "last"
    with pytest.raises(RewardlabError, match="mine has no problems to measure on"):
        rewardlab.evaluate(model, task)


def test_a_run_on_a_task_and_a_model_made_in_python_resumes_with_them(policy):
    def go(out):
        recipe = build("grpo", {"n": 2, "problems": 2}).but(reward=fragile(), lr=0.01)
        return rewardlab.train(recipe, policy.copy("policy"), own_task(), out=out, **SMALL | {"steps": 4})

    whole = go("whole")
    OUTAGE.add(2)
    with pytest.raises(RewardlabError, match="OSError: the power went out"):
        go("broken")
    OUTAGE.clear()

    broken = whole.out.parent / "broken"
    with pytest.raises(RewardlabError, match=r"resume it with rewardlab.resume\(folder, task="):
        rewardlab.resume(broken)
    with pytest.raises(RewardlabError, match=r"resume it with rewardlab.resume\(folder, model="):
        rewardlab.resume(broken, task=own_task())
    resumed = rewardlab.resume(broken, task=own_task(), model=policy.copy("policy"))
    assert {k: v for k, v in resumed.summary.items() if k != "seconds"} == {
        k: v for k, v in whole.summary.items() if k != "seconds"
    }
    assert (broken / "model" / "model.safetensors").read_bytes() == (whole.out / "model" / "model.safetensors").read_bytes()
    assert rewardlab.resume(broken).summary == resumed.summary


def test_a_run_resumes_from_any_folder_though_its_model_was_named_relatively(policy, tmp_path, monkeypatch):
    policy.save(tmp_path / "start")
    rewardlab.train("grpo", "start", "arithmetic:test_size=5", out="run", settings={"n": 2, "problems": 1}, **SMALL)
    (tmp_path / "run" / "summary.json").unlink()
    (tmp_path / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "deep")
    assert rewardlab.resume("../run").summary["model"] == str(tmp_path / "start")


def test_a_run_that_could_not_begin_leaves_no_folder(tmp_path):
    with pytest.raises(RewardlabError, match="unknown model 'nothing'"):
        rewardlab.train("grpo", "nothing", own_task(), **SMALL)
    assert not (tmp_path / "runs").exists()
    (tmp_path / "empty").mkdir()
    with pytest.raises(RewardlabError, match=r"has no config\.json"):
        rewardlab.train("grpo", "./empty", own_task(), **SMALL)
    assert list((tmp_path / "runs").iterdir()) == []


def test_one_seed_gives_one_run_and_another_seed_another(policy):
    def curve(seed, out):
        recipe = build("grpo", {"n": 4, "problems": 2}).but(reward=spaces(), lr=0.01)
        rewardlab.train(recipe, policy.copy("policy"), own_task(), seed=seed, out=out, **SMALL)
        return [{k: v for k, v in line.items() if not k.startswith("seconds")} for line in read_metrics(Path(out))]

    assert curve(1, "a") == curve(1, "b") != curve(2, "c")


def test_answers_are_chosen_among_several(model):
    found = rewardlab.answer(build("majority_vote", {"n": 3}), model, own_task(), problems=1, max_new=4)
    assert (found["n"], found["replies"], found["task"]) == (1, 3, "mine")
    assert 0 <= found["accuracy"]["value"] <= 1
    told = rewardlab.answer("best_of_n", model, prompt="What is 1+1?", max_new=4)
    assert isinstance(told["answer"], str)
    with pytest.raises(RewardlabError, match="grpo trains a policy and selects no answer"):
        rewardlab.answer("grpo", model, own_task())


def test_answers_to_rows_without_answers_are_not_called_wrong(tmp_path, model, capsys):
    rows = [{"prompt": f"Start with {i}. Add 1.", "chosen": str(i + 1), "rejected": "0"} for i in range(8)]
    (file := tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = rewardlab.answer("best_of_n", model, str(file), problems=2, max_new=4)
    assert not {"accuracy", "pass@1"} & found.keys()
    assert "which replies are right is not known" in capsys.readouterr().err


def test_the_recipe_of_a_run_comes_back_as_it_was(model):
    recipe = build("grpo", {"n": 2, "problems": 2, "lr": 3e-4}).but(reward=spaces(worth=0.5) + correct())
    out = rewardlab.train(recipe, model, own_task(), **SMALL).out
    saved = rewardlab.registry.load_recipe(json.loads((out / "config.json").read_text())["recipe"])
    assert saved == recipe


def test_everything_named_is_there():
    assert all(hasattr(rewardlab, name) for name in rewardlab.__all__)
    assert isinstance(ask("?"), Problem)
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        _ = rewardlab.trian


def test_a_budget_ends_training_and_counts_all_that_models_read_and_write(policy, tmp_path):
    recipe = build("grpo", {"n": 2, "problems": 2, "beta": 0.1})
    given = {"max_new": 8, "eval_problems": 2, "eval_every": 0}
    one = train(recipe, policy.copy("policy"), own_task(), steps=1, out=tmp_path / "one", **given)
    batch_lines = (tmp_path / "one" / "metrics.jsonl").read_text().splitlines()
    spent = json.loads(batch_lines[-1])["tokens"]
    # drawn by the policy, read by it to learn, and read by the reference: evaluations cost nothing
    assert one.summary["tokens"] == spent > 0
    two = train(recipe, policy.copy("policy"), own_task(), steps=99, budget=int(1.5 * spent), out=tmp_path / "two", **given)
    assert two.summary["steps"] == 2
    assert two.run.progress == 1.0
    assert two.run.over
    assert "after" in two.summary  # measured at its end, wherever that was


def test_training_may_begin_anywhere_in_the_data(policy, tmp_path):
    seen = []

    class Source:
        def __getitem__(self, position):
            seen.append(position)
            return own_task().train[0]

    recipe, given = build("grpo", {"n": 2, "problems": 2}), {"max_new": 4, "eval_problems": 2, "out": tmp_path / "run"}
    train(recipe, policy.copy("policy"), replace(own_task(), train=Source()), steps=1, start=40, **given)
    assert set(seen) == {40, 41}


@pytest.mark.parametrize(("bytes_per_token", "fits"), [(1, 16384), (100_000, 8192), (10**6, 1024), (10**9, 512)])
def test_micro_batches_fit_in_a_quarter_of_the_memory(bytes_per_token, fits, monkeypatch):
    from rewardlab.engine import learner

    class Model:
        device = torch.device("cpu")

        def activation_bytes(self, tokens: int) -> int:
            return tokens * bytes_per_token

    monkeypatch.setattr(learner, "memory_of", lambda device: 4 << 30)
    assert learner.fitting_tokens(Model()) == fits


def test_the_memory_of_this_machine_is_shared_by_its_processes(monkeypatch):
    from rewardlab.util.device import memory_of

    whole = memory_of(torch.device("cpu"))
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    assert whole > 1 << 30
    assert memory_of(torch.device("cpu")) == whole // 4


def test_trl_trains_through_the_same_call_a_name_or_a_model(policy, tmp_path):
    pytest.importorskip("trl", reason="the TRL engine needs pip install 'rewardlab[trl]'")
    policy.save(tmp_path / "start")
    recipe = build("grpo", {"n": 2, "problems": 2}).but(reward=length_penalty())
    trl = {"engine": "trl", "engine_options": {"gradient_checkpointing": False}, **SMALL, "steps": 1}
    named = train(recipe, str(tmp_path / "start"), own_task(), out=tmp_path / "named", **trl)
    made = train(recipe, policy, own_task(), **trl)
    assert made.out.parts == ("runs", "grpo-mine-trl-s0")
    assert [line["step"] for line in read_metrics(named.out)] == [0, 1]
    assert named.summary["updates"] > 0
    assert timeless(named.out) == timeless(made.out)
    config = json.loads((named.out / "config.json").read_text())
    assert (config["engine"], config["engine_options"], config["max_new"]) == ("trl", trl["engine_options"], 6)
    assert "trl" in config["versions"]
    with pytest.raises(RewardlabError, match="was trained through TRL and cannot be resumed"):
        rewardlab.resume(named.out)


def test_trl_says_what_it_cannot_carry_and_leaves_no_folder(policy, tmp_path):
    pytest.importorskip("trl", reason="the TRL engine needs pip install 'rewardlab[trl]'")
    with pytest.raises(RewardlabError, match="majority_vote selects answers and trains nothing"):
        train("majority_vote", policy, own_task(), out=tmp_path / "run", engine="trl")
    assert not (tmp_path / "run").exists()


def timeless(folder):
    return [{k: v for k, v in line.items() if not k.startswith("seconds")} for line in read_metrics(folder)]


def test_columns_are_for_problems_in_a_file(policy):
    with pytest.raises(RewardlabError, match="prompt_column: only for problems in a file, but the task mine was made in Python"):
        train("grpo", policy, own_task(), prompt_column="q")


def test_a_task_without_problems_to_measure_on_is_refused_before_a_policy_is_loaded():
    """A policy may take minutes to load: one that does not exist shows that it was not looked for."""
    task = Task("mine", [Problem((), "1")], (), "exact_match")
    with pytest.raises(RewardlabError, match="the task mine has no problems to measure on"):
        rewardlab.evaluate("no/such/policy", task)
