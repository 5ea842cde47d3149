"""Kill -9 at any moment, resume, and the rest of the run is bit-equal to one that was never stopped.

Training runs in processes forked from a server that has PyTorch loaded. Such a process watches what it does to its run folder
and can kill itself right before a given deed, so every moment between two writes is within reach.
"""

import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from rewardlab.models.embedded import untrained
from rewardlab.runs.folder import checkpointed
from rewardlab.runs.metrics import read_metrics

REMEMBER = '''"""Remember: rollouts that take two steps, and rewards against what a problem earned before."""

import os
import signal

import numpy as np

from rewardlab.core import Sampling, Trajectory, loop, measure, rollout

from rewardlab.rewards.reward import reward
from rewardlab.methods.baselines.grpo import grpo


def digits(t):
    return sum(c.isdigit() for c in t.reply) / max(1, len(t.reply))


def fails(where, run):
    """In the fifth step, or the evaluation before it, as long as the file `where` lies beside the methods."""
    if run.step == 4 and os.path.exists(os.environ["REWARDLAB_METHODS"] + "/" + where):
        if "SIGTERM" in where:
            os.kill(os.getpid(), signal.SIGTERM)
        else:
            raise RuntimeError(where)


@reward(over="group")
def novelty(group, run, *, decay=0.5):
    seen = run.memory.setdefault("seen", {})
    key, values = group[0].problem.key, [digits(t) for t in group]
    before = seen.get(key, 0.0)
    seen[key] = decay * before + (1 - decay) * sum(values) / len(values)
    fails("broken reward", run)
    return [v - before for v in values]


@rollout
def in_halves(problems, run, *, n=4):
    half = Sampling(run.max_new // 2)
    asked = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    begun = run.policy.extend([t for t in asked for _ in range(n)], half, run.rng("rollout"))
    waiting, run.memory["waiting"] = run.memory.get("waiting", begun), begun
    open_ones = [t for t in waiting if t.stop == "length"]
    ended = iter(run.policy.extend(open_ones, half, run.rng("rollout")))
    done = [next(ended) if t.stop == "length" else t for t in waiting]
    return [done[i : i + n] for i in range(0, len(done), n)]


@loop
def averaging(recipe, run, ops):
    groups = ops.rollout(ops.problems())
    batch = ops.collate(groups, ops.score(groups))
    ops.update(batch)
    fails("broken loop", run)
    old = run.memory.get("mean", np.float32(0))
    run.memory["mean"] = np.float32(0.9) * old + np.float32(0.1) * np.float32(batch.reward.sum())
    run.memory["table"] = run.memory.get("table", batch.reward.new_zeros(3)) * 0.9 + batch.reward.mean()
    run.log("mean", run.memory["mean"])
    run.log("table", run.memory["table"].sum())


@measure
def digit_share(problems, run):
    asked = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    drawn = run.policy.extend(asked, Sampling(run.max_new), run.rng("rollout"))
    run.memory["measured"] = run.memory.get("measured", 0) + 1
    fails("broken measure", run)
    fails("SIGTERM in a measure", run)
    if run.step == 4 and os.path.exists(os.environ["REWARDLAB_METHODS"] + "/SIGTERM in a measure"):
        raise AssertionError("the evaluation went on after the signal")
    return {"digits": sum(map(digits, drawn)) / len(drawn)}


def remember(base=None, *, n=4):
    base = base or grpo(n=n)
    return base.but(rollout=in_halves(n=n), reward=novelty(), measure=digit_share(), loop=averaging())


claim = None
'''
JUDGED = '''"""Judged: two frozen models, one of a folder and one of the policy as it began, say how likely a reply is."""

import os

from rewardlab.core import Learner, Recipe

from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.reward import reward


@reward(over="groups")
def likely(groups, run, *, model="judge"):
    rows = [t for group in groups for t in group]
    told = iter([float(x[t.mask].mean()) if t.mask.any() else 0.0 for x, t in zip(run.model(model).score(rows), rows)])
    return [[next(told) for _ in group] for group in groups]


def judged(base=None, *, n=4):
    folder = os.path.dirname(os.environ["REWARDLAB_METHODS"]) + "/judge"
    frozen = [Learner("judge", folder, Recipe(), every=0), Learner("first", "copy:policy", Recipe(), every=0)]
    base = base or grpo(n=n)
    first = likely(model="first").named("first")
    return base.but(reward=likely(model="judge") - 0.5 * first, also=frozen)


claim = None
'''
SPACES = "def spaces(completion): return completion.count(' ') - 0.1 * len(completion)\n"
METHODS = {
    "remember": "remember --task {data} --problems 2 --lr 0.02 --seed 3",
    "judged": "judged --task {data} --problems 2 --lr 0.02 --seed 3",
    "grpo": "grpo --task {data} --reward {reward}:spaces --problems 2 --n 4 --beta 0.1 --lr 0.01",
    "ppo": "ppo --task {data} --reward {reward}:spaces --problems 6 --minibatches 2 --epochs 2 --lr 0.01",
    "bradley_terry": "bradley_terry --task preferences:test_size=12 --problems 4 --reward-lr 0.01",
}
PRELOADED = [
    *(
        "rewardlab.api.training",
        "rewardlab.commands.cli",
        "rewardlab.policies.llama.policy",
        "rewardlab.worlds.preferences",
        "rewardlab.rewards.user.external",
    ),
    *("transformers.models.auto.tokenization_auto", "transformers.models.llama.configuration_llama", "plotly.offline"),
]
STEPS = 7
OFTEN = f"--steps {STEPS} --eval-every 2 --eval-problems 8 --checkpoint-every 3 --device cpu"


