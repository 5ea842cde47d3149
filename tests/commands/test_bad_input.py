"""Whatever is wrong is said in one clear line, with a non-zero exit code, and nothing is lost."""

import hashlib
import json
import os
import subprocess
from pathlib import Path

import pytest
from safetensors.torch import load_file

from rewardlab.commands import cli
from rewardlab.models.embedded import untrained
from rewardlab.runs.metrics import read_metrics

METHODS = {
    "diverging": '''"""Diverging: a loss that is infinite from the third step on."""
import torch
from rewardlab.core import objective
from rewardlab.methods.baselines.grpo import grpo

@objective(unit="token")
def exploding(out, batch, run):
    bad = run.step >= 2 and torch.arange(len(batch)) == 2
    return out.logprobs * 0 + torch.where(torch.as_tensor(bad), torch.inf, 0.0).view(-1, 1)

def diverging(base=None):
    base = base or grpo(n=4)
    return base.but(objective=base.objective + exploding())

claim = None
''',
    "pairwise": '''"""Pairwise: a loss of whole groups that is not a number."""
from rewardlab.core import objective
from rewardlab.methods.baselines.grpo import grpo

@objective(unit="group")
def undefined(out, batch, run):
    return out.logprobs.sum() * batch.group.unique() / 0

def pairwise(base=None):
    return (base or grpo(n=4)).but(objective=undefined(), weighting=None)

claim = None
''',
    "blind": '''"""Blind: a measure that gives no number."""
from rewardlab.core import measure
from rewardlab.methods.baselines.grpo import grpo

@measure
def nothing(problems, run):
    return {"nothing": float("nan")}

def blind(base=None):
    return (base or grpo(n=4)).but(measure=nothing())

claim = None
''',
    "hoarding": '''"""Hoarding: a memory that cannot be saved."""
from rewardlab.rewards.reward import reward
from rewardlab.methods.baselines.grpo import grpo

@reward
def hoard(trajectory, run):
    run.memory.setdefault("seen", {})["all"] = {1, 2}
    return len(trajectory.reply)

def hoarding(base=None):
    return (base or grpo(n=4)).but(reward=hoard())

claim = None
''',
}
REWARDS = """import math

calls = 0

def spaces(completion):
    return completion.count(" ")

def sometimes_nan(completion):
    global calls
    calls += 1
    return math.nan if calls > 10 else len(completion)

def infinite(completions):
    return [math.inf for _ in completions]

def raises(completion):
    return 1 / len(completion.replace(completion, ""))

def silent(completion):
    return None

def constant(completion):
    return 0.25

def text(completion):
    return "good"

def short(completions):
    return [1.0]
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with a model, rewards, methods and problems."""
    folder = tmp_path_factory.mktemp("bad")
    untrained().save(folder / "model")
    (folder / "methods" / "broken").mkdir(parents=True)
    for name, text in METHODS.items():
        (folder / "methods" / "broken" / f"{name}.py").write_text(text)
    (folder / "rewards.py").write_text(REWARDS)
    write(folder / "good.jsonl", [{"prompt": f"Say {n}", "answer": n} for n in range(20)])
    return folder


@pytest.fixture
def say(home, tmp_path, monkeypatch, capsys):
    """Run a command line that must fail; its one line on stderr. {home}, {out} and {data} stand for paths."""
    monkeypatch.setenv("REWARDLAB_METHODS", str(home / "methods"))
    monkeypatch.chdir(tmp_path)

    def run(line, code=2):
        argv = [word.format(home=home, out=tmp_path / "out", data=home / "good.jsonl") for word in line.split()]
        # a line may give a flag of its beginning anew: the last counts, and a command takes it once
        for i in [i for i, word in enumerate(argv) if word[:2] == "--" and word in argv[i + 1 :]][::-1]:
            del argv[i : i + 2]
        assert cli.main(argv) == code
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        told = [text for text in said.err.splitlines() if text.startswith("rewardlab: ")]
        assert said.err.splitlines()[-1:] == told
        assert len(told[0]) < 600
        return told[0]

    return run


def write(path: Path, rows):
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))


