"""Rollouts that keep a memory see all problems of a step: on several devices each would else write one of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import rewardlab

ONCE = {"with_examples", "activation_steering", "unshifted"}
"""What these keep is found or said once, whatever the problems of the step are."""
INNER = {"visited"}
"""Runs within a rollout that sees all problems."""


def rollouts(tree: ast.Module) -> Iterator[tuple[str, bool, bool]]:
    """Each rollout of a file: its name, whether it sees all problems, and whether it or a function that it names has a memory."""
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}

    def reached(name: str, seen: set[str]) -> set[str]:
        if name not in seen:
            seen.add(name)
            for node in ast.walk(functions[name]):
                if isinstance(node, ast.Name) and node.id in functions:
                    reached(node.id, seen)
        return seen

    for name, function in functions.items():
        for made in function.decorator_list:
            call = made if isinstance(made, ast.Call) else ast.Call(made, [], [])
            if isinstance(call.func, ast.Name) and call.func.id == "rollout":
                nodes = [node for one in reached(name, set()) for node in ast.walk(functions[one])]
                memory = any(isinstance(node, ast.Attribute) and node.attr == "memory" for node in nodes)
                yield name, any(keyword.arg == "across_problems" for keyword in call.keywords), memory


def test_rollouts_with_a_memory_are_not_split_over_processes():
    root = Path(rewardlab.__file__).parent
    files = [path for room in ("methods", "rollouts") for path in (root / room).rglob("*.py")]
    found = [row for path in files for row in rollouts(ast.parse(path.read_text("utf-8")))]
    remembering = {name for name, _, memory in found if memory}
    assert {"evolving", "explorability_sampling", "spread_above"} <= remembering
    assert {name for name, across, memory in found if memory and not across} == ONCE | INNER
