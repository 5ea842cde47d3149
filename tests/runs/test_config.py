"""One dataclass holds what a run is given: flags, Python, checks and config.json follow from it."""

import json
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

import rewardlab
from rewardlab import RewardlabError, RunConfig, registry
from rewardlab.commands import cli, train
from rewardlab.models.embedded import untrained
from rewardlab.runs.config import IN_PYTHON
from rewardlab.runs.metrics import read_metrics

WRONG = [
    ("steps", 0, "steps must be a whole number above 0, not 0"),
    ("steps", "many", "steps must be a whole number above 0, not 'many'"),
    ("steps", 2.5, "steps must be a whole number above 0, not 2.5"),
    ("budget", -1, "budget must be a whole number above 0, not -1"),
    ("seed", "x", "seed must be a whole number, not 'x'"),
    ("start", -1, "start must be a whole number from 0 up, not -1"),
    ("device", "gpu", "device must be auto, cpu, cuda or cuda:N, not 'gpu'"),
    ("dtype", "float16", "dtype must be auto, float32 or bfloat16, not 'float16'"),
    ("lora_rank", 0, "lora_rank must be a whole number above 0, not 0"),
    ("max_new", 0, "max_new must be a whole number above 0, not 0"),
    ("eval_every", -1, "eval_every must be a whole number from 0 up, not -1"),
    ("max_missing", 1.5, "max_missing must be a number from 0 to 1, not 1.5"),
    ("engine", "verl", "engine must be embedded or trl, not 'verl'"),
]
ACROSS = [
    ({"engine_options": {"bf16": True}}, "--trl bf16=true", "engine_options (--trl) are for TRL; give engine trl too"),
    ({"engine": "trl", "track": "wandb"}, "--engine trl --track wandb", "track is not for engine trl"),
    ({"engine": "trl", "save_every": 9}, "--engine trl --save-every 9", "save_every is not for engine trl"),
    ({"engine": "trl", "budget": 9}, "--engine trl --budget 9", "budget is not for engine trl"),
]
OLD = {
    "name": "run", "method": "grpo", "model": "given", "device": "auto", "dtype": "auto", "lora_rank": None, "track": [],
    "task": "arithmetic", "seed": 3, "steps": 2, "max_new": 6, "params": 853120, "formula": "rollout    independent()",
    "source": {"name": "arithmetic:difficulty=1,test_size=4", "options": {}},
    "settings": {
        "steps": 2, "seed": 3, "eval_every": 1, "eval_problems": 4, "checkpoint_every": 100, "record_every": 1,
        "micro_tokens": 16384, "max_missing": 0.5, "patience": 30, "budget": None, "start": 40,
    },
    "versions": {"rewardlab": "0.1.0"},
}  # fmt: skip
"""A config.json as versions before RunConfig wrote it, less the recipe."""


@pytest.mark.parametrize("field", fields(RunConfig), ids=lambda f: f.name)
def test_every_field_has_help_a_domain_and_a_flag(field):
    about = field.metadata
    assert about["help"]
    assert "%" not in about["help"]
    assert about["domain"].says
    assert (field.name in train.FIELDS) != bool(about["no_flag"])
    if field.default is not None:
        assert getattr(RunConfig(), field.name) == (field.default if isinstance(field.default, tuple | str | int | float) else {})


def test_help_names_every_flag(capsys):
    with pytest.raises(SystemExit):
        cli.main(["train", "--help"])
    said = capsys.readouterr().out
    flags = {f.metadata["flag"] or f"--{f.name.replace('_', '-')}" for f in fields(RunConfig) if not f.metadata["no_flag"]}
    assert flags <= set(re.findall(r"--[a-z-]+", said))


def test_no_flag_hides_a_setting_of_a_method():
    """A flag of `train` is never passed to the method: a method with a setting of that name could not be given it."""
    own = cli.parse(train, "train", ["grpo"]).own_flags
    taken = {name: {p.flag for p in registry.parameters(name)} & own.keys() for name in registry.methods()}
    assert {name: flags for name, flags in taken.items() if flags} == {}


@pytest.mark.parametrize(("name", "value", "message"), WRONG)
def test_python_and_the_command_line_say_the_same_of_a_wrong_value(name, value, message, capsys):
    with pytest.raises(RewardlabError) as told:
        rewardlab.train("grpo", **{name: value})
    assert str(told.value) == message
    about = next(f for f in fields(RunConfig) if f.name == name).metadata
    flag = about["flag"] or f"--{name.replace('_', '-')}"
    assert cli.main(["train", "grpo", "--task", "arithmetic", flag, str(value)]) == 2
    # each names the setting as it is written there
    assert capsys.readouterr().err == f"rewardlab: {message.replace(name, flag, 1)}\n"


