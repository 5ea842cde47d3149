"""Test-time search: one method at one budget, or several compared at equal tokens."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from rewardlab import registry
from rewardlab.api.arguments import named_model
from rewardlab.api.evaluation import with_interval
from rewardlab.api.inputs import as_in_run, begin_run, held_out, policy_of, require_scorers, scorers_in, task_of
from rewardlab.api.measuring import check_columns, need_answers, without_answers
from rewardlab.api.prompt_lengths import fit_prompts
from rewardlab.api.streaming import Answers, answers_file
from rewardlab.core import Learner, Problem, Recipe, Run, Score, Task, seed_of
from rewardlab.data.work import key_of
from rewardlab.errors import RewardlabError
from rewardlab.models.load import Policy, learner_model
from rewardlab.prm import StepScorer, load_scorer
from rewardlab.registry.formula import read_reward
from rewardlab.report.searches import page as page_of
from rewardlab.rewards.reward import Reward
from rewardlab.rewards.task import correct
from rewardlab.runs.config import RunConfig, refuse_missing
from rewardlab.settings.domain import POSITIVE
from rewardlab.settings.old_names import unknown_setting
from rewardlab.util.files import check_writable, write_text
from rewardlab.util.intervals import holm, interval, p_value
from rewardlab.util.progress import Bar

# ---- The methods of a search, under their settings and with their scorer ---------------------------------------------

SCALES = ("n", "width", "trees", "iterations")
"""The setting of a rollout by which a search spends more: the first of these that it has."""


@dataclass(frozen=True)
class Arm:
    """A method as it searches.  scale: the setting that a budget decides.  setting: what it decided."""

    name: str
    recipe: Recipe
    scale: str
    setting: dict[str, int] = field(default_factory=dict)

    def at(self, value: int) -> Arm:
        rollout = self.recipe.required("rollout").but_innermost(**{self.scale: value})
        return replace(self, recipe=self.recipe.but(rollout=rollout), setting={self.scale: value})

    @property
    def described(self) -> dict[str, Any]:
        """All that its answers depend on, as plain data."""
        return self.recipe.to_json()


def arms(
    methods: Sequence[str | Recipe] | str | Recipe, settings: Mapping[str, Any], scorer: Reward | str | None, scaled: bool
) -> list[Arm]:
    """The methods, each with the settings that it has.  scaled: a budget decides how much each spends.

    Raises RewardlabError for a method that selects no answer, for one that is named twice, and for a setting that none of them has
    or that the budget decides.
    """
    listed = [methods] if isinstance(methods, str | Recipe) else list(methods)
    if not listed:
        raise RewardlabError("which methods? such as beam_search, dvts, best_of_n (rewardlab list --folder search)")
    own = [_own(method, settings) for method in listed]
    if lost := [key for key in settings if not any(key in taken for taken in own)]:
        raise unknown_setting(f"setting of {', '.join(map(_name, listed))}", lost[0], {key for m in listed for key in _known(m)})
    bound = [{plain: settings[key] for key, plain in taken.items()} for taken in own]
    found = [_arm(method, values, scorer, scaled) for method, values in zip(listed, bound, strict=True)]
    names = [arm.name for arm in found]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise RewardlabError(f"{twice} is named twice: give each method once, recipes under names of their own (.but(name=...))")
    return found


def scored(recipe: Recipe, scorer: Reward | str | None) -> Recipe:
    """The recipe with another scorer (see `api.search`); as it is, if it reads no scores."""
    if recipe.reward is None or scorer is None or scorer == "likelihood":
        # without a reward model the likelihood is what all of them score by, in the form that their selection needs
        return recipe
    if isinstance(scorer, Reward):
        return recipe.scored_by(scorer)
    if scorer == "verifier":
        return recipe.scored_by(correct())
    if scorer.startswith("prm:"):
        # every=0: it is loaded with the run and never updated
        prm = Learner("prm", scorer, Recipe(), every=0)
        return recipe.scored_by(registry.part("reward", "prm_score", model="prm")).but(also=(*recipe.also, prm))
    return recipe.scored_by(read_reward(scorer))


def _arm(method: str | Recipe, settings: Mapping[str, Any], scorer: Reward | str | None, scaled: bool) -> Arm:
    recipe = scored(registry.build(method, settings) if isinstance(method, str) else method.validate(), scorer)
    name = _name(method)
    if not name:
        raise RewardlabError("a recipe that searches needs a name: recipe.but(name=...)")
    if recipe.select is None or recipe.rollout is None:
        raise RewardlabError(f"{name} selects no answer; beam_search, dvts, best_of_n and majority_vote do")
    scale = next((name for name in SCALES if name in recipe.rollout.innermost.settings), "")
    if scaled and not scale:
        raise RewardlabError(f"{name} has none of the settings {', '.join(SCALES)}, so no budget can decide how much it spends")
    if scaled and scale in settings:
        raise RewardlabError(f"{name}: {scale} is what the budget decides; give a budget or {scale}")
    return Arm(name, recipe, scale)


def _name(method: str | Recipe) -> str:
    if isinstance(method, Recipe):
        return method.name
    return "+".join(registry.spell(name) for name in method.split("+"))


def _own(method: str | Recipe, settings: Mapping[str, Any]) -> dict[str, str]:
    """The settings that a method takes: their names as given, and its own names for them. What names it goes before the others."""
    plain = {key: key for key in settings if key in _known(method)}
    owned = {key: key.rpartition(".") for key in settings if "." in key}
    dotted = {key: name for key, (owner, _, name) in owned.items() if registry.spell(owner) == _name(method)}
    return {key: name for key, name in plain.items() if name not in dotted.values()} | dotted


def _known(method: str | Recipe) -> set[str]:
    if isinstance(method, Recipe):
        return set()
    return {p.flag.removeprefix("--").replace("-", "_").rpartition(".")[2] for p in registry.parameters(method)}


# ---- Which search to use at which budget, and where the measurements do not tell -------------------------------------

SLACK = 1.05
"""What a method may spend of a budget that it was fitted to on a few problems."""


@dataclass(frozen=True)
class Measured:
    """A method under a setting: tokens per problem, and for each problem 1 if its answer was right."""

    method: str
    setting: str
    tokens: float
    right: tuple[float, ...]

    @property
    def accuracy(self) -> float:
        return float(np.mean(self.right))


def advice(measured: Sequence[Measured], budgets: Sequence[int]) -> list[dict[str, Any]]:
    """For each budget the method with the highest accuracy that spends no more, and how surely it beats the others.

    A method counts with its best setting within the budget, that of a smaller budget too. Differences are paired over problems;
    they are decided if p, adjusted for their number (Holm), is at most 0.05. "tied" are the methods that are not, with their
    tokens: the words name the cheapest of them.
    """
    return [_advice(budget, [m for m in measured if m.tokens <= SLACK * budget]) for budget in budgets]


def _advice(budget: int, within: Sequence[Measured]) -> dict[str, Any]:
    # of equal accuracies the one that costs less
    ordered = sorted(within, key=lambda m: (-m.accuracy, m.tokens))
    best_of_each: dict[str, Measured] = {}
    for m in ordered:
        best_of_each.setdefault(m.method, m)
    if not best_of_each:
        return {"budget": budget, "use": None, "words": "no method stays within it"}
    best, *others = best_of_each.values()
    gains = [np.subtract(best.right, m.right) for m in others]
    adjusted = holm([p_value(gain) for gain in gains])
    compared = [_compared(m, gain, p) for m, gain, p in zip(others, gains, adjusted, strict=True)]
    tied = [m for m, p in zip(others, adjusted, strict=True) if p > 0.05]
    return {
        "budget": budget, "use": best.method, "setting": best.setting, "accuracy": best.accuracy, "tokens": best.tokens,
        "against": compared, "tied": [m.method for m in tied], "words": _words(best, others, tied),
    }  # fmt: skip


def _compared(other: Measured, gain: np.ndarray, p: float) -> dict[str, Any]:
    mean, low, high = (float(x) for x in interval(gain))
    # one problem has no interval
    ci95 = [low, high] if np.isfinite(low) else None
    return {"method": other.method, "tokens": other.tokens, "gain": mean, "ci95": ci95, "p_adjusted": p}


def _words(best: Measured, others: Sequence[Measured], tied: Sequence[Measured]) -> str:
    under = f" ({best.setting})" if best.setting else ""
    said = f"{best.method}{under}: {best.accuracy:.1%} right for {best.tokens:,.0f} tokens a problem"
    if not others:
        return f"{said}; nothing to compare it with"
    if not tied:
        return f"{said}, and surely more than {_and([m.method for m in others])}"
    cheapest = min((best, *tied), key=lambda m: m.tokens)
    on = f"on these {len(best.right):,} problems it cannot be told apart from {_and([m.method for m in tied])}"
    if cheapest is best:
        return f"{said}; {on}, which cost more"
    return f"{said}; {on}, of which {cheapest.method} is the cheapest: {cheapest.tokens:,.0f} tokens"


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


PILOT = 8
"""Problems on which the tokens of a setting are measured, to find the one that meets a budget."""
TRIES, MOST = 5, 4096
"""How often at most they are, and the largest setting that is tried."""


def search(
    methods: Sequence[str | Recipe] | str | Recipe, task: Task | str | None = None, *, model: str | Policy | None = None,
    scorer: Reward | str | None = None, budgets: Sequence[int] | int = (), problems: int = 100,
    settings: Mapping[str, Any] | None = None, out: Path | str | None = None, page: Path | str | None = None, batch: int = 16,
    **config: Any,
) -> dict[str, Any]:  # fmt: skip
    """Answer a task's held-out problems by searches: methods that select an answer, such as beam_search and best_of_n.

    scorer: a reward, its name or formula, "verifier", "prm:PATH", or "likelihood"; None is the method's own. A method that reads no
    scores, such as majority_vote, ignores it.  budgets: tokens per problem, generated and read by all models, scorer included. For
    each, a method gets the largest n, width, trees or iterations that stays within it on a few of the problems; what was spent on
    all is measured. Without budgets a method has its own settings.  settings: `n` for every method that has it, `dvts.branch` for
    one.  out: a file that gets a row for each answer as soon as it is there. A call that was killed resumes from OUT.work, with the
    same result.  page: an HTML page of accuracy against tokens.  config: fields of RunConfig.

    The methods answer the same problems. "plan" says for each budget which to use, and which cannot be told apart from it.
    """
    budgets = sorted({POSITIVE.check("budgets", b) for b in ((budgets,) if isinstance(budgets, int) else budgets)})
    for name, value in (("problems", problems), ("batch", batch)):
        POSITIVE.check(name, value)
    compared = arms(methods, settings or {}, scorer, bool(budgets))
    for path in (out, page):
        if path:
            check_writable(Path(path))
    searcher, about, run_config = _prepared(compared, named_model(model), task, config, problems, batch, bool(page))
    about |= {"scorer": "its own" if scorer is None else str(scorer)}
    made_of = {"methods": [arm.described for arm in compared], "budgets": budgets, "problems": problems, "batch": batch}
    with answers_file(out, {**about, **made_of, "config": run_config.to_json()}) as answers:
        cells = searcher.cells(compared, budgets, answers)
    document = {**about, "n": len(searcher.problems), "results": [cell for cell, _ in cells]}
    if budgets and searcher.judges:
        document["plan"] = advice([known for _, known in cells if known], budgets)
    if page:
        write_text(Path(page), page_of(document))
    return document | {name: str(path) for name, path in (("out", out), ("page", page)) if path}


def _prepared(
    compared: Sequence[Arm], model: str | Policy | None, task: Task | str | None, settings: Mapping[str, Any], problems: int,
    batch: int, judged: bool,
) -> tuple[Searcher, dict[str, Any], RunConfig]:  # fmt: skip
    """What searches, the task and the model by name, and the configuration.  judged: the task must have answers to verify by."""
    refuse_missing(model)
    config, task = as_in_run(model, task, settings)
    task = task_of(task, config)
    for arm in compared:
        check_columns(arm.recipe, task)
        require_scorers(arm.recipe)
    if judged and without_answers(task):
        raise need_answers(task, "a page of accuracies")
    policy = policy_of(model, config, task)
    task, _ = fit_prompts(task, policy, config)
    name = config.model or task.model if model is None or isinstance(model, str) else policy.name
    searcher = Searcher(_runs(compared, policy, task, config), held_out(task, problems), batch, not without_answers(task))
    return searcher, {"task": task.name, "model": name}, config


class Searcher:
    """Searches with several methods on the same problems.  judges: whether the problems have answers to verify by."""

    def __init__(self, runs: Mapping[str, Run], problems: Sequence[Problem], batch: int, judges: bool):
        self.runs, self.problems, self.batch, self.judges = runs, problems, batch, judges

    def cells(self, compared: Sequence[Arm], budgets: Sequence[int], answers: Answers) -> list[tuple[dict, Measured | None]]:
        """Each method at each budget, or at its own settings: what is reported of it, and its verdicts for the plan."""
        levels: list[int | None] = [*budgets] or [None]
        todo = [(arm, budget) for budget in levels for arm in compared]
        with Bar("searching", len(todo) * len(self.problems)) as bar:
            found = [self._cell(arm, budget, answers, bar) for arm, budget in todo]
        if all("why" in cell for cell, _ in found):
            raise RewardlabError("; ".join(cell["why"] for cell, _ in found) + ": give a larger budget")
        return found

    def _cell(self, arm: Arm, budget: int | None, answers: Answers, bar: Bar) -> tuple[dict, Measured | None]:
        cell: dict[str, Any] = {"method": arm.name, "budget": budget}
        if budget is not None:
            bar.advance(f"finding the {arm.scale} of {arm.name} for {budget:,} tokens", 0)
            value, cell["pilot_tokens"], least = self._fitting(arm, budget, answers)
            if value is None:
                bar.advance(arm.name, len(self.problems))
                return {**cell, "why": f"{arm.name} spends {least:,.0f} tokens a problem at {arm.scale}=1"}, None
            arm = arm.at(value)
        found = []
        for place in range(0, len(self.problems), self.batch):
            part = self.problems[place : place + self.batch]
            done = self._answered(arm, part, f"from {place}", answers)
            found.append(done)
            answers.write([{"method": arm.name, "budget": budget, "setting": arm.setting, **row} for row in done["rows"]])
            bar.advance(f"{arm.name} {budget or ''}", len(part))
        return self._reported({**cell, "setting": arm.setting}, found)

    def _answered(self, arm: Arm, problems: Sequence[Problem], place: str, answers: Answers) -> dict[str, Any]:
        """The answers to some problems, from what is kept or searched for now, with the tokens of all models."""
        key = key_of(arm.name, arm.setting, place, [[p.key, p.answer] for p in problems])
        if key not in answers.done:
            own = self.runs[arm.name]
            # random numbers of the batch alone, so that a call that resumes gives what it would have given at once
            run = replace(own.detached(), seed=seed_of(own.seed, key))
            answers.add(key, self._searched(arm.recipe, problems, run))
        return answers.done[key]

    def _searched(self, recipe: Recipe, problems: Sequence[Problem], run: Run) -> dict[str, Any]:
        all_before, policy_before = run.token_count.total, run.policy.token_count.total
        with contextlib.ExitStack() as stack:
            for scorer in (model for model in run.models.values() if isinstance(model, StepScorer)):
                # replies were scored when they ended: what chooses among them need not read them again
                stack.enter_context(scorer.remembering())
            groups = recipe.rollout(list(problems), run)  # type: ignore[misc]  # `arms` refuses recipes without it
            scores = recipe.reward(groups, run) if recipe.reward else [[Score(None)] * len(group) for group in groups]
        chosen = [recipe.select(group, row, run) for group, row in zip(groups, scores, strict=True)]  # type: ignore[misc]
        # read before verifying, which is no part of the method
        tokens, by_policy = run.token_count.total - all_before, run.policy.token_count.total - policy_before
        verdicts = [row[0].value for row in run.verify([[t] for t in chosen], run)] if self.judges else [None] * len(chosen)
        rows = [
            {"prompt": p.question, "answer": t.reply, "right": None if v is None else v >= 1.0, "replies": len(group)}
            for p, t, v, group in zip(problems, chosen, verdicts, groups, strict=True)
        ]
        return {"rows": rows, "tokens": tokens, "policy_tokens": by_policy}

    def _reported(self, cell: dict[str, Any], found: Sequence[Mapping[str, Any]]) -> tuple[dict, Measured | None]:
        rows = [row for done in found for row in done["rows"]]
        spent = sum(done["tokens"] for done in found) / len(rows)
        by_policy = sum(done["policy_tokens"] for done in found) / len(rows)
        # what has no verdict counts as wrong, as in every evaluation
        right = [float(bool(row["right"])) for row in rows]
        numbers = {"tokens": spent, "policy_tokens": by_policy, "scorer_tokens": spent - by_policy}
        numbers["replies"] = sum(row["replies"] for row in rows) / len(rows)
        if not self.judges:
            return {**cell, "accuracy": None, **numbers}, None
        setting = ", ".join(f"{k}={v}" for k, v in cell["setting"].items())
        known = Measured(cell["method"], setting, spent, tuple(right))
        return {**cell, "accuracy": with_interval(right), **numbers}, known

    def _fitting(self, arm: Arm, budget: int, answers: Answers) -> tuple[int | None, int, float]:
        """The largest value of the arm's scale within the budget on the pilot problems; all tokens of finding it; those of 1."""
        pilot = self.problems[:PILOT]
        spent: dict[int, float] = {}
        value: int | None = 1
        while value is not None and len(spent) < TRIES:
            spent[value] = self._answered(arm.at(value), pilot, "pilot", answers)["tokens"] / len(pilot)
            value = next_value(spent, budget)
        within = [v for v, tokens in spent.items() if tokens <= budget]
        return max(within, default=None), round(sum(spent.values()) * len(pilot)), spent[1]


