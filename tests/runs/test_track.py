"""Trackers get the configuration and every line of metrics once, whatever happens to the run or to them."""

from __future__ import annotations

import importlib.util
import json
import os
import threading
from pathlib import Path

import pytest

from rewardlab import api
from rewardlab.commands import cli
from rewardlab.core import ask
from rewardlab.core.problem import Task
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import untrained
from rewardlab.runs import track
from rewardlab.runs.metrics import read_metrics
from rewardlab.runs.track import TRACKERS, trackers, tracking

REWARD = """
import os

def spaces(completion, run):
    if os.environ.get("STOP_AT") == str(run.step):
        raise OSError("the machine went away")
    return completion.count(" ")
"""
REST = (
    "--reward {reward} --problems 2 --n 2 --lr 0.01 --max-new 4 --eval-every 2 --eval-problems 3 --checkpoint-every 2 --device cpu"
)


@pytest.fixture(scope="module", autouse=True)
def at_home(tmp_path_factory):
    """Trackers write under a folder of the tests; trackio reads its own when it is imported."""
    home = tmp_path_factory.mktemp("trackers")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WANDB_MODE", "offline")
        patch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{home / 'mlflow.db'}")
        patch.setenv("TRACKIO_DIR", str(home / "trackio"))
        yield home


class Diary:
    """A tracker that keeps what it is sent, and fails when it is told to."""

    kept: list
    fails: list

    def __init__(self, folder: Path, config: dict, run: str | None):
        self.run, self.tries = run or "diary-1", 0
        self.kept.append(("open", config, run))

    def send(self, step, metrics):
        self.tries += 1
        if self.fails and self.fails.pop(0):
            raise ConnectionError("no route to host")
        self.kept.append((step, metrics))

    def close(self, error):
        self.kept.append(("close", error, self.tries))


@pytest.fixture
def diary(monkeypatch):
    made = type("Own", (Diary,), {"kept": [], "fails": []})
    monkeypatch.setitem(TRACKERS, "diary", made)
    return made


def steps(made) -> list:
    return [step for step, *_ in made.kept if isinstance(step, int)]


# ---- names ------------------------------------------------------------------------------------------------------------------


def test_names_are_given_one_by_one_or_together():
    assert trackers(["tensorboard,", " tensorboard"]) == ["tensorboard"]
    assert trackers("") == trackers(()) == []
    with pytest.raises(RewardlabError, match="unknown tracker 'tensorbord'; did you mean tensorboard"):
        trackers(["tensorboard", "tensorbord"])


@pytest.mark.parametrize("name", TRACKERS)
def test_one_that_is_not_installed_is_refused_before_training_with_what_to_install(name, monkeypatch, tmp_path, capsys):
    if importlib.util.find_spec(name):
        found = importlib.util.find_spec
        monkeypatch.setattr(importlib.util, "find_spec", lambda asked: None if asked == name else found(asked))
    out = tmp_path / "run"
    assert cli.main(f"train grpo --task arithmetic --model untrained --track {name} --out {out} --device cpu".split()) == 2
    extra = "track" if name == "tensorboard" else name
    assert f"pip install 'rewardlab[{extra}]'" in capsys.readouterr().err
    assert not out.exists()


def test_trl_tracks_by_itself(capsys):
    asked = "train grpo --task arithmetic --engine trl --track tensorboard --model untrained --device cpu"
    assert cli.main(asked.split()) == 2
    assert "--trl report_to=NAME" in capsys.readouterr().err


# ---- sending ----------------------------------------------------------------------------------------------------------------


def test_every_line_is_sent_once_and_without_what_is_not_finite(diary, tmp_path):
    with tracking(["diary"], tmp_path, {"lr": 0.1}, resumed=False) as line:
        line(0, {"a": 1.0, "b": None})
        line(1, {"a": 2.0})
        line(1, {"a": 2.0})
    assert diary.kept == [("open", {"lr": 0.1}, None), (0, {"a": 1.0}), (1, {"a": 2.0}), ("close", False, 2)]
    assert json.loads((tmp_path / "track.json").read_text()) == {"diary": {"run": "diary-1", "sent": 1}}


def test_a_resumed_run_goes_on_in_the_same_one_and_catches_up(diary, tmp_path):
    (tmp_path / "track.json").write_text('{"diary": {"run": "diary-7", "sent": 2}}')
    with tracking(["diary"], tmp_path, {}, resumed=True) as line:
        for step in range(5):
            line(step, {"a": step})
    assert diary.kept[0] == ("open", {}, "diary-7")
    assert steps(diary) == [3, 4]


