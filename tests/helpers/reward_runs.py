"""A method of reward models on its template rows: the run that it leaves, read as a reward model by its folder."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from torch import Tensor
from transformers import AutoModelForSequenceClassification

from rewardlab import registry
from rewardlab.api import train
from rewardlab.core import Message
from rewardlab.data.columns import Data
from rewardlab.models.checkpoint import find
from rewardlab.models.reward_model import load_reward_model

FEW = {"problems": 2, "n": 2, "pairs": 2, "votes": 1, "passes": 1, "rounds": 1, "gold_passes": 1, "tests": 2, "grid": 2, "k": 1}


def taught(method: str, folder: Path, replies: list[str], steps: int = 8, **settings) -> tuple[dict, list[float]]:
    """What the run measured after some steps, on the rows it learnt from, and the scores of these replies by `model:RUN`."""
    data = next(Data.from_json(row["data"]) for row in registry.rows() if row["name"] == method)
    rows = folder / "rows.jsonl"
    rows.write_text("".join(json.dumps(row) + "\n" for row in data.rows))
    task = registry.task(str(rows), **({"verifier": data.verified_by} if data.verified_by else {}))
    # two rows are too few to tell a model that has learnt by one of them held out, and the best one is kept
    task = replace(task, test=[task.train[i] for i in range(len(task.train))])
    given = {"eval_problems": 2, "device": "cpu", "checkpoint_every": 0, "settings": {"problems": 2, "reward_lr": 3e-3, **settings}}
    done = train(method, "untrained", task, steps=steps, out=folder / "run", **given)
    rows = [([Message("user", "What is it?")], reply) for reply in replies]
    return done.summary["after"], load_reward_model(str(folder / "run"), written=True).score(rows) if rows else []


def saved(run: Path) -> dict[str, Tensor]:
    """The weights of a run's reward model, by their names in transformers."""
    return AutoModelForSequenceClassification.from_pretrained(find(str(run)).folder).state_dict()


def one_step(method: str, folder: Path):
    """The folder `run` of a method's run of one step on its template rows, these rows, and their task."""
    data = next(Data.from_json(row["data"]) for row in registry.rows() if row["name"] == method)
    rows = list(data.rows)
    file = folder / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    task = registry.task(str(file), **({"verifier": data.verified_by} if data.verified_by else {}))
    task = replace(task, test=[task.train[i] for i in range(len(task.train))])
    takes = {parameter.flag.removeprefix("--").replace("-", "_") for parameter in registry.parameters(method)}
    settings = {name: value for name, value in FEW.items() if name in takes} | dict(data.settings)
    common = {"eval_problems": 2, "max_new": 4, "device": "cpu", "steps": 1}
    return train(method, "untrained", task, out=folder / "run", settings=settings, **common).out, rows, task
