"""Targets by their names: `parse` turns a name into plain data, `load` turns that into a target, in the process it runs in.

final_number, math(strict=false)              a built-in reward or verifier, with its settings
rewards.py:my_reward                          a function in a file, in TRL's, verl's or rewardlab's signature
trl.rewards:accuracy_reward                   a function of an installed package
trl.rewards:get_overlong(max_len=100)         the function that such a function returns for these settings
http://localhost:8000/v1                      a judge behind an OpenAI-compatible endpoint
grpo+hapo, runs/mine                          the reward of a method, or of a run
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rewardlab import registry
from rewardlab.core import Message, PartFactory, Problem, Recipe, Run, Trajectory, Turn
from rewardlab.errors import RewardlabError
from rewardlab.rewards import external
from rewardlab.verifiers.contract import GOLD

from .judge import Judge
from .target import RewardResult, Row, Spec, Target, result_of

VOCABULARY = 50_000
"""Token ids that an audit makes up, since it has no tokenizer."""


def parse(text: str, judge: Mapping[str, Any] | None = None, verifier: str | None = None) -> Spec:
    """The target of this name. verifier: the name of the task's verifier, for rewards that call `run.verify`.

    Raises RewardlabError for an unknown name.
    """
    if re.match(r"https?://", text):
        return {"kind": "judge", "url": text, **(judge or {})}
    name, settings = _called(text)
    head, colon, function = name.rpartition(":")
    if colon:
        module = str(Path(head).resolve()) if head.endswith(".py") else head
        return {"kind": "function", "where": module, "function": function, "settings": settings}
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


def _called(text: str) -> tuple[str, dict[str, Any] | None]:
    """`name(x=1)` as its name and settings; the settings of a name alone are None."""
    match = re.fullmatch(r"(.+?)\((.*)\)", text, re.S)
    if not match:
        return text, None
    try:
        call = ast.parse(f"f({match[2]})", mode="eval").body
        assert isinstance(call, ast.Call)
        if call.args:
            raise ValueError("settings are given by name")
        return match[1], {str(k.arg): _literal(k.value) for k in call.keywords}
    except (ValueError, SyntaxError, AssertionError) as problem:
        raise RewardlabError(f"cannot read the settings of {text}: {problem}; write NAME(x=1, y='text')") from None


def _literal(node: ast.expr) -> Any:
    """A value, in Python's or JSON's notation."""
    # settings may be copied from JSON
    named = {"true": True, "false": False, "null": None}
    return named[node.id] if isinstance(node, ast.Name) and node.id in named else ast.literal_eval(node)


def _settings(settings: Mapping[str, Any] | None) -> dict[str, Any]:
    return dict(settings or {})


# ---- in the process of the target ------------------------------------------------------------------------------------


class PartTarget(Target):
    """A reward of rewardlab: a part, or a whole recipe's."""

    def __init__(self, reward: Any, verify: Any = None):
        self.reward, self.name = reward, str(reward)
        self.run = Run(None, verify=verify)
        self.reads_gold = True if hasattr(reward, "check_all") else None

    def score(self, rows: Sequence[Row], messages: bool = False) -> list[RewardResult]:
        scores = self.reward([[trajectory(row)] for row in rows], self.run)
        return [result_of(score) for (score,) in scores]


class FunctionTarget(Target):
    """A function of the user or of a package, called as training calls it."""

    def __init__(self, call: external.Call):
        self.call, self.name = call, call.name
        names = {external.PLURAL.get(p.name, p.name) for p in call.named}
        self.reads_gold = True if names & {*GOLD, "trajectory"} else None if call.open or "meta" in names else False
        self.takes_text = bool(names & {"completion", "prompt"})

    def score(self, rows: Sequence[Row], messages: bool = False) -> list[RewardResult]:
        self.call.messages = messages
        scores = external.score_by(self.call, [[trajectory(row)] for row in rows], Run(None))
        return [result_of(score) for (score,) in scores]


def load(spec: Spec) -> Target:
    """The target itself. Raises RewardlabError, or whatever its own code raises, where it cannot be loaded."""
    if spec["kind"] == "judge":
        return Judge(spec)
    if spec["kind"] == "function":
        return _function(spec)
    if spec["kind"] == "run":
        return _from_run(Path(spec["folder"]))
    verify = registry.part("reward", spec["verifier"]) if spec["verifier"] else None
    if spec["kind"] == "part":
        return PartTarget(registry.part("reward", spec["name"], **_settings(spec["settings"])), verify)
    return _from_recipe(registry.build(spec["name"], _settings(spec["settings"])), verify)


def _function(spec: Spec) -> Target:
    # a module of the user's project is found from the folder that the command runs in
    sys.path.insert(0, str(Path.cwd()))
    where, name = spec["where"], spec["function"]
    call = external.find(Path(where), name) if where.endswith(".py") else external.find_in_module(where, name)
    if isinstance(call.function, PartFactory):
        return PartTarget(call.function(**_settings(spec["settings"])))
    if spec["settings"] is not None:
        call = external.Call(call.function(**spec["settings"]), call.path)
    return FunctionTarget(call)


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
    return _from_recipe(registry.load_recipe(config["recipe"]), registry.part("reward", task.verifier) if task else None)


def trajectory(row: Row) -> Trajectory:
    """A row as a rollout. Its tokens are four bytes each, since an audit has no tokenizer."""
    gold = dict.fromkeys(GOLD, row.answer)
    problem = Problem((Message("user", row.prompt),), row.answer, {**gold, **row.meta})
    text = row.reply.encode("utf-8", "replace")
    # padded to whole four-byte words
    ids = np.frombuffer(text + b" " * (-len(text) % 4), np.uint32).astype(np.int64) % VOCABULARY
    prompt = Turn(None, np.zeros(1, np.int64), text=row.prompt)
    return Trajectory(problem, (prompt, Turn("policy", ids, text=row.reply)), stop="end")