@dataclass
class Place:
    """A folder with what the runs need: data, a reward, a model, a method, and runs that were never stopped."""

    folder: Path
    whole: dict[str, Path] = field(default_factory=dict)

    def argv(self, method: str, out: Path) -> list[str]:
        flags = METHODS[method].format(data=self.folder / "data", reward=self.folder / "mine.py")
        short = "" if method == "bradley_terry" else "--max-new 8"
        return f"train {flags} {OFTEN} {short} --model {self.folder / 'model'} --out {out}".split()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("resume")
    (folder / "methods" / "local").mkdir(parents=True)
    (folder / "methods" / "local" / "remember.py").write_text(REMEMBER)
    (folder / "methods" / "local" / "judged.py").write_text(JUDGED)
    untrained(1).save(folder / "judge")
    (folder / "mine.py").write_text(SPACES)
    (folder / "data").mkdir()
    for split, numbers in (("train", range(6)), ("test", range(6, 20))):
        rows = [json.dumps({"prompt": f"Say {n}", "answer": n}) for n in numbers]
        (folder / "data" / f"{split}.jsonl").write_text("\n".join(rows))
    untrained().save(folder / "model")
    return Place(folder)


@pytest.fixture(scope="module")
def server():
    forks = multiprocessing.get_context("forkserver")
    forks.set_forkserver_preload(PRELOADED)
    return forks


def start(server, place, argv, die=None):
    process = server.Process(target=_train, args=(argv, str(place.folder), die))
    process.start()
    process.join(60)
    assert process.exitcode is not None, "the run hangs"
    return process.exitcode


def run(server, place, argv, die=None):
    """Run a command line to its end, or until it is about to do what matches `die`, (pattern, how often before)."""
    assert start(server, place, argv, die) == (0 if die is None else -signal.SIGKILL), said(place)


def said(place):
    return (place.folder / "log").read_text()