def next_value(spent: Mapping[int, float], budget: float) -> int | None:
    """The value to try next, given the tokens that others spent, to find the largest within the budget; None if it is found.

    On a line through the nearest values on both sides, or through the origin as long as all were within.
    """
    within = [v for v, tokens in spent.items() if tokens <= budget]
    if not within:
        return None
    low = max(within)
    high = min((v for v in spent if v > low), default=None)
    if high is None:
        # a search that is complete spends no more, however much it is given
        if any(spent[v] == spent[low] for v in spent if v < low) or spent[low] == 0:
            return None
        # one more at least: what one costs may be less than its share of what is spent
        value = min(MOST, max(low + 1, int(low * budget / spent[low])))
        return value if value > low else None
    if high - low <= 1:
        return None
    slope = (spent[high] - spent[low]) / (high - low)
    value = min(high - 1, max(low + 1, int(low + (budget - spent[low]) / slope)))
    # far apart, a line between them says little
    return math.isqrt(low * high) if value == low + 1 and high > 4 * low else value


def _runs(compared: Sequence[Arm], policy: Policy, task: Task, config: RunConfig) -> dict[str, Run]:
    """A run for each method; what several of them score with is loaded once."""
    loaded: dict[tuple[str, str], Any] = {}
    runs = {}
    for arm in compared:
        run = begin_run(arm.recipe.but(also=()), policy, task, config)
        if run.verify is None:
            raise RewardlabError(f"the task {task.name} has no verifier")
        for learner in arm.recipe.also:
            key = (learner.name, learner.init)
            loaded[key] = run.models[learner.name] = loaded.get(key) or learner_model(learner, policy)
        for name in scorers_in(arm.recipe):
            key = (name, name)
            loaded[key] = run.models[name] = loaded.get(key) or load_scorer(name, str(policy.device))
        runs[arm.name] = run
    return runs
