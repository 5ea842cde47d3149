"""A run folder from Python: one run at a time, changed rewards, runs that are extended, and disks that are too small."""

import json
import shutil
import threading
from dataclasses import replace

import pytest
import torch

import rewardlab
from rewardlab import RewardlabError, Task, ask, build
from rewardlab.api import machine as space
from rewardlab.checks.runs import drop_weights
from rewardlab.models.embedded import untrained
from rewardlab.models.load import load_policy
from rewardlab.rewards.length import length_penalty
from rewardlab.rewards.reward import reward
from rewardlab.rewards.user.external import from_file
from rewardlab.runs.folder import check_new_folder
from rewardlab.runs.metrics import read_metrics
from rewardlab.runs.record import Recorder
from rewardlab.runs.sources import fingerprints

SMALL = {"max_new": 6, "eval_problems": 2, "eval_every": 2, "checkpoint_every": 1, "device": "cpu"}
ENTERED, GO_ON = threading.Event(), threading.Event()


@reward
def waiting(trajectory, run) -> float:
    ENTERED.set()
    assert GO_ON.wait(60)
    return trajectory.reply.count(" ")


@reward
def letters(trajectory) -> float:
    return len(trajectory.reply) % 7


@pytest.fixture(scope="module")
def policy():
    return untrained()


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def own_task():
    return Task("mine", [ask(f"Say {i}", i) for i in range(3)], [ask("Say 9", 9)], "exact_match", max_new=6)


def go(policy, out, recipe=None, **settings):
    recipe = recipe or build("grpo", {"n": 2, "problems": 2, "lr": 0.01}).but(reward=length_penalty())
    return rewardlab.train(recipe, policy.copy("policy"), own_task(), out=out, **SMALL | {"steps": 2} | settings)


def test_a_second_run_into_a_folder_in_use_is_refused_and_the_first_goes_on(policy, tmp_path):
    recipe = build("grpo", {"n": 2, "problems": 1}).but(reward=waiting())
    first = threading.Thread(target=go, args=(policy, "run", recipe), daemon=True)
    first.start()
    assert ENTERED.wait(60)
    with pytest.raises(RewardlabError, match=r"run is in use: this process trains there.*another folder \(--out, in Python out=\)"):
        go(policy, "run")
    with pytest.raises(RewardlabError, match="run is in use"):
        rewardlab.resume("run", own_task(), policy.copy("policy"))
    GO_ON.set()
    first.join(60)
    assert [line["step"] for line in read_metrics(tmp_path / "run")] == [0, 1, 2]
    assert not (tmp_path / "run" / ".lock").exists()


def test_files_are_known_wherever_they_sit_in_a_recipe(policy, tmp_path):
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.py").write_text(f"def {name}(completion): return len(completion)\n")
    of = {name: from_file(path=str(tmp_path / f"{name}.py"), function=name) for name in ("a", "b", "c")}
    recipe = build("ppo", {"n": 2, "problems": 2})
    critic = recipe.also[0]
    recipe = recipe.but(
        reward=0.5 * (length_penalty() + of["a"]) >> of["b"],
        also=(replace(critic, recipe=critic.recipe.but(reward=of["c"])),),
    )
    go(policy, "run", recipe)
    document = json.loads((tmp_path / "run" / "config.json").read_text())
    assert list(document["files"]) == [str(tmp_path / f"{name}.py") for name in ("a", "b", "c")]
    for name in ("a", "c"):
        (tmp_path / f"{name}.py").write_text(f"def {name}(completion): return 0.0\n")
    (tmp_path / "b.py").unlink()
    with pytest.raises(RewardlabError) as refused:
        rewardlab.resume("run", own_task(), policy.copy("policy"), steps=3)
    assert all(f"{tmp_path}/{name}.py: modified" in str(refused.value) for name in ("a", "c"))
    assert f"{tmp_path}/b.py: it is gone" in str(refused.value)
    with pytest.raises(RewardlabError, match=f"there is no file {tmp_path}/b.py"):
        rewardlab.resume("run", own_task(), policy.copy("policy"), steps=3, reward_changed=True)
    # nothing was touched by being refused
    assert (tmp_path / "run" / "summary.json").exists()
    del document["files"]
    (tmp_path / "run" / "config.json").write_text(json.dumps(document))
    (tmp_path / "b.py").write_text("def b(completion): return 1.0\n")
    assert rewardlab.resume("run", own_task(), policy.copy("policy"), steps=3).summary["steps"] == 3