def test_lines_that_cannot_be_sent_wait_with_one_warning(diary, tmp_path, capsys):
    """Tried with line 0, then with the 1st, 3rd and 7th after it (1, 2, 4 lines later each time); then all go, in order."""
    diary.fails += [True, True, True, False]
    with tracking(["diary"], tmp_path, {}, resumed=False) as line:
        for step in range(9):
            line(step, {"a": step})
    assert steps(diary) == list(range(9))
    assert diary.kept[-1] == ("close", False, 3 + 9)
    said = capsys.readouterr().err
    assert said.count("the tracker diary failed") == 1
    assert "no route to host" in " ".join(said.split())


def test_a_tracker_that_never_comes_back_is_noted_and_harms_nobody(diary, tmp_path, capsys, monkeypatch):
    other = type("Other", (Diary,), {"kept": [], "fails": []})
    monkeypatch.setitem(TRACKERS, "other", other)
    diary.fails += [True] * 100
    with tracking(["diary", "other"], tmp_path, {}, resumed=False) as line:
        for step in range(20):
            line(step, {"a": step})
    assert steps(diary) == []
    assert diary.kept[-1] == ("close", False, 6)  # with lines 0, 1, 3, 7, 15, and at the end
    assert steps(other) == list(range(20))
    assert json.loads((tmp_path / "track.json").read_text())["diary"]["sent"] == -1  # to be caught up on
    assert capsys.readouterr().err.count("warning") == 1