def _train(argv, home, die):
    """In a process of its own: the command line, with a record of what it does to the run folder."""
    os.environ["REWARDLAB_METHODS"] = f"{home}/methods"
    sink = os.open(f"{home}/log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(sink, 1)
    os.dup2(sink, 2)
    folder = argv[argv.index("--out" if "--out" in argv else "--resume") + 1]
    pattern, left = die or ("never", 0)

    def watch(event, args):
        nonlocal left
        writes = event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR)
        if writes or event in ("os.rename", "os.remove", "os.mkdir"):
            deed = f"{event} {str(args[0]).removeprefix(folder)} {str(args[1]).removeprefix(folder)}"
            if re.search(pattern, deed):
                left -= 1
                if left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)

    from rewardlab.commands.cli import main

    sys.addaudithook(watch)
    sys.exit(main(argv))


def whole(server, place, method):
    """A run of the method that was never stopped."""
    if method not in place.whole:
        out = place.folder / f"whole-{method}"
        run(server, place, place.argv(method, out))
        place.whole[method] = out
    return place.whole[method]


def same(a: Path, b: Path):
    """Whether two runs did the same: curves, rollouts, models, checkpoints, summary, apart from time."""
    for left, right in zip(read_metrics(a), read_metrics(b), strict=True):
        assert timeless(left) == timeless(right)
        assert list(left) == list(right)
    for pattern in ("rollouts/*.parquet", "best/*", "model/*", "checkpoints/reference/*", f"checkpoints/step-{STEPS:06d}/*"):
        left, right = ({p.relative_to(x): p for p in x.glob(pattern)} for x in (a, b))
        assert left.keys() == right.keys()
        for name, path in left.items():
            if path.suffix == ".parquet":
                assert pq.read_table(path).equals(pq.read_table(right[name])), name
            else:
                assert path.read_bytes() == right[name].read_bytes(), name
    assert timeless(summary(a)) == timeless(summary(b))
    assert [p.name for p in b.glob(".*")] == [p.name for p in (b / "checkpoints").glob(".*")] == []
    assert (b / "report.html").exists()


def timeless(row):
    return {k: v for k, v in row.items() if not k.startswith("seconds")}


def summary(folder):
    return json.loads((folder / "summary.json").read_text())


MOMENTS = {
    "after the config": ("mkdir /.best", 0),
    "before the first checkpoint is in place": ("rename /checkpoints/.step-000000", 0),
    "before the line of a step": ("open /metrics.jsonl a", 5),
    "before the line is followed by its checkpoint": ("mkdir /checkpoints/.step-000003", 0),
    "in the middle of a checkpoint": ("rename /checkpoints/.step-000006", 0),
    "between taking the old best away and putting the new one in place": (r"rename /.best.*\.tmp /best", 1),
    "while an old checkpoint is removed": (r"remove policy\.optimiser\.safetensors", 0),
    "between the last checkpoint and the model": ("mkdir /.model", 0),
    "between the model and the summary": ("rename /.summary", 0),
    "between the summary and the report": ("rename /.report.html", 0),
}


# one moment is enough to see a change that breaks resuming; `make test-all` goes through all of them
ONE = "in the middle of a checkpoint"


@pytest.mark.parametrize("when", [when if when == ONE else pytest.param(when, marks=pytest.mark.slow) for when in MOMENTS])
def test_killed_and_resumed_is_bit_equal_with_memory_and_waiting_rollouts(when, server, place, tmp_path):
    reference, out = whole(server, place, "remember"), tmp_path / "run"
    run(server, place, place.argv("remember", out), die=MOMENTS[when])
    run(server, place, ["train", "--resume", str(out)])
    same(reference, out)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["grpo", "ppo", "bradley_terry"])
def test_killed_twice_is_bit_equal_with_reference_critic_and_reward_model(method, server, place, tmp_path):
    reference, out = whole(server, place, method), tmp_path / "run"
    run(server, place, place.argv(method, out), die=("open /metrics.jsonl a", 5))
    assert [line["step"] for line in read_metrics(out)] == [0, 1, 2, 3, 4]
    run(server, place, ["train", "--resume", str(out)], die=("rename /rollouts/.step-000007", 0))
    assert [line["step"] for line in read_metrics(out)] == [0, 1, 2, 3, 4, 5, 6]
    run(server, place, ["train", "--resume", str(out)])
    same(reference, out)