def test_the_files_of_tools_and_graphs_are_among_them(tmp_path):
    (tmp_path / "graph.tsv").write_text("Emma\tby\tJane Austen\n")
    recipe = build("grpo", {"env": f"knowledge_graph(graph='{tmp_path}/graph.tsv')"})
    assert list(fingerprints(recipe)) == [str(tmp_path / "graph.tsv")]
    for name in ("a", "b"):
        (tmp_path / f"{name}.py").write_text(f'def {name}() -> str:\n    """Tell."""\n    return "1"\n')
    recipe = build("grpo", {"tools": f"{tmp_path}/a.py:a,{tmp_path}/b.py:b"})
    assert list(fingerprints(recipe)) == [str(tmp_path / "a.py"), str(tmp_path / "b.py")]


def test_rows_that_have_changed_are_refused_as_a_reward_is(policy, tmp_path):
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps({"prompt": f"Say {i}", "answer": i}) + "\n" for i in range(20)))
    rewardlab.train("grpo", policy.copy("policy"), str(rows), out="run", steps=1, settings={"n": 2, "problems": 2}, **SMALL)
    rows.write_text(rows.read_text().replace("Say 7", "Say seven"))
    with pytest.raises(RewardlabError, match=r"rows, rewards.*rows[.]jsonl: modified .*--reward-changed"):
        rewardlab.resume("run", model=policy.copy("policy"), steps=2)
    assert rewardlab.resume("run", model=policy.copy("policy"), steps=2, reward_changed=True).summary["steps"] == 2


def test_a_corpus_that_has_changed_is_refused_as_a_reward_is(policy, tmp_path, monkeypatch):
    monkeypatch.setenv("REWARDLAB_CACHE", str(tmp_path / "cache"))
    (tmp_path / "docs.jsonl").write_text('{"text": "Emma is a novel."}\n')
    embedded = build("grpo", {"corpus": f"embed:{tmp_path}/docs.jsonl#ngrams"})
    assert list(fingerprints(embedded)) == [str(tmp_path / "docs.jsonl")]
    go(policy, "run", build("grpo", {"corpus": f"{tmp_path}/docs.jsonl", "n": 2, "problems": 1}))
    (tmp_path / "docs.jsonl").write_text('{"text": "Emma is no novel."}\n')
    with pytest.raises(RewardlabError, match=r"tools, corpus or methods .*docs[.]jsonl: modified .*--reward-changed"):
        rewardlab.resume("run", own_task(), policy.copy("policy"), steps=3)


def test_a_method_of_ones_own_is_among_the_files(policy, tmp_path, monkeypatch):
    file = tmp_path / "methods" / "local" / "lengthy.py"
    file.parent.mkdir(parents=True)
    file.write_text(
        '"""Lengthy: pays length."""\nfrom rewardlab.rewards.reward import reward\n'
        "from rewardlab.methods.baselines.grpo import grpo\n\n"
        "@reward\ndef length(trajectory):\n    return len(trajectory.reply)\n\n"
        "def lengthy(base=None):\n    return (base or grpo(n=2)).but(reward=length(), problems=1)\n\nclaim = None\n"
    )
    monkeypatch.setenv("REWARDLAB_METHODS", str(tmp_path / "methods"))
    go(policy, "run", build("lengthy"))
    assert list(json.loads((tmp_path / "run" / "config.json").read_text())["files"]) == [str(file)]


