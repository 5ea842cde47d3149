"""Rewards written by the user: a Python function in a file.

    def my_reward(completion, answer): return float(answer in completion)            one call per rollout
    def my_reward(completions, answers, **columns): return [...]                     one call for all, as in TRL
    def my_reward(group, completions): return [...]                                  one call for each group
    def compute_score(data_source, solution_str, ground_truth, extra_info): ...      as in verl
    def reward_func(queries, prompts, labels): return {"rewards": [...]}             as in OpenRLHF
    def my_reward(completion, answer, state, info): return 1.0                       as in verifiers, and its rubrics

Arguments are passed by name: the names in `functions`, their plurals, `run`, and every column of the data. See docs/REWARDS.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from rewardlab.core import Group, Problem, Run, Score, Scores, Trajectory
from rewardlab.errors import NotFinite, RewardlabError, unknown
from rewardlab.rewards.call_timeout import Watch
from rewardlab.rewards.calling import Arguments, results_of
from rewardlab.rewards.returned import blamed, check_steps
from rewardlab.rewards.reward import reward
from rewardlab.rewards.user.conventions import VERIFIERS, VERL
from rewardlab.rewards.user.functions import PLURAL, QUESTION, REPLY, Call, find, find_in_module, prepared
from rewardlab.verifiers.contract import GOLD

MISSING = object()
"""Stands for a value that a rollout does not have."""
EXPECTED = 'a number, a bool, None, {"score": number} or a Score'

Place = tuple[str, Trajectory]
"""A rollout, after the words by which messages name it."""


@reward(over="groups")
def from_file(
    groups: list[Group],
    run: Run,
    *,
    path: str,
    function: str,
    settings: dict[str, Any] | None = None,
    convention: str | None = None,
) -> Scores:
    """The result of `function` in the Python file `path`: a number, a bool, None for no verdict, {"score": number}, or a Score.

    A function with an argument of any plural name (completions, answers) is called once, with a list for every argument, and
    returns a list; with an argument `group`, once for each group. A column of the data takes precedence over an alias of the same
    name, except for the reply. The term is named after the function. An `async` function's calls run concurrently.
    settings: the function is called with them first, and returns the function to use.  A reward that is decorated with @reward is
    used as it is, with these settings.  convention: trl, verl, openrlhf or verifiers, whose manner the function is written in;
    None: as its arguments tell.  Raises RewardlabError, with file and line, for any error in the function.
    """
    return _scores(prepared(find(Path(path), function), Path(path).resolve(), settings, convention), groups, run)


@reward(over="groups")
def from_module(
    groups: list[Group],
    run: Run,
    *,
    module: str,
    function: str,
    settings: dict[str, Any] | None = None,
    convention: str | None = None,
) -> Scores:
    """The same as `from_file`, for a function in an installed module."""
    return _scores(prepared(find_in_module(module, function), Path(module), settings, convention), groups, run)


def _scores(found: Any, groups: list[Group], run: Run) -> Scores:
    """The scores of a function, or of a decorated reward. Raises NotFinite for NaN and infinity, naming function and rollout."""
    if not isinstance(found, Call):
        return found(groups, run)
    scores = score_by(found, groups, run)
    for g, row in enumerate(scores):
        for i, score in enumerate(row):
            if bad := [x for term in score.terms.values() for x in term.numbers if not math.isfinite(x)]:
                reply = groups[g][i].reply[:60]
                raise NotFinite(f"{found.who} returned {bad[0]} (rollout {i} of group {g}, reply {reply!r})")
    return scores


def call_of(part: Any) -> Call | None:
    """The user's function behind a part; None for every other part."""
    if part.name == "from_file":
        path = Path(part.settings["path"]).resolve()
        function = find(path, part.settings["function"])
    elif part.name == "from_module":
        path = Path(part.settings["module"])
        function = find_in_module(part.settings["module"], part.settings["function"])
    else:
        return None
    found = prepared(function, path, part.settings["settings"], part.settings["convention"])
    return found if isinstance(found, Call) else None