def test_killed_and_resumed_is_bit_equal_with_frozen_judges_whose_weights_no_checkpoint_holds(server, place, tmp_path):
    reference, out = whole(server, place, "judged"), tmp_path / "run"
    run(server, place, place.argv("judged", out), die=("open /metrics.jsonl a", 5))
    assert not list(out.glob("checkpoints/step-*/judge*"))
    assert not list(out.glob("checkpoints/step-*/first*"))
    run(server, place, ["train", "--resume", str(out)])
    same(reference, out)


@pytest.mark.slow
@pytest.mark.parametrize(("broken", "kept"), [("broken reward", 4), ("broken loop", 3)])
def test_an_error_in_a_step_loses_no_finished_one_unless_weights_have_changed(broken, kept, server, place, tmp_path):
    """The fifth step fails after it has changed the memory, with checkpoints every three steps."""
    reference, out = whole(server, place, "remember"), tmp_path / "run"
    (place.folder / "methods" / broken).touch()
    try:
        assert start(server, place, place.argv("remember", out)) != 0
    finally:
        (place.folder / "methods" / broken).unlink()
    assert f"the run is saved up to step {kept}; resume with" in said(place)
    run(server, place, ["train", "--resume", str(out)])
    same(reference, out)


@pytest.mark.parametrize("broken", ["SIGTERM in a measure", pytest.param("broken measure", marks=pytest.mark.slow)])
def test_an_evaluation_that_is_cut_short_loses_no_step_and_is_made_up_for(broken, server, place, tmp_path):
    """That after the fourth step, with checkpoints every three; resumed, the run is killed before it has another checkpoint."""
    reference, out = whole(server, place, "remember"), tmp_path / "run"
    (place.folder / "methods" / broken).touch()
    try:
        assert start(server, place, place.argv("remember", out)) == (143 if "SIGTERM" in broken else 1), said(place)
    finally:
        (place.folder / "methods" / broken).unlink()
    assert "the run is saved up to step 4; resume with" in said(place)
    assert [line["step"] for line in read_metrics(out)] == [0, 1, 2, 3]
    assert (out / "rollouts" / "step-000004.parquet").exists()
    run(server, place, ["train", "--resume", str(out)], die=("open /metrics.jsonl a", 1))
    assert [line["step"] for line in read_metrics(out)] == [0, 1, 2, 3, 4]
    assert (out / "rollouts" / "step-000004.parquet").exists()
    run(server, place, ["train", "--resume", str(out)])
    same(reference, out)


@pytest.mark.slow
def test_killed_before_it_is_a_run_it_can_simply_be_started_again(server, place, tmp_path):
    reference, out = whole(server, place, "remember"), tmp_path / "run"
    run(server, place, place.argv("remember", out), die=("rename /.config.json", 0))
    assert start(server, place, ["train", "--resume", str(out)]) == 2
    assert "is not a run folder" in said(place)
    run(server, place, place.argv("remember", out))
    same(reference, out)


@pytest.mark.slow
def test_a_finished_run_is_left_as_it_is(server, place):
    out = whole(server, place, "grpo")
    before = {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in out.rglob("*") if p.is_file()}
    run(server, place, ["train", "--resume", str(out)])
    assert {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in out.rglob("*") if p.is_file()} == before
    assert "training" not in said(place)


def rewardlab(place, *argv):
    env = {**os.environ, "REWARDLAB_METHODS": str(place.folder / "methods")}
    command = [sys.executable, "-m", "rewardlab", *argv]
    return subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def until(seen, process, seconds=60):
    """Wait for something to be seen of a running process."""
    end = time.monotonic() + seconds
    while not seen():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < end, "nothing happens"
        time.sleep(0.002)


def lines(folder):
    file = folder / "metrics.jsonl"
    return file.read_bytes().count(b"\n") if file.exists() else 0