@pytest.mark.parametrize(("changes", "line", "message"), ACROSS)
def test_fields_that_exclude_one_another_are_refused_by_name(changes, line, message, capsys):
    with pytest.raises(RewardlabError, match=re.escape(message)):
        RunConfig(**changes)
    assert cli.main(["train", "grpo", "--task", "arithmetic", *line.split()]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("value", [None, 3, ["wandb", 3]])
def test_trackers_are_names(value):
    with pytest.raises(RewardlabError, match="track must be names, or one text with commas between them, not"):
        RunConfig(track=value)


def test_a_name_that_is_no_field_is_refused_with_the_nearest():
    with pytest.raises(RewardlabError, match="unknown setting of a run 'stpes'; did you mean steps"):
        rewardlab.train("grpo", stpes=3)


def test_numbers_of_evaluate_and_answer_are_checked_alike(capsys):
    message = "problems must be a whole number above 0, not 0"
    with pytest.raises(RewardlabError, match=message):
        rewardlab.evaluate("embedded", "arithmetic", problems=0)
    with pytest.raises(RewardlabError, match=message):
        rewardlab.answer("best_of_n", problems=0)
    assert cli.main(["eval", "embedded", "--task", "arithmetic", "--problems", "0"]) == 2
    assert capsys.readouterr().err == f"rewardlab: --{message}\n"


def test_it_comes_back_from_json_as_it_was():
    config = RunConfig(
        task="mine.jsonl", prompt_column="q", model="hf:m", steps=7, seed=3, track=["tensorboard", "wandb"], max_missing=0.25
    )
    trl = RunConfig(engine="trl", engine_options={"bf16": True})
    for each in (config, trl, RunConfig(), RunConfig(budget=9).settled()):
        assert RunConfig.from_json(json.loads(json.dumps(each.to_json()))) == each
    assert "out" not in config.but(out="runs/x").to_json()
    assert RunConfig(track="a,b").track == ("a,b",)


def test_what_is_left_open_is_settled_when_the_run_begins():
    plain, budget = RunConfig(eval_every=3).settled(), RunConfig(budget=9).settled()
    assert (plain.steps, plain.record_every, plain.micro_tokens) == (100, 3, 16384)
    assert (budget.steps, budget.record_every) == (10**6, 10)
    assert RunConfig(steps=4, record_every=0, micro_tokens=600).settled() == RunConfig(steps=4, record_every=0, micro_tokens=600)


def test_an_old_config_is_read_field_by_field():
    config = RunConfig.from_json(OLD)
    assert config == RunConfig(
        method="grpo", task="arithmetic:difficulty=1,test_size=4", model=IN_PYTHON, max_new=6, seed=3, steps=2, start=40,
        eval_every=1, eval_problems=4, checkpoint_every=100, record_every=1, micro_tokens=16384,
    )  # fmt: skip
    old_trl = {**OLD, "engine": "trl", "grpo_config": {"use_cpu": True}}
    assert RunConfig.from_json(old_trl).engine_options == {"use_cpu": True}


def test_a_run_of_an_older_version_resumes(tmp_path):
    recipe = registry.build("grpo", {"n": 2, "problems": 1})
    (tmp_path / "config.json").write_text(json.dumps({**OLD, "recipe": recipe.to_json()}))
    model = untrained()
    done = rewardlab.resume(tmp_path, model=model.copy("policy"))
    same = rewardlab.train(
        recipe, model, "arithmetic:difficulty=1,test_size=4", out=tmp_path / "new", steps=2, seed=3, start=40, max_new=6,
        eval_every=1, eval_problems=4, checkpoint_every=100,
    )  # fmt: skip
    assert timeless(done.out) == timeless(same.out)
    assert (done.out / "report.html").exists()
    document = json.loads((same.out / "config.json").read_text())
    assert RunConfig.from_json(document) == RunConfig.from_json(OLD)
    assert {
        "name",
        "method",
        "model",
        "task",
        "seed",
        "steps",
        "source",
        "recipe",
        "formula",
        "params",
        "versions",
    } <= document.keys()


def timeless(folder: Path) -> list[dict]:
    return [{k: v for k, v in line.items() if not k.startswith("seconds/")} for line in read_metrics(folder)]


def test_a_config_may_be_given_whole_and_changed_by_name(tmp_path):
    config = RunConfig(model="untrained", task="arithmetic:difficulty=1,test_size=4", steps=9, max_new=6, eval_problems=2)
    settings = {"n": 2, "problems": 1}
    done = rewardlab.train("grpo", config=config, settings=settings, steps=1, out=tmp_path / "run")
    assert done.summary["steps"] == 1
    plan = rewardlab.plan("grpo", config=config, settings=settings)
    assert plan["rows_per_step"] == 2


def test_flags_are_made_without_torch():
    code = (
        "import sys, argparse; from rewardlab.commands import train, eval, answer, compare, parity, audit\n"
        "for c in (train, eval, answer, compare, parity, audit): c.flags(argparse.ArgumentParser())\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