OFTEN = "--problems 2 --max-new 6 --eval-problems 4 --checkpoint-every 1"
TRAIN = f"train grpo --n 4 {OFTEN} --model {{home}}/model --out {{out}}"
WITH = TRAIN + " --task {data} --steps 6 --reward {home}/rewards.py:"
METHOD = f"train METHOD {OFTEN} --task {{data}} --steps 6 --model {{home}}/model --out {{out}}"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (TRAIN + " --task aritmetic", "unknown task 'aritmetic'; did you mean arithmetic"),
        (TRAIN + " --task arithmetic:dificulty=3", "unknown option of the task arithmetic 'dificulty'; did you mean difficulty?"),
        (TRAIN + " --task arithmetic:difficulty=0", "difficulty is a number of steps from 1 up"),
        (TRAIN + " --task {home}/god.jsonl", "there is no file or folder {home}/god.jsonl; did you mean good.jsonl?"),
        (
            TRAIN + " --task {home}/rewards.py",
            "cannot read {home}/rewards.py: problems are in a .jsonl, .json, .csv, .tsv or .parquet file",
        ),
        (TRAIN + " --task {home}/methods", "{home}/methods holds neither train.jsonl (or .json"),
        (TRAIN.replace("grpo", "gpro") + " --task arithmetic", "unknown method 'gpro'; did you mean"),
        (TRAIN + " --task arithmetic --bete 1", "unknown flag of grpo '--bete'; did you mean --beta"),
        (TRAIN + " --task arithmetic --model embeded", "unknown model 'embeded'; did you mean embedded or recorded?"),
        (TRAIN + " --task arithmetic --model {home}/methods", "{home}/methods has no config.json: it is neither"),
        (TRAIN + " --task arithmetic --max-new 600", "exceed the model's context of 512"),
        (WITH + "spases", "unknown function in {home}/rewards.py: 'spases'; did you mean spaces"),
        ("train --resume {home}/model", "{home}/model is a model checkpoint, not a run folder"),
        ("train --resume {home}/methods", "{home}/methods is not a run folder"),
        ("export {home}/methods {out}", "{home}/methods is not a run folder"),
        ("eval {home}/nothing --task arithmetic", "there is no folder {home}/nothing"),
    ],
)
def test_what_does_not_exist_is_named(line, message, say, home, tmp_path):
    assert message.format(home=home) in say(line)
    assert not (tmp_path / "out").exists() or "exceed" in message


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "holds no problems"),
        ([{"prompt": "a", "answer": 1}, '{"prompt": "b", '], "line 2: broken JSON"),
        ([{"prompt": "a", "answer": 1}, "", "[1, 2]"], "line 3: expected an object with columns, found list"),
        ([{"prompt": "a", "answer": 1}, {"question": "b", "answer": 2}], "line 2: no column 'prompt'"),
        ([{"promt": "a", "answer": 1}], "line 1: no column 'prompt'; did you mean 'promt' (--prompt-column promt)?"),
        (
            [{"prompt": "a", "answer": 1}, {"prompt": "b", "answer": ""}],
            "line 2: the problem has no answer (column 'answer' is '')",
        ),
        ([{"prompt": "a", "answer": None}], "line 1: the problem has no answer"),
        ([{"prompt": "a"}, {"prompt": "b"}], "there is no column 'answer'"),
        ([{"prompt": 7, "answer": 1}], "line 1: a prompt is a text or a list of"),
        ([{"prompt": " ", "answer": 1}], "line 1: the prompt is empty"),
        ([{"prompt": "a", "answer": 1}], "at least two different prompts are needed"),
        ([{"prompt": "a " * 600 + str(n), "answer": 1} for n in range(9)], "exceed the model's context of 512: 'a a a"),
    ],
)
def test_problems_that_cannot_be_used_are_refused_with_their_line(rows, message, say, tmp_path):
    write(tmp_path / "mine.jsonl", rows)
    said = say(TRAIN + f" --steps 2 --task {tmp_path}/mine.jsonl")
    assert message in said
    assert "mine.jsonl" in said or "context" in said


@pytest.mark.parametrize(
    ("reward", "message", "steps"),
    [
        ("sometimes_nan", "the reward sometimes_nan of {home}/rewards.py returned nan (rollout ", 1),
        ("infinite", "returned inf (rollout 0 of group 0, reply ", 0),
        (
            "raises",
            "the reward raises of {home}/rewards.py, line 17: ZeroDivisionError: division by zero (rollout 0 of",
            0,
        ),
        ("silent", "8 of 8 rollouts got no verdict at step 1", 0),
        ("text", "the reward text of {home}/rewards.py returned 'good', not a number, a bool, None", 0),
        ("short", "the reward short of {home}/rewards.py returned 1 rewards for 8 rollouts", 0),
    ],
)
def test_a_reward_that_fails_stops_the_run_before_it_trains(reward, message, steps, say, home, tmp_path):
    # without held-out problems: such a reward would fail on them first
    assert message.format(home=home) in say(f"{WITH}{reward} --eval-problems 0")
    assert_kept(tmp_path / "out", steps)