def test_a_run_is_extended_and_never_shortened(policy, tmp_path):
    whole = go(policy, "whole", steps=4)
    go(policy, "run", steps=2)

    def resume(**changes):
        return rewardlab.resume("run", own_task(), policy.copy("policy"), **changes)

    assert resume(steps=2).summary["steps"] == 2
    with pytest.raises(RewardlabError, match="run has done 2 steps already: steps cannot be 1"):
        resume(steps=1)
    with pytest.raises(RewardlabError, match=r"run has done \d+ tokens already: budget cannot be 3"):
        resume(budget=3)
    with pytest.raises(RewardlabError, match="seed cannot change when a run is resumed; these can: steps, budget"):
        resume(seed=1)
    with pytest.raises(RewardlabError, match="steps must be a whole number above 0, not 0"):
        resume(steps=0)
    with pytest.raises(RewardlabError, match=r"run is over after 2 of 2 steps and .*every limit that it has must be higher"):
        resume(budget=10**6)
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    with pytest.raises(RewardlabError, match=r"rewardlab.resume\(folder, model="):
        rewardlab.resume("run", own_task(), steps=4)
    # a run that cannot go on has lost nothing by the attempt
    assert {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()} == before
    assert resume(steps=4, checkpoint_every=3).summary["steps"] == 4
    weights = [(tmp_path / name / "model" / "model.safetensors").read_bytes() for name in ("run", "whole")]
    assert weights[0] == weights[1]
    assert timeless(tmp_path / "run") == timeless(whole.out)
    document = json.loads((tmp_path / "run" / "config.json").read_text())
    assert document["changes"][0]["settings"] == {"steps": [2, 4], "checkpoint_every": [1, 3]}
    shutil.rmtree(tmp_path / "run" / "checkpoints")
    with pytest.raises(RewardlabError, match="run has no checkpoint left to resume from"):
        resume(steps=6)
    assert len(timeless(tmp_path / "run")) == 5


def test_a_run_ended_by_its_budget_goes_on_with_a_larger_one(policy, tmp_path):
    used = go(policy, "run", steps=None, budget=60).summary
    assert used["tokens"] >= 60
    more = rewardlab.resume("run", own_task(), policy.copy("policy"), budget=2 * used["tokens"]).summary
    assert more["tokens"] >= 2 * used["tokens"]
    assert more["steps"] > used["steps"]


def timeless(folder):
    return [{k: v for k, v in line.items() if not k.startswith("seconds/")} for line in read_metrics(folder)]


def test_a_failure_says_how_to_resume_in_a_traceback_too(policy, tmp_path):
    (tmp_path / "mine.py").write_text("def f(completion, run): return 1 / (1 - run.step)\n")
    recipe = build("grpo", {"n": 2, "problems": 1}).but(reward=from_file(path=str(tmp_path / "mine.py"), function="f"))
    with pytest.raises(RewardlabError) as failed:
        go(policy, "run", recipe)
    assert failed.value.__notes__ == [
        "the run is saved up to step 1; resume with: rewardlab.resume('run', task=..., model=...) "
        "(if you edit mine.py: with reward_changed=True)"
    ]


@pytest.mark.parametrize("method", ["grpo", "ppo"])
def test_the_plan_knows_what_the_models_take_on_disk(method, policy, tmp_path):
    settings = {"n": 2, "problems": 2, **({"beta": 0.1} if method == "grpo" else {})}
    arguments = {"settings": settings, **SMALL, "steps": 3}
    plan = rewardlab.plan(method, policy, own_task(), **arguments)
    out = rewardlab.train(method, policy.copy("policy"), own_task(), out="run", **arguments).out
    written = sum(path.stat().st_size for path in out.rglob("*.safetensors"))
    assert plan["disk_bytes"] <= written <= 1.05 * plan["disk_bytes"]
    assert plan["disk_free_bytes"] > 2**20


