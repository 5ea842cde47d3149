"""Targets by their names: `parse` turns a name into plain data, `load` turns that into a target, in the process it runs in.

final_number, math(strict=false)              a built-in reward or verifier, with its settings
rewards.py:my_reward                          a function in a file, in any signature of `rewards/user/functions.py`
rewards.py                                    the only function in a file
rewards.py:my_reward?as=verl                  a function whose arguments do not tell whose manner it is written in
trl.rewards:accuracy_reward                   a function of an installed package
trl.rewards:get_overlong(max_len=100)         the function that such a function returns for these settings
model:runs/rm, prm:runs/prm                   a reward model, or the last step's score of a process reward model
http://localhost:8000/v1                      a judge behind an OpenAI-compatible endpoint
openai:http://localhost:8000/v1#NAME          the same, as a model's name
judge(model="openai:...", kind="pairwise")    a judge that compares two replies (pairwise.py)
grpo+hapo, runs/mine                          the reward of a method, or of a run
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rewardlab import registry
from rewardlab.audit.judge import Judge
from rewardlab.audit.pairwise import PairJudge
from rewardlab.audit.target import RewardResult, Row, Spec, Target, result_of
from rewardlab.clients.endpoint import is_served
from rewardlab.core import Message, Problem, Recipe, Run, Trajectory, Turn
from rewardlab.errors import RewardlabError
from rewardlab.registry.formula import absolute, called
from rewardlab.registry.names import PREFIX, TRAINED
from rewardlab.rewards.model import load_named
from rewardlab.rewards.user import external, functions
from rewardlab.rewards.user.conventions import split
from rewardlab.verifiers.contract import GOLD

VOCABULARY = 50_000
"""Token ids that an audit makes up, since it has no tokenizer."""


def parse(text: str, judge: Mapping[str, Any] | None = None, verifier: str | None = None) -> Spec:
    """The target of this name. verifier: the name of the task's verifier, for rewards that call `run.verify`.

    Raises RewardlabError for an unknown name.
    """
    if is_served(text) or re.match(r"https?://", text):
        asked = dict(judge or {})
        return {"kind": "pairwise" if asked.pop("pairwise", False) else "judge", "url": text, **asked}
    if text.startswith((TRAINED, PREFIX)):
        name = "model_score" if text.startswith(TRAINED) else "prm_score"
        return {"kind": "part", "name": name, "settings": {"model": absolute(text)}, "verifier": verifier}
    place, convention = split(text)
    name, settings = called(place)
    if name == "judge" and (settings or {}).get("kind") == "pairwise":
        return _comparing(dict(settings or {}), dict(judge or {}))
    if name in ("judge", "double_elimination") and not is_served((settings or {}).get("model")):
        raise _no_run((settings or {}).get("model"))
    head, colon, function = name.rpartition(":")
    if name.endswith(".py"):
        head, colon, function = name, ":", functions.only_function(Path(name))
    if colon:
        module = str(Path(head).resolve()) if head.endswith(".py") else head
        return {"kind": "function", "where": module, "function": function, "settings": settings, "convention": convention}
    if (Path(text) / "config.json").is_file():
        return {"kind": "run", "folder": str(Path(text).resolve())}
    if "+" in name or registry.spell(name) in registry.methods():
        return {"kind": "recipe", "name": name, "settings": settings, "verifier": verifier or "final_number"}
    try:
        registry.part("reward", name, **_settings(settings))
    except RewardlabError as problem:
        raise RewardlabError(f"{problem} (a target is a built-in reward, FILE.py:FUNCTION, MODULE:FUNCTION, "
                             "a judge's http address, a method, or the folder of a run)") from None  # fmt: skip
    return {"kind": "part", "name": name, "settings": settings, "verifier": verifier}


def _comparing(settings: dict[str, Any], asked: dict[str, Any]) -> Spec:
    """The target of `judge(kind="pairwise")`, with what the command says of time."""
    # refuses what the reward would refuse
    registry.part("reward", "judge", **settings)
    if not is_served(settings["model"]):
        raise _no_run(settings["model"])
    given = {name: settings[name] for name in ("template", "max_new", "expected") if name in settings}
    return {"kind": "pairwise", "url": settings["model"], "seconds": asked.get("seconds")} | given


def _no_run(model: Any) -> RewardlabError:
    name = model or "MODEL"
    return RewardlabError(
        f"an audit has no run whose model could judge: it asks a served model, openai:URL#NAME, and not {model!r}. Serve it "
        f"(rewardlab serve-model {name}), or measure it on pairs (rewardlab scoreboard judge:{name} --on llmbar)"
    )


def _settings(settings: Mapping[str, Any] | None) -> dict[str, Any]:
    return dict(settings or {})


# ---- in the process of the target ------------------------------------------------------------------------------------


class PartTarget(Target):
    """A reward of rewardlab: a part, or a whole recipe's."""

    def __init__(self, reward: Any, verify: Any = None):
        self.reward, self.name = reward, str(reward)
        self.run = Run(None, verify=verify)
        # now, and not in the first call, whose time is limited
        load_named(reward, self.run)
        self.reads_gold = True if hasattr(reward, "check_all") else None

    def score(self, rows: Sequence[Row]) -> list[RewardResult]:
        scores = self.reward([[trajectory(row)] for row in rows], self.run)
        return [result_of(score) for (score,) in scores]