def assert_kept(out, step):
    """The run stands as it was after `step`: its last checkpoint loads, and nothing later was written."""
    assert [line["step"] for line in read_metrics(out)] == list(range(step + 1))
    kept = sorted((out / "checkpoints").glob("step-*"))[-1]
    assert kept.name == f"step-{step:06d}"
    assert json.loads((kept / "state.json").read_text())["step"] == step
    assert all(bool(x.isfinite().all()) for x in load_file(kept / "policy.safetensors").values())
    assert not (out / "summary.json").exists()
    assert not list(out.rglob(".*"))


def test_a_run_goes_on_once_its_reward_is_mended(say, home, tmp_path):
    """A reward that is another one than before is not used without a word."""
    mine, out = tmp_path / "mine.py", tmp_path / "out"
    mine.write_text("def size(completion, run): return len(completion) / (2 - run.step)\n")
    said = say(TRAIN + f" --task {{data}} --steps 4 --reward {mine}:size")
    assert "ZeroDivisionError" in said
    hint = (
        f"the run is saved up to step 2; resume with: rewardlab train --resume {out} (if you edit mine.py: with --reward-changed)"
    )
    assert said.endswith(hint)
    assert_kept(out, 2)
    before = json.loads((out / "config.json").read_text())
    mine.write_text("def size(completion, run): return len(completion)\n")
    said = say(f"train --resume {out}")
    assert f"has changed since the run began ({mine}: modified 20" in said
    assert "or give --reward-changed" in said
    assert json.loads((out / "config.json").read_text()) == before
    assert cli.main(["train", "--resume", str(out), "--reward-changed"]) == 0
    assert [line["step"] for line in read_metrics(out)] == [0, 1, 2, 3, 4]
    after = json.loads((out / "config.json").read_text())
    old, new = before["files"][str(mine)]["sha256"], after["files"][str(mine)]["sha256"]
    assert new == hashlib.sha256(mine.read_bytes()).hexdigest() != old
    assert [(c["after_step"], c["files"]) for c in after["changes"]] == [(2, {str(mine): [old, new]})]


def test_a_run_that_trained_no_step_does_not_block_its_folder(say, tmp_path, home):
    mine, out = tmp_path / "mine.py", tmp_path / "out"
    mine.write_text("def size(completion): return 1 / 0\n")
    again = TRAIN + f" --task {{data}} --steps 2 --reward {mine}:size"
    said = say(again)
    assert said.endswith("no step is done yet: once that is mended, give the same command again")
    assert "--resume" not in said
    (out / "notes.txt").write_text("mine")
    mine.write_text("def size(completion): return len(completion)\n")
    argv = [w.format(home=home, out=out, data=home / "good.jsonl") for w in again.split()]
    assert cli.main(argv) == 0
    assert [line["step"] for line in read_metrics(out)] == [0, 1, 2]
    assert (out / "notes.txt").read_text() == "mine"
    assert f"{out} already holds a run, which is finished; choose another folder (--out, in Python out=), or extend" in say(again)
    (out / "summary.json").unlink()
    assert f"{out} already holds a run of 2 steps; resume it with rewardlab train --resume {out} (in Python" in say(again)
    assert [line["step"] for line in read_metrics(out)] == [0, 1, 2]


def test_a_reward_that_never_varies_stops_the_run(say, tmp_path):
    said = say(WITH.replace("--steps 6", "--steps 40") + "constant")
    assert "every rollout of the first 30 steps earned 0.25: there is nothing to learn from" in said
    assert_kept(tmp_path / "out", 29)


@pytest.mark.parametrize(
    ("method", "message", "steps"),
    [
        ("diverging", "the loss term 'exploding' is not finite at step 3: loss of the rollout ", 2),
        ("pairwise", "the loss term 'undefined' is not finite at step 1: loss of the rollout ", 0),
    ],
)
def test_a_loss_that_is_not_finite_stops_the_run_and_keeps_the_last_good_policy(method, message, steps, say, tmp_path):
    said = say(METHOD.replace("METHOD", method) + " --reward {home}/rewards.py:spaces")
    assert message in said
    assert "of problem 'Say " in said
    assert_kept(tmp_path / "out", steps)


def test_a_measure_that_gives_no_number_is_refused(say):
    assert "nothing() gave nothing = nan at step 0" in say(
        (WITH + "spaces").replace("train grpo", "train blind").replace("--n 4", "")
    )


def test_a_memory_that_cannot_be_saved_is_named(say):
    said = say(METHOD.replace("METHOD", "hoarding"))
    assert "memory['seen']['all'] holds a set, which cannot be saved" in said