def score_by(call: Call, groups: list[Group], run: Run) -> Scores:
    """The scores of a user's function. Raises RewardlabError as `from_file` does."""
    places = [[(f"rollout {i} of group {g}", t) for i, t in enumerate(group)] for g, group in enumerate(groups)]
    flat = [place for group in places for place in group]
    with Watch(call.who, str(call.path), getattr(run, "reward_timeout", 0.0)) as watch:

        def results(calls: list[Arguments]) -> list[Any]:
            return results_of(call.function, calls, watch, lambda e, place: _blamed(call, watch, e, place))

        if not call.batched:
            given = results([_arguments(call, _of_one(call, place, run), place[0]) for place in flat])
        else:
            batches = [group for group in places if group] if call.grouped else [flat] * bool(flat)
            answers = results([_arguments(call, _of_many(call, batch, run), _together(batch)) for batch in batches])
            given = [x for answer, batch in zip(answers, batches, strict=True) for x in _as_list(call, answer, batch, watch)]
    scores = iter([_score(call, result, place) for result, place in zip(given, flat, strict=True)])
    return [[next(scores) for _ in group] for group in groups]


def check_arguments(call: Call, problems: Sequence[Problem], places: Sequence[str]) -> None:
    """Raise RewardlabError if the function asks for an argument that rollouts of a problem will not have.

    problems: the rows of a file.  places: where each of them is, for messages.
    """
    # without columns of its own, what every problem has
    known = _known(call, Trajectory(replace(problems[0], meta={})))
    for p in call.named:
        name = call.singular(p)
        if p.name == "group" or p.default is not p.empty or name in ONCE or name in known:
            continue
        lacking = [i for i, problem in enumerate(problems) if name not in problem.meta]
        if 0 < len(lacking) < len(problems):
            raise RewardlabError(
                f"{call.who} asks for {p.name!r}, and {len(lacking):,} of {len(problems):,} rows have no column {name!r}, first "
                f"{places[lacking[0]]}: give it in every row, or the argument a default"
            )
        if lacking:
            columns = dict.fromkeys(column for problem in problems for column in problem.meta)
            raise RewardlabError(f"{call.who} asks for {_unknown(p.name, known | columns | {'extra_info': columns})} ({places[0]})")


def _blamed(call: Call, watch: Watch, error: Exception, place: str) -> RewardlabError:
    says = " ".join(str(error).split())
    hint = ""
    if not call.messages and isinstance(error, TypeError) and "string indices must be integers" in says:
        hint = "; if it expects messages, annotate its argument: completions: list[list[dict]]"
    return blamed(watch.where(error), error, place, hint)


def _together(batch: list[Place]) -> str:
    first, last = batch[0][0], batch[-1][0]
    return f"{len(batch)} rollouts at once: {first} to {last}" if len(batch) > 1 else first


# ---- what the function is given --------------------------------------------------------------------------------------


def _arguments(call: Call, values: Mapping[str, Any], place: str) -> Arguments:
    """The values as arguments; those that the function takes by position only come first."""
    by_position = [p.name for p in call.named if p.kind is p.POSITIONAL_ONLY and p.name in values]
    return Arguments(
        [values[name] for name in by_position], {k: v for k, v in values.items() if k not in by_position}, place
    )  # fmt: skip


def _of_one(call: Call, place: Place, run: Run) -> dict[str, Any]:
    """The values for a call that scores one rollout, by name."""
    where, trajectory = place
    known = _known(call, trajectory)
    values = {p.name: _value(call, p, call.means[p.name], known, where, run) for p in call.named}
    if call.open:
        columns = {"prompt": _prompt(call, trajectory), "answer": trajectory.problem.answer, **trajectory.problem.meta}
        # what these two always pass
        passed = {"verl": VERL, "verifiers": VERIFIERS}.get(call.convention or "", ())
        values = columns | {name: known[name] for name in passed} | values
    return {k: v for k, v in values.items() if v is not MISSING}