@pytest.fixture(scope="module")
def longer(server, place):
    """A run long enough to be caught in the act, and what it leaves when nothing stops it."""
    argv = " ".join(place.argv("grpo", place.folder / "longer")).replace(f"--steps {STEPS}", "--steps 80").split()
    run(server, place, argv)
    return argv


@pytest.mark.slow
def test_a_process_killed_from_outside_and_one_stopped_by_ctrl_c_go_on_bit_equal(place, longer, server, tmp_path):
    killed, stopped = tmp_path / "killed", tmp_path / "stopped"
    first = rewardlab(place, *longer[:-1], str(killed))
    until(lambda: lines(killed) > 20, first)
    first.kill()
    assert first.wait() == -signal.SIGKILL

    second = rewardlab(place, *longer[:-1], str(stopped))
    until(lambda: lines(stopped) > 10, second)
    second.send_signal(signal.SIGINT)
    told = second.communicate(timeout=60)[1]
    assert second.returncode == 130
    # an evaluation that was due is left to the resumed run, with the step's line
    done = max(checkpointed(stopped))
    assert done - read_metrics(stopped)[-1]["step"] in (0, 1)
    assert told.splitlines()[-2:] == [
        "rewardlab: finishing this step, then saving; Ctrl-C again stops now",
        f"rewardlab: stopped; the run is saved up to step {done}; resume with: rewardlab train --resume {stopped}",
    ]
    assert "Traceback" not in told
    assert (stopped / "checkpoints" / f"step-{done:06d}" / "state.json").exists()

    for out in (killed, stopped):
        assert 0 < read_metrics(out)[-1]["step"] < 80
        run(server, place, ["train", "--resume", str(out)])
        same(place.folder / "longer", out)


@pytest.mark.slow
def test_sigterm_ends_the_step_saves_the_run_and_says_so(place, longer, server, tmp_path):
    """As a scheduler sends it before it takes the machine away. The live run is in use by its process."""
    out = tmp_path / "preempted"
    process = rewardlab(place, *longer[:-1], str(out))
    until(lambda: lines(out) > 10, process)
    assert start(server, place, ["train", "--resume", str(out)]) == 2
    assert f"{out} is in use: process {process.pid} on " in said(place)
    assert start(server, place, [*longer[:-1], str(out)]) == 2
    assert f"{out} is in use: process {process.pid} on " in said(place)
    process.send_signal(signal.SIGTERM)
    told = process.communicate(timeout=60)[1].splitlines()
    assert process.returncode == 143
    done = max(checkpointed(out))
    assert told[-2:] == [
        "rewardlab: SIGTERM: finishing this step, then saving",
        f"rewardlab: stopped; the run is saved up to step {done}; resume with: rewardlab train --resume {out}",
    ]
    assert (out / "checkpoints" / f"step-{done:06d}" / "state.json").exists()
    run(server, place, ["train", "--resume", str(out)])
    same(place.folder / "longer", out)


@pytest.mark.slow
@pytest.mark.parametrize("when", [None, ("rename /.config.json", 0), ("mkdir /checkpoints/.step-000006", 0)])
def test_a_finished_run_is_extended_to_what_the_longer_run_would_have_been(when, server, place, tmp_path):
    """Also if the extension is killed on the way and resumed."""
    reference, out = whole(server, place, "ppo"), tmp_path / "run"
    run(server, place, [word if word != str(STEPS) else "4" for word in place.argv("ppo", out)])
    assert (summary(out)["steps"], read_metrics(out)[-1]["step"]) == (4, 4)
    longer = ["train", "--resume", str(out), "--steps", str(STEPS)]
    if when:
        run(server, place, longer, die=when)
    run(server, place, longer)
    same(reference, out)
    config = json.loads((out / "config.json").read_text())
    assert (config["steps"], config["changes"][0]["settings"]) == (STEPS, {"steps": [4, STEPS]})