class FunctionTarget(Target):
    """A function of the user or of a package, called as training calls it."""

    def __init__(self, call: functions.Call):
        self.call, self.name = call, call.name
        names = {call.singular(p) for p in call.named}
        self.reads_gold = True if names & {*GOLD, "trajectory"} else None if call.open or "meta" in names else False
        self.messages = call.messages

    def score(self, rows: Sequence[Row]) -> list[RewardResult]:
        scores = external.score_by(self.call, [[trajectory(row)] for row in rows], Run(None))
        return [result_of(score) for (score,) in scores]


def load(spec: Spec) -> Target:
    """The target itself. Raises RewardlabError, or whatever its own code raises, where it cannot be loaded."""
    if spec["kind"] == "judge":
        return Judge(spec)
    if spec["kind"] == "pairwise":
        return PairJudge(spec)
    if spec["kind"] == "function":
        return _function(spec)
    if spec["kind"] == "run":
        return _from_run(Path(spec["folder"]))
    verify = registry.verifier(spec["verifier"]) if spec["verifier"] else None
    if spec["kind"] == "part":
        return PartTarget(registry.part("reward", spec["name"], **_settings(spec["settings"])), verify)
    return _from_recipe(registry.build(spec["name"], _settings(spec["settings"])), verify)


def _function(spec: Spec) -> Target:
    # a module of the user's project is found from the folder that the command runs in
    sys.path.insert(0, str(Path.cwd()))
    where, name = spec["where"], spec["function"]
    found = functions.find(Path(where), name) if where.endswith(".py") else functions.find_in_module(where, name)
    reward = functions.prepared(found, Path(where), spec["settings"], spec.get("convention"))
    return FunctionTarget(reward) if isinstance(reward, functions.Call) else PartTarget(reward)


def _from_recipe(recipe: Recipe, verify: Any) -> Target:
    if recipe.reward is None:
        raise RewardlabError(f"the recipe {recipe.name} has no reward to audit")
    return PartTarget(recipe.reward, verify)


def _from_run(folder: Path) -> Target:
    config = json.loads((folder / "config.json").read_text())
    if "recipe" not in config:
        raise RewardlabError(f"{folder} is a model checkpoint, not a run folder")
    source = config.get("source")
    task = registry.task(source["name"], **source["options"]) if source else None
    return _from_recipe(registry.load_recipe(config["recipe"]), registry.verifier(task.verifier) if task else None)


def trajectory(row: Row) -> Trajectory:
    """A row as a rollout. Its tokens are four bytes each, since an audit has no tokenizer."""
    gold = dict.fromkeys(GOLD, row.answer)
    problem = Problem((Message("user", row.prompt),), row.answer, {**gold, **row.meta})
    text = row.reply.encode("utf-8", "replace")
    # padded to whole four-byte words
    ids = np.frombuffer(text + b" " * (-len(text) % 4), np.uint32).astype(np.int64) % VOCABULARY
    prompt = Turn(None, np.zeros(1, np.int64), text=row.prompt)
    return Trajectory(problem, (prompt, Turn("policy", ids, text=row.reply)), stop="end")