def _of_many(call: Call, batch: list[Place], run: Run) -> dict[str, Any]:
    """The values for a call that scores many rollouts: a list for every name."""
    values: dict[str, Any] = {}
    if call.open:
        # problems may differ in their columns; a column that one lacks is None for it
        columns = dict.fromkeys(k for _, t in batch for k in t.problem.meta)
        values = {"prompts": [_prompt(call, t) for _, t in batch], "answer": [t.problem.answer for _, t in batch]}
        values |= {k: [t.problem.meta.get(k) for _, t in batch] for k in columns}
    known = [(where, _known(call, trajectory)) for where, trajectory in batch]
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
        raise RewardlabError(f"{call.who} asks for {_unknown(p.name, known)} ({where})")
    return MISSING


def _unknown(name: str, known: Mapping[str, Any]) -> str:
    """That there is no such argument: the nearest names, or, where none is near, the columns that there are."""
    asked = str(unknown("argument", name, {*known, *PLURAL, *ONCE, "group"}))
    if "did you mean" in asked and name not in ("episode", "episodes", "turns", "messages", "conversation", "rollout", "rollouts"):
        return asked
    columns = ", ".join(column for column in known["extra_info"] if column not in ("prompt", "answer")) or "none"
    return (
        f"unknown argument {name!r}; columns of the data besides prompt and answer: {columns}; other arguments are completion, "
        "prompt, answer, trajectory (the whole episode, with its turns) and those in docs/REWARDS.md, Arguments"
    )


def _known(call: Call, trajectory: Trajectory) -> dict[str, Any]:
    """All that a function may be given of a rollout, by its singular name."""
    problem = trajectory.problem
    fixed = {"trajectory": trajectory, "meta": dict(problem.meta)} | dict.fromkeys(REPLY, trajectory.reply)
    fixed["completion"] = _completion(call, trajectory)
    if any(call.singular(p) == "completion_id" for p in call.named):
        fixed["completion_id"] = _ids(trajectory)
    aliases = dict.fromkeys(QUESTION, _prompt(call, trajectory)) | dict.fromkeys(GOLD, problem.answer)
    # a query is prompt and reply in one text, from which functions for OpenRLHF cut the prompt off
    extra = {"data_source": "", "extra_info": dict(problem.meta), "query": problem.question + trajectory.reply}
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


# ---- what it returns -------------------------------------------------------------------------------------------------


def _as_list(call: Call, answer: Any, batch: list[Place], watch: Watch) -> list[Any]:
    """What a call for many rollouts returned, as a list with an entry for each of them."""
    rewards = answer.get("rewards", answer) if isinstance(answer, Mapping) else answer
    if isinstance(rewards, str | bytes | Mapping | set | frozenset) or not hasattr(rewards, "__iter__"):
        kind = "text" if isinstance(rewards, str) else type(rewards).__name__
        what = f"the {kind} {str(rewards)[:60]!r}" if rewards is not None else "None (is there a `return`?)"
        raise RewardlabError(
            f"{call.who} takes lists, so it must return a list with a reward for each of the {len(batch)} rollouts; "
            f"it returned {what}"
        )
    try:
        # an iterator, or a tensor without dimensions, may fail here
        rewards = list(rewards)
    except Exception as e:
        raise _blamed(call, watch, e, _together(batch)) from e
    if len(rewards) != len(batch):
        raise RewardlabError(f"{call.who} returned {len(rewards)} rewards for {len(batch)} rollouts ({_together(batch)})")
    return rewards


def _score(call: Call, result: Any, place: Place) -> Score:
    where, trajectory = place
    if isinstance(result, Score):
        return check_steps(result.named(call.name), trajectory, call.who, where)
    number = _number(call, result, where)
    return Score(number, why=f"{call.who} returned None for {where}" if number is None else "").named(call.name)


def _number(call: Call, result: Any, where: str) -> float | None:
    plain = result.get("score", MISSING) if isinstance(result, Mapping) else result
    if plain is None:
        return None
    try:
        # float("1") would accept text, which is more likely a returned reply than a score
        if isinstance(plain, str | bytes):
            raise TypeError
        return float(plain)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        if callable(plain):
            raise RewardlabError(f"{call.who} returned a function; give its settings, as in FILE.py:{call.name}(x=1)") from None
        raise RewardlabError(f"{call.who} returned {str(result)[:80]!r}, not {EXPECTED} ({where})") from None