def test_one_that_hangs_keeps_no_run_from_ending(diary, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(track, "PATIENCE", 0.2)
    release = threading.Event()
    monkeypatch.setattr(diary, "send", lambda self, step, metrics: release.wait(20))
    with tracking(["diary"], tmp_path, {}, resumed=False) as line:
        line(0, {"a": 0})
    assert "still sending after 0.2 seconds" in capsys.readouterr().err
    release.set()


def test_one_that_cannot_be_opened_stops_a_run_that_has_not_begun_and_no_other(diary, tmp_path, capsys, monkeypatch):
    class Closed(Diary):
        def __init__(self, *_):
            raise ConnectionError("no route to host")

    monkeypatch.setitem(TRACKERS, "closed", Closed)
    with pytest.raises(RewardlabError, match="closed cannot be opened: ConnectionError: no route to host"):  # noqa: SIM117
        with tracking(["diary", "closed"], tmp_path, {}, resumed=False):
            raise AssertionError("never reached")
    assert diary.kept[-1] == ("close", True, 0)
    with tracking(["closed"], tmp_path, {}, resumed=True) as line:
        line(0, {"a": 0})
    assert "the run continues without it" in " ".join(capsys.readouterr().err.split())


def test_a_run_that_fails_is_closed_as_failed(diary, tmp_path):
    with pytest.raises(ZeroDivisionError), tracking(["diary"], tmp_path, {}, resumed=False):
        raise ZeroDivisionError
    assert diary.kept[-1] == ("close", True, 0)


# ---- real ones ----------------------------------------------------------------------------------------------------------------


def tensorboard_run(out: Path) -> tuple[dict, str]:
    """({metric: [(step, value)]}, the configuration as text)"""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    read = EventAccumulator(str(out / "tensorboard"), size_guidance={"scalars": 0, "tensors": 0}).Reload()
    text = read.Tensors("config/text_summary")
    assert len(text) == 1
    scalars = {tag: [(e.step, e.value) for e in read.Scalars(tag)] for tag in read.Tags()["scalars"]}
    return scalars, text[0].tensor_proto.string_val[0].decode()


def wandb_run(out: Path) -> tuple[dict, str]:
    """Offline, wandb writes protocol buffers as LevelDB's log does: blocks of (checksum 4, length 2, kind 1 byte, data)."""
    from wandb.proto import wandb_internal_pb2 as pb

    scalars: dict[str, list] = {}
    config: dict[str, str] = {}
    names = set()
    for file in sorted(out.glob("wandb/offline-run-*/*.wandb"), key=lambda f: f.stat().st_mtime):
        names.add(file.name)
        data, at, held = file.read_bytes(), 7, b""
        while at + 7 <= len(data):
            if (left := 32768 - at % 32768) < 7:
                at += left
                continue
            length, kind = int.from_bytes(data[at + 4 : at + 6], "little"), data[at + 6]
            held += data[at + 7 : at + 7 + length]
            at += 7 + length
            if kind in (1, 4):  # whole, or the last part
                record, held = pb.Record.FromString(held), b""
                for item in record.run.config.update:
                    config[item.key] = item.value_json
                row = {i.key or "/".join(i.nested_key): json.loads(i.value_json) for i in record.history.item}
                for name, value in row.items():
                    scalars.setdefault(name, []).append((row["_step"], value))
    assert len(names) == 1  # the run and its resumption have one id
    return {k: v for k, v in scalars.items() if not k.startswith("_")}, json.dumps(config)


def mlflow_run(out: Path) -> tuple[dict, str]:
    from mlflow import MlflowClient

    client, name = MlflowClient(), json.loads((out / "track.json").read_text())["mlflow"]["run"]
    run = client.get_run(name)
    assert run.info.status == "FINISHED"
    assert run.info.run_name == out.name
    scalars = {k: [(m.step, m.value) for m in client.get_metric_history(name, k)] for k in run.data.metrics}
    return {k.replace("pass_1", "pass@1"): v for k, v in scalars.items()}, json.dumps(run.data.params)


def trackio_run(out: Path) -> tuple[dict, str]:
    from trackio.sqlite_storage import SQLiteStorage

    name = json.loads((out / "track.json").read_text())["trackio"]["run"]
    scalars: dict[str, list] = {}
    for row in SQLiteStorage.get_logs("rewardlab", name):
        for key in row.keys() - {"timestamp", "step"}:
            scalars.setdefault(key, []).append((row["step"], row[key]))
    return scalars, json.dumps(SQLiteStorage.get_run_config("rewardlab", name))


READ = {"tensorboard": tensorboard_run, "wandb": wandb_run, "mlflow": mlflow_run, "trackio": trackio_run}


@pytest.mark.parametrize("name", TRACKERS)
def test_a_run_that_was_stopped_and_resumed_is_one_run_there_with_every_line_once(name, tmp_path, monkeypatch, capsys):
    pytest.importorskip(name)
    rows = [json.dumps({"prompt": f"Say {n}", "answer": n}) for n in range(20)]
    (tmp_path / "mine.jsonl").write_text("\n".join(rows))
    (tmp_path / "reward.py").write_text(REWARD)
    out, rest = tmp_path / "run", REST.format(reward=f"{tmp_path / 'reward.py'}:spaces")
    monkeypatch.setenv("STOP_AT", "3")
    asked = f"train grpo --task {tmp_path / 'mine.jsonl'} --model untrained --steps 5 --track {name} --out {out} {rest}"
    assert cli.main(asked.split()) == 2
    assert json.loads((out / "track.json").read_text())[name]["sent"] == 3  # beyond the checkpoint of step 2
    monkeypatch.delenv("STOP_AT")
    capsys.readouterr()
    assert cli.main(f"train --resume {out} --json".split()) == 0
    assert json.loads(capsys.readouterr().out)["steps"] == 5  # trackers print nothing there
    scalars, config = READ[name](out)
    lines = read_metrics(out)
    assert [line["step"] for line in lines] == [0, 1, 2, 3, 4, 5]
    logged = {k for line in lines for k, v in line.items() if v is not None} - {"step"}
    assert scalars.keys() == logged
    for metric in logged:
        told = [(line["step"], line[metric]) for line in lines if line.get(metric) is not None]
        assert [step for step, _ in sorted(scalars[metric])] == [step for step, _ in told], metric
        if not metric.startswith("seconds/"):  # the only metrics that differ when a step is made again
            assert sorted(scalars[metric]) == [(step, pytest.approx(value, rel=1e-6)) for step, value in told], metric
    assert "0.01" in config  # the learning rate
    assert str(json.loads((out / "config.json").read_text())["formula"])[:20] in config


def test_a_run_without_trackers_writes_nothing_of_theirs(tmp_path):
    problems = [ask(f"Say {n}", str(n)) for n in range(6)]
    task = Task("said", problems, problems[:2], "exact_match", max_new=4)
    api.train("grpo", untrained(), task, steps=1, out=tmp_path / "run", settings={"n": 2, "problems": 2}, device="cpu")
    assert not (tmp_path / "run" / "track.json").exists()
    assert not os.path.exists(tmp_path / "run" / "tensorboard")
