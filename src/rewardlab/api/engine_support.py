"""Engines that can run a method, by asking the engines."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from typing import Any

from rewardlab import registry
from rewardlab.api.inputs import require_learning
from rewardlab.backends import trl, verl
from rewardlab.core import Recipe
from rewardlab.errors import RewardlabError

OTHERS: dict[str, Callable[[Recipe], str]] = {"TRL": trl.cannot_carry, "verl": verl.cannot_carry}
"""Engines beside the embedded one, and what each says to a recipe: why it cannot run it, or nothing."""
TEXT = "embedded"
"""The default policy of tasks whose problems are text."""


def carried(method: str) -> dict[str, str]:
    """Why each engine (embedded, TRL, verl) cannot run a method under its default settings; empty where it can.

    Whether the policy is a language model is told by the task of the method's claim.
    """
    recipe = registry.build(method)
    kind = policy_of(method)
    not_text = "" if kind == TEXT else f"its policy ({kind}) is not a causal language model"
    return {"embedded": _embedded(recipe), **{name: ask(recipe) or not_text for name, ask in OTHERS.items()}}


def _embedded(recipe: Recipe) -> str:
    try:
        require_learning(recipe)
    except RewardlabError as why:
        # the sentence names the method, and then what else to do with it
        return str(why).partition(";")[0].removeprefix(f"{recipe.name} ")
    return ""


def policy_of(method: str) -> str:
    """The kind of policy that plays the task of a method's claim, by the task's file: to make its problems may take a minute."""
    claim: Any = registry.claim_of(method)
    return _model_of(claim.task.partition(":")[0]) if claim is not None else TEXT


@functools.cache
def _model_of(task: str) -> str:
    tree = ast.parse(registry.task_files()[task].read_text("utf-8"))
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == task)
    keywords = (k for function in functions for node in ast.walk(function) if isinstance(node, ast.Call) for k in node.keywords)
    named = [k.value.value for k in keywords if k.arg == "model" and isinstance(k.value, ast.Constant)]
    return str(named[0]) if named else TEXT