def test_models_of_every_nth_step_are_all_kept_also_when_a_run_is_resumed(policy, tmp_path):
    arguments = {"settings": {"n": 2, "problems": 2, "lr": 1e-2}, **SMALL, "save_every": 2}
    kept, two = (rewardlab.plan("grpo", policy, own_task(), **arguments | {"save_every": every}, steps=4) for every in (2, 0))
    assert kept["disk_bytes"] - two["disk_bytes"] == 2 * sum(4 * p.numel() for p in policy.parameters())
    recipe = build("grpo", arguments.pop("settings")).but(reward=letters())
    rewardlab.train(recipe, policy.copy("policy"), own_task(), out="run", **arguments, steps=3)
    assert [path.name for path in sorted((tmp_path / "run" / "models").iterdir())] == ["step-000002"]
    rewardlab.resume("run", task=own_task(), model=policy.copy("policy"), steps=4)
    assert [path.name for path in sorted((tmp_path / "run" / "models").iterdir())] == ["step-000002", "step-000004"]
    last, first = (load_policy(str(tmp_path / "run" / name), "cpu") for name in ("models/step-000004", "models/step-000002"))
    weights = load_policy(str(tmp_path / "run" / "model"), "cpu").state()
    assert all(torch.equal(value, weights[name]) for name, value in last.state().items())
    assert any(not torch.equal(value, weights[name]) for name, value in first.state().items())
    rewardlab.resume("run", task=own_task(), model=policy.copy("policy"), steps=6, save_every=0)
    assert len(list((tmp_path / "run" / "models").iterdir())) == 2
    # a run that was killed after it kept a model, and before its checkpoint, makes that step again
    Recorder(tmp_path / "run").rewind(3)
    assert [path.name for path in (tmp_path / "run" / "models").iterdir()] == ["step-000002"]
    drop_weights(tmp_path / "run")
    assert not (tmp_path / "run" / "models").exists()


def test_what_surely_does_not_fit_is_refused(tmp_path):
    space.check_disk(tmp_path / "a" / "b", 1000)
    with pytest.raises(
        RewardlabError, match=r"a/b will hold at least 1048576.0 GiB of checkpoints and models, and only .* are free"
    ):
        space.check_disk(tmp_path / "a" / "b", 2**50)


@pytest.mark.parametrize("name", ["metrics.jsonl", "report.html", "best/model.safetensors", "thesis.md", "log.txt/part"])
def test_a_folder_with_files_that_are_of_no_run_is_refused_and_left_as_it_is(name, policy, tmp_path):
    (file := tmp_path / "mine" / name).parent.mkdir(parents=True)
    file.write_text("precious")
    for attempt in (go, lambda policy, out: check_new_folder(out)):
        with pytest.raises(RewardlabError, match=rf"mine is not empty, and holds no run: there is {name.split('/')[0]}, .*--out"):
            attempt(policy, "mine")
    assert [path for path in (tmp_path / "mine").rglob("*") if path.is_file()] == [file]
    assert file.read_text() == "precious"


def test_a_run_begins_beside_what_a_shell_redirects_there_and_hidden_files(policy, tmp_path):
    for name in ("log.txt", "slurm-7.out", ".gitignore"):
        (tmp_path / "run").mkdir(exist_ok=True)
        (tmp_path / "run" / name).write_text("printed")
    check_new_folder("run")
    assert go(policy, "run", steps=1).summary["steps"] == 1
    assert (tmp_path / "run" / "log.txt").read_text() == "printed"


def test_a_folder_is_looked_at_before_a_run_without_making_it(policy, tmp_path):
    check_new_folder("new/deep")
    assert not (tmp_path / "new").exists()
    (tmp_path / "rows.jsonl").write_text("{}")
    for out, why in (("rows.jsonl", "this exists already"), ("rows.jsonl/run", "a part of this path is a file")):
        for attempt in (go, lambda policy, out: check_new_folder(out)):
            with pytest.raises(RewardlabError, match=f"cannot write {out}: {why}"):
                attempt(policy, out)
    with pytest.raises(RewardlabError, match="cannot write /proc/mine"):
        check_new_folder("/proc/mine")
