"""The calling convention of a user's reward function, and how it is named: `mine.py:score?as=verl`.

    trl         f(prompts, completions, completion_ids, trainer_state, **columns) -> [number or None, ...]
    verl        f(data_source, solution_str, ground_truth, extra_info) -> number or {"score": number, ...}
    openrlhf    f(queries, prompts, labels), by position -> [number, ...] or {"rewards": [...], "scores": ..., "extra_logs": ...}
    verifiers   f(prompt, completion, answer, state, info, ...) -> number; in the plural, those of one group at a time

Most functions need not say it: their arguments tell. TRL 1.16 (GRPOTrainer, reward_funcs), verl 0.9.1 (naive reward manager),
OpenRLHF 0.11.2 (utils/agent.py), verifiers 0.1.14 (rubrics/rubric.py).
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rewardlab.core.score import Score, Term
from rewardlab.errors import RewardlabError, unknown

CONVENTIONS = ("trl", "verl", "openrlhf", "verifiers")
MARKED = re.compile(r"(.+)\?as=(\w*)", re.S)
OPENRLHF = ("queries", "prompts", "labels")
VERL = ("data_source", "solution_str", "ground_truth", "extra_info")
VERIFIERS = ("prompt", "completion", "answer", "state", "info", "task")
OF_VERIFIERS = ({"state", "parser"}, {"prompt", "completion"}), ({"states", "parser"}, {"prompts", "completions"})
"""A function of verifiers has an argument of both sets of a pair. `info` and `task` alone may be columns of anyone's data."""
GROUPS = {f"{name}s": name for name in VERIFIERS}
"""Arguments of a function of verifiers that hold an entry for each rollout of a group."""


def split(written: str) -> tuple[str, str | None]:
    """`mine.py:score?as=verl` as the function's place and its convention, None where none is said. Raises RewardlabError for one
    that does not exist.
    """
    # at the end alone: in a formula it belongs to a file in quotes
    if not (marked := MARKED.fullmatch(written)):
        return written, None
    place, said = marked.groups()
    if said not in CONVENTIONS:
        raise unknown("convention of reward functions", said, CONVENTIONS)
    return place, said


def recognised(names: set[str]) -> str | None:
    """The convention that the names of a function's arguments tell; None: ours, which takes all of these names."""
    if names >= {"queries", "labels"}:
        return "openrlhf"
    if "solution_str" in names or names >= {"data_source", "ground_truth"}:
        return "verl"
    if any(names & own and names & texts for own, texts in OF_VERIFIERS):
        return "verifiers"
    return "trl" if "completions" in names and "group" not in names else None


def meanings(parameters: Sequence[inspect.Parameter], convention: str | None) -> dict[str, str]:
    """What each argument is, by its name. OpenRLHF passes its three by position, so that their names are the author's."""
    means = {p.name: p.name for p in parameters}
    if convention == "openrlhf":
        by_position = [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY]
        if len(by_position) < len(OPENRLHF):
            raise RewardlabError(
                f"a function for OpenRLHF is called with {', '.join(OPENRLHF)} by position; this one takes {len(by_position)} "
                f"argument(s): {', '.join(by_position) or 'none'}"
            )
        means |= dict(zip(by_position, OPENRLHF, strict=False))
    return means


# ---- rubrics of verifiers --------------------------------------------------------------------------------------------


def is_rubric(found: Any) -> bool:
    """Whether an object is a rubric of verifiers: functions, and a weight for each."""
    funcs, weights = getattr(found, "funcs", None), getattr(found, "weights", None)
    return isinstance(funcs, list) and isinstance(weights, list) and not inspect.isclass(found)


class Rubric:
    """The functions of a rubric as one function of verifiers: each is a term of the score, with its weight; weight 0: it is logged.

    Raises RewardlabError for functions that score groups.
    """

    def __init__(self, rubric: Any, name: str):
        self.__name__ = name
        self.functions: list[tuple[Callable, float]] = list(zip(rubric.funcs, rubric.weights, strict=True))
        # a parser, and what else the rubric's author added for its functions
        self.objects: Mapping[str, Any] = dict(getattr(rubric, "class_objects", {}))
        asked = [list(inspect.signature(f).parameters.values()) for f, _ in self.functions]
        if grouped := [
            _name(f) for (f, _), own in zip(self.functions, asked, strict=True) if {p.name for p in own} & GROUPS.keys()
        ]:
            raise RewardlabError(f"the rubric {name} has functions that score groups ({', '.join(grouped)}): give them one by one")
        names = {p.name: p for own in asked for p in own if p.kind is not p.VAR_POSITIONAL and p.name not in self.objects}
        self.__signature__ = inspect.Signature(
            sorted((p.replace(kind=max(p.kind, p.KEYWORD_ONLY), annotation=p.empty) for p in names.values()), key=lambda p: p.kind)
        )

    async def __call__(self, **given: Any) -> Score:
        terms = {}
        for function, weight in self.functions:
            value = await self._value(function, {**given, **self.objects})
            terms[_name(function)] = Term(None if value is None else float(value), weight=weight or None)
        why = ", ".join(name for name, term in terms.items() if term.value is None)
        return Score(terms=terms, missing=bool(why), why=f"no verdict by {why}" if why else "")

    async def _value(self, function: Callable, given: Mapping[str, Any]) -> Any:
        asked = inspect.signature(function).parameters
        takes_all = any(p.kind is p.VAR_KEYWORD for p in asked.values())
        value = function(**{k: v for k, v in given.items() if takes_all or k in asked})
        return await value if inspect.isawaitable(value) else value


def _name(function: Callable) -> str:
    return getattr(function, "__name__", type(function).__name__)