def test_folders_that_are_taken_are_refused(say, home, tmp_path):
    assert cli.main([w.format(home=home, out=tmp_path / "out", data=home / "good.jsonl") for w in (WITH + "spaces").split()]) == 0
    assert f"{tmp_path}/out already holds a run, which is finished" in say(WITH + "spaces")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    assert f"{tmp_path}/full exists and is not empty" in say(f"export {{out}} {tmp_path}/full")
    assert f"{tmp_path}/full/x: a part of this path is a file" in say(f"export {{out}} {tmp_path}/full/x")
    assert os.listdir(tmp_path / "full") == ["x"]


@pytest.fixture
def small_disk(tmp_path):
    """A real file system of 8 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", folder], capture_output=True).returncode:
        pytest.skip("mounting a small file system needs root")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def ballast(disk, free):
    """Leave so many bytes free on the disk."""
    (disk / "ballast").unlink(missing_ok=True)
    stat = os.statvfs(disk)
    (disk / "ballast").write_bytes(b"0" * (stat.f_bavail * stat.f_frsize - free))


FILLING = """import os

def spaces(completion, run):
    if run.step == {step} and not os.path.exists("{disk}/late"):
        stat = os.statvfs("{disk}")
        with open("{disk}/late", "wb") as f:
            f.write(b"0" * (stat.f_bavail * stat.f_frsize - {free}))
    return completion.count(" ")
"""
SAVED = "the run is saved up to step {}; resume with: rewardlab train --resume {}"


@pytest.mark.parametrize(("step", "free", "what", "saved"), [(0, 100_000, "best", None), (3, 100_000, "checkpoints", 3)])
def test_a_disk_that_fills_while_training_is_one_line_and_the_run_goes_on(step, free, what, saved, small_disk, say, tmp_path):
    """In the first step, when no step is saved, and in a later one."""
    run, mine = small_disk / "run", tmp_path / "mine.py"
    mine.write_text(FILLING.format(step=step, disk=small_disk, free=free))
    said = say(WITH.replace("{out}", str(run)).replace("{home}/rewards.py:", f"{mine}:") + "spaces")
    state = SAVED.format(saved, run) if saved else "no step is done yet: once that is mended, give the same command again"
    # of checkpoints, which one
    assert f"cannot write {run}/{what}" in said
    assert f": the disk is full; free some space; {state}" in said
    assert not list(run.rglob(".*"))
    for kept in (run / "checkpoints").glob("step-*"):
        assert load_file(kept / "policy.safetensors")
        assert bool(load_file(kept / "policy.optimiser.safetensors")) == (kept.name != "step-000000")
    # emptied, not removed: the reward would fill the disk again
    (small_disk / "late").write_bytes(b"")
    assert cli.main(["train", "--resume", str(run)]) == 0
    assert [line["step"] for line in read_metrics(run)] == list(range(7))


def test_a_report_that_does_not_fit_is_written_on_resume(small_disk, say, capsys):
    ballast(small_disk, 1_700_000)
    run = small_disk / "run"
    said = say(WITH.replace("{out}", str(run)) + "spaces")
    assert f"cannot write {run}/report.html: the disk is full; free some space; {SAVED.format(6, run)}" in said
    (small_disk / "ballast").unlink()
    assert cli.main(["train", "--resume", str(run)]) == 0
    assert (run / "report.html").exists()
    assert "report.html" in capsys.readouterr().out


def test_a_disk_that_is_surely_too_small_is_refused_with_numbers_before_anything_is_written(small_disk, say):
    ballast(small_disk, 300_000)
    said = say(WITH.replace("{out}", f"{small_disk}/run") + "spaces")
    assert f"{small_disk}/run will hold at least 80" in said
    assert "KiB of checkpoints and models, and only 288.0 KiB are free there; free some space, or choose another" in said
    assert os.listdir(small_disk) == ["ballast"]


def test_a_place_that_cannot_be_written_to_is_refused_before_the_model_is_loaded(small_disk, say, home, monkeypatch):
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    monkeypatch.setattr("rewardlab.api.inputs.load_policy", not_reached)
    line = WITH + "spaces"
    for out, reason in (
        (f"{small_disk}/run", "the file system is read-only; choose another place"),
        (f"{home}/good.jsonl", "this exists already; choose another name"),
        (f"{home}/good.jsonl/run", "a part of this path is a file, not a folder; choose another place"),
    ):
        assert say(line.replace("{out}", out)) == f"rewardlab: cannot write {out}: {reason}"


def not_reached(*_, **__):
    raise AssertionError("a model was loaded")
