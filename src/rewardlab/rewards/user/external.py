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
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rewardlab.core import Group, Problem, Run, Score, Scores, Trajectory
from rewardlab.errors import NotFinite, RewardlabError
from rewardlab.rewards.call_timeout import Watch
from rewardlab.rewards.calling import Arguments, results_of
from rewardlab.rewards.returned import blamed, check_steps
from rewardlab.rewards.reward import reward
from rewardlab.rewards.user.functions import Call, find, find_in_module, prepared
from rewardlab.rewards.user.given import MISSING, ONCE, Place, arguments, known_of, of_many, of_one, unknown_argument
from rewardlab.rewards.user.held import Key, file_of, held
from rewardlab.settings.hyperparameters import is_number

EXPECTED = 'a number, a bool, None, {"score": number} or a Score'


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
    path: str | None = None,
) -> Scores:
    """The same as `from_file`, for a function in a module that can be imported.

    path: the module's file, for one that was given in Python: it is read from there where no such module is found by its name.
    """
    return _scores(prepared(find_in_module(module, function, path), Path(module), settings, convention), groups, run)


@reward(over="groups")
def from_python(groups: list[Group], run: Run, *, function: str, place: str, code: str) -> Scores:
    """The same as `from_file`, for a function that was given in Python and that no file holds by a name.

    function: its name.  place, code: where it was written, and a hash of it, by which this process finds it (`held`).  Raises
    RewardlabError in a process that was not given it.
    """
    found = held((function, place, code))
    return _scores(prepared(found, file_of(found), None), groups, run)


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
    if (function := function_of(part)) is None:
        return None
    if part.name == "from_python":
        found = prepared(function, file_of(function), None)
    else:
        path = Path(part.settings["path"]).resolve() if part.name == "from_file" else Path(part.settings["module"])
        found = prepared(function, path, part.settings["settings"], part.settings["convention"])
    return found if isinstance(found, Call) else None


def function_of(part: Any) -> Any:
    """What the user wrote, behind a part; None for every other part."""
    if part.name == "from_file":
        return find(Path(part.settings["path"]).resolve(), part.settings["function"])
    if part.name == "from_module":
        return find_in_module(part.settings["module"], part.settings["function"], part.settings["path"])
    return held(key_of(part)) if part.name == "from_python" else None


def key_of(part: Any) -> Key:
    """What the function of a `from_python` is found by."""
    return part.settings["function"], part.settings["place"], part.settings["code"]


def score_by(call: Call, groups: list[Group], run: Run) -> Scores:
    """The scores of a user's function. Raises RewardlabError as `from_file` does."""
    places = [[(f"rollout {i} of group {g}", t) for i, t in enumerate(group)] for g, group in enumerate(groups)]
    flat = [place for group in places for place in group]
    with Watch(call.who, str(call.path), getattr(run, "reward_timeout", 0.0)) as watch:

        def results(calls: list[Arguments]) -> list[Any]:
            return results_of(call.function, calls, watch, lambda e, place: _blamed(call, watch, e, place))

        if not call.batched:
            given = results([arguments(call, of_one(call, place, run), place[0]) for place in flat])
        else:
            batches = [group for group in places if group] if call.grouped else [flat] * bool(flat)
            answers = results([arguments(call, of_many(call, batch, run), _together(batch)) for batch in batches])
            given = [x for answer, batch in zip(answers, batches, strict=True) for x in _as_list(call, answer, batch, watch)]
    scores = iter([_score(call, result, place) for result, place in zip(given, flat, strict=True)])
    return [[next(scores) for _ in group] for group in groups]


def check_arguments(call: Call, problems: Sequence[Problem], places: Sequence[str]) -> None:
    """Raise RewardlabError if the function asks for an argument that rollouts of a problem will not have.

    problems: the rows of a file.  places: where each of them is, for messages.
    """
    # without columns of its own, what every problem has
    known = known_of(call, Trajectory(replace(problems[0], meta={})))
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
            what = unknown_argument(p.name, known | columns | {"extra_info": columns})
            raise RewardlabError(f"{call.who} asks for {what} ({places[0]})")


def _blamed(call: Call, watch: Watch, error: Exception, place: str) -> RewardlabError:
    says = " ".join(str(error).split())
    hint = ""
    if not call.messages and isinstance(error, TypeError) and "string indices must be integers" in says:
        hint = "; if it expects messages, annotate its argument: completions: list[list[dict]]"
    return blamed(watch.where(error), error, place, hint)


def _together(batch: list[Place]) -> str:
    first, last = batch[0][0], batch[-1][0]
    return f"{len(batch)} rollouts at once: {first} to {last}" if len(batch) > 1 else first


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
        raise RewardlabError(f"{call.who} returned {str(result)[:80]!r}, not {EXPECTED} ({where}){_as_terms(result)}") from None


def _as_terms(result: Any) -> str:
    """How several numbers are returned, after an error; "" where a function has not returned several."""
    if not isinstance(result, Mapping) or "score" in result or not result or not all(map(is_number, result.values())):
        return ""
    terms = ", ".join(f'"{name}": Term({value})' for name, value in result.items())
    return f"; several numbers are terms that are added up: from rewardlab.core import Score, Term; Score(terms={{{terms}}})"
