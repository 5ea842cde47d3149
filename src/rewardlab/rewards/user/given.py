"""What a user's function is given of rollouts: the arguments that it asks for, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import groupby
from types import SimpleNamespace
from typing import Any

from rewardlab.core import Run, Trajectory
from rewardlab.errors import RewardlabError, unknown
from rewardlab.rewards.calling import Arguments
from rewardlab.rewards.user.conventions import VERIFIERS, VERL
from rewardlab.rewards.user.functions import PLURAL, QUESTION, REPLY, Call
from rewardlab.verifiers.contract import GOLD

Place = tuple[str, Trajectory]
"""A rollout, after the words by which messages name it."""
MISSING = object()
"""Stands for a value that a rollout does not have."""


def arguments(call: Call, values: Mapping[str, Any], place: str) -> Arguments:
    """The values as arguments; those that the function takes by position only come first."""
    by_position = [p.name for p in call.named if p.kind is p.POSITIONAL_ONLY and p.name in values]
    return Arguments(
        [values[name] for name in by_position], {k: v for k, v in values.items() if k not in by_position}, place
    )  # fmt: skip


def of_one(call: Call, place: Place, run: Run) -> dict[str, Any]:
    """The values for a call that scores one rollout, by name."""
    where, trajectory = place
    known = known_of(call, trajectory)
    values = {p.name: _value(call, p, call.means[p.name], known, where, run) for p in call.named}
    if call.open:
        columns = {"prompt": _prompt(call, trajectory), "answer": trajectory.problem.answer, **trajectory.problem.meta}
        # what these two always pass
        passed = {"verl": VERL, "verifiers": VERIFIERS}.get(call.convention or "", ())
        values = columns | {name: known[name] for name in passed} | values
    return {k: v for k, v in values.items() if v is not MISSING}


def of_many(call: Call, batch: list[Place], run: Run) -> dict[str, Any]:
    """The values for a call that scores many rollouts: a list for every name."""
    values: dict[str, Any] = {}
    if call.open:
        # problems may differ in their columns; a column that one lacks is None for it
        columns = dict.fromkeys(k for _, t in batch for k in t.problem.meta)
        values = {"prompts": [_prompt(call, t) for _, t in batch], "answer": [t.problem.answer for _, t in batch]}
        values |= {k: [t.problem.meta.get(k) for _, t in batch] for k in columns}
    known = [(where, known_of(call, trajectory)) for where, trajectory in batch]
    for p in call.named:
        if p.name in ONCE:
            values[p.name] = ONCE[p.name](run)
        elif p.name == "group":
            values[p.name] = [t for _, t in batch]
        else:
            column = [_value(call, p, call.singular(p), row, where, run) for where, row in known]
            # a name that no rollout has keeps its default
            if any(v is not MISSING for v in column):
                values[p.name] = [None if v is MISSING else v for v in column]
    return values


ONCE: dict[str, Callable[[Any], Any]] = {
    "run": lambda run: run,
    # the last three are TRL's
    "trainer_state": lambda run: SimpleNamespace(global_step=getattr(run, "step", 0), max_steps=getattr(run, "steps", 0)),
    "log_metric": lambda run: run.log if hasattr(run, "log") else lambda name, value: None,
    "log_extra": lambda run: lambda name, values: None,
}
"""Arguments of which there is one in every call, and not one for each rollout."""


def _value(call: Call, p: Any, name: str, known: Mapping[str, Any], where: str, run: Run | None) -> Any:
    """The value for the argument `p`, by its singular name; `MISSING` if it keeps its default."""
    if name in ONCE:
        return ONCE[name](run)
    if name in known:
        return known[name]
    if p.default is p.empty:
        raise RewardlabError(f"{call.who} asks for {unknown_argument(p.name, known)} ({where})")
    return MISSING


def unknown_argument(name: str, known: Mapping[str, Any]) -> str:
    """That there is no such argument: the nearest names, or, where none is near, the columns that there are."""
    asked = str(unknown("argument", name, {*known, *PLURAL, *ONCE, "group"}))
    if "did you mean" in asked and name not in ("episode", "episodes", "turns", "messages", "conversation", "rollout", "rollouts"):
        return asked
    columns = ", ".join(column for column in known["extra_info"] if column not in ("prompt", "answer")) or "none"
    return (
        f"unknown argument {name!r}; columns of the data besides prompt and answer: {columns}; other arguments are completion, "
        "prompt, answer, trajectory (the whole episode, with its turns) and those in docs/REWARDS.md, Arguments"
    )


def known_of(call: Call, trajectory: Trajectory) -> dict[str, Any]:
    """All that a function may be given of a rollout, by its singular name."""
    problem = trajectory.problem
    fixed = {"trajectory": trajectory, "meta": dict(problem.meta)} | dict.fromkeys(REPLY, trajectory.reply)
    fixed["completion"] = _completion(call, trajectory)
    if any(call.singular(p) == "completion_id" for p in call.named):
        fixed["completion_id"] = _ids(trajectory)
    aliases = dict.fromkeys(QUESTION, _prompt(call, trajectory)) | dict.fromkeys(GOLD, problem.answer)
    # a query is prompt and reply in one text, from which functions for OpenRLHF cut the prompt off
    extra = {"data_source": "", "extra_info": dict(problem.meta), "query": problem.question + trajectory.reply}
    if shown := [image for m in problem.prompt for image in m.images]:
        extra |= {"images": shown, "image": shown[0]}
    # later tables win: a column replaces an alias such as `prompt`, but not the reply
    known = extra | aliases | dict(problem.meta) | fixed
    return known if call.convention != "verifiers" else _of_verifiers(known, problem.meta) | known


def _of_verifiers(known: dict[str, Any], columns: Mapping[str, Any]) -> dict[str, Any]:
    """What a function of verifiers is given besides: the state of a rollout of one turn, and the columns as `info`."""
    row = {name: known[name] for name in ("prompt", "completion", "answer")} | {"task": "", "info": dict(columns)} | dict(columns)
    return {"task": row["task"], "info": row["info"], "state": row}


def _prompt(call: Call, trajectory: Trajectory) -> Any:
    problem = trajectory.problem
    return [{"role": m.role, "content": m.text} for m in problem.prompt] if call.messages else problem.question


def _completion(call: Call, trajectory: Trajectory) -> Any:
    return [{"role": "assistant", "content": trajectory.reply}] if call.messages else trajectory.reply


def _ids(trajectory: Trajectory) -> list[int]:
    """The tokens of the reply, as TRL passes them: of the turns that `Trajectory.reply` joins, whatever is only read after them."""
    runs = [list(turns) for author, turns in groupby(trajectory.turns, key=lambda turn: turn.author) if author is not None]
    reply = next((turns for turns in reversed(runs) if turns[0].vectors is None), [])
    return [int(i) for turn in reply for i in turn.ids]
