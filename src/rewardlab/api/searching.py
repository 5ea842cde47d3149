"""Test-time search: one method at one budget, or several compared at equal tokens."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from rewardlab.api.arguments import named_model
from rewardlab.api.checking import check_columns, need_answers, undecided
from rewardlab.api.evaluated import with_interval
from rewardlab.api.inputs import as_in_run, begin_run, held_out, in_environment, policy_of, task_of
from rewardlab.api.named_scorers import require_scorers, scorers_in
from rewardlab.api.order import in_order
from rewardlab.api.prompt_lengths import fit_prompts
from rewardlab.api.sampled import Ends, Unscored, candidates_of, check_scored, ends, tell_undecided, unscored
from rewardlab.api.search_advice import Measured, advice
from rewardlab.api.search_arms import Arm, arms, scorer_of
from rewardlab.api.streaming import Answers, answered, answers_file
from rewardlab.core import Problem, Recipe, Run, Score, Task, seed_of
from rewardlab.data.work import key_of
from rewardlab.engine.episodes import environment_of
from rewardlab.errors import RewardlabError
from rewardlab.models.learners import learner_model
from rewardlab.models.load import Policy
from rewardlab.prm import StepScorer, load_scorer
from rewardlab.report.searches import page as page_of
from rewardlab.runs.config import RunConfig
from rewardlab.runs.named import refuse_missing
from rewardlab.settings.domain import POSITIVE
from rewardlab.util.files import check_page, check_writable, write_text
from rewardlab.util.keeping import keeping
from rewardlab.util.progress import Bar

PILOT = 8
"""Problems on which the tokens of a setting are measured, to find the one that meets a budget."""
TRIES, MOST = 5, 4096
"""How often at most they are, and the largest setting that is tried."""


@in_order
def search(
    methods: Sequence[str | Recipe] | str | Recipe, task: Task | Path | str | None = None, *,
    model: str | Path | Policy | None = None, scorer: Any = None, budgets: Sequence[int] | int = (), problems: int = 100,
    settings: Mapping[str, Any] | None = None, out: Path | str | None = None, page: Path | str | None = None, batch: int = 16,
    candidates: bool = False, **config: Any,
) -> dict[str, Any]:  # fmt: skip
    """Answer a task's held-out problems by searches: methods that select an answer, such as beam_search and best_of_n.

    scorer: a reward, its name or formula, a plain function (completion, answer ...), "verifier", "prm:PATH", or "likelihood"; None
    is the method's own. Methods that read no scores ignore it beside others. budgets: tokens per problem, generated and read by all
    models, scorer included. For each, a method gets the largest n, width, trees or iterations that stays within it on a few of the
    problems; what was spent on all is measured. Without budgets a method has its own settings. settings: `n` for every method that
    has it, `dvts.branch` for one. out: a file that gets a row for each answer as soon as it is there. A call that was killed
    resumes from OUT.work, with the same result, and one that was finished gives it again. candidates: with every reply that was
    chosen among, and its score. page: an HTML page of accuracy against tokens. config: fields of RunConfig.

    The methods answer the same problems. "plan" says for each budget which to use, and which cannot be told apart from it.
    """
    budgets = sorted({POSITIVE.check("budgets", b) for b in ((budgets,) if isinstance(budgets, int) else budgets)})
    problems, batch = POSITIVE.check("problems", problems), POSITIVE.check("batch", batch)
    scorer = scorer_of(scorer)
    compared = arms(methods, settings or {}, scorer, bool(budgets))
    for path, check in ((out, check_writable), (page, check_page)):
        if path:
            check(Path(path))
    model = named_model(model)
    asked = _asked(compared, model, task, config, bool(page))
    about = {"task": asked.task.name, "model": asked.model, "scorer": "its own" if scorer is None else str(scorer)}
    made_of = {"methods": [arm.described for arm in asked.compared], "budgets": budgets, "problems": problems, "batch": batch}
    made_of |= {"candidates": True} if candidates else {}
    request = {**about, **made_of, "rows": asked.rows(problems), "config": asked.config.to_json()}
    # of two models that are objects nothing says that they are the same
    document = answered(out, request, repeats=model is None or isinstance(model, str))
    if document is None:
        searcher = _searcher(asked, model, problems, batch, candidates)
        with answers_file(out, request) as answers:
            document = answers.summary = about | searcher.found(asked.compared, budgets, answers)
    if page:
        write_text(Path(page), page_of(document))
    return document | {name: str(path) for name, path in (("out", out), ("page", page)) if path}


class Asked(NamedTuple):
    """compared: the methods as they play the task.  model: by name."""

    compared: list[Arm]
    task: Task
    model: str
    config: RunConfig

    def rows(self, n: int) -> str:
        """A key of the problems that are searched."""
        return key_of([[p.key, p.answer] for p in held_out(self.task, n)])


def _asked(
    compared: Sequence[Arm], model: str | Policy | None, task: Task | Path | str | None, settings: Mapping[str, Any], judged: bool
) -> Asked:
    """What is searched with what, before any model is loaded.  judged: the task must have answers to verify by."""
    refuse_missing(model)
    config, task = as_in_run(model, task, settings)
    task = task_of(task, config)
    compared = [replace(arm, recipe=in_environment(arm.recipe, task)) for arm in compared]
    for arm in compared:
        check_columns(arm.recipe, task)
        require_scorers(arm.recipe)
    if undecided(task):
        if judged:
            raise need_answers(task, "a page of accuracies")
        tell_undecided(task)
    name = config.model or task.model if model is None or isinstance(model, str) else model.name
    return Asked(compared, task, name, config)


def _searcher(asked: Asked, model: str | Policy | None, problems: int, batch: int, candidates: bool) -> Searcher:
    compared, task, _, config = asked
    policy = policy_of(model, config, task)
    for arm in compared:
        # all answer the problems that each of them can read
        task, _ = fit_prompts(task, policy, config, env=environment_of(arm.recipe))
    return Searcher(_runs(compared, policy, task, config), held_out(task, problems), batch, not undecided(task), candidates)


class Searcher:
    """Searches with several methods on the same problems.  judges: whether the problems have answers to verify by.  candidates:
    whether the replies that were not chosen are kept too.
    """

    def __init__(
        self, runs: Mapping[str, Run], problems: Sequence[Problem], batch: int, judges: bool, candidates: bool = False
    ):  # fmt: skip
        self.runs, self.problems, self.batch, self.judges, self.candidates = runs, problems, batch, judges, candidates
        self._checked: set[str] = set()

    def found(self, compared: Sequence[Arm], budgets: Sequence[int], answers: Answers) -> dict[str, Any]:
        """What is reported of all methods and budgets, with the plan where the budgets have been compared."""
        cells = self.cells(compared, budgets, answers)
        found: dict[str, Any] = {"n": len(self.problems), "results": [cell for cell, _ in cells]}
        if budgets and self.judges:
            found["plan"] = advice([known for _, known in cells if known], budgets)
        return found

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
            found = self._searched(arm.recipe, problems, run)
            self._check_scored(arm, found)
            answers.add(key, found)
        self._check_scored(arm, answers.done[key])
        return answers.done[key]

    def _check_scored(self, arm: Arm, found: Mapping[str, Any]) -> None:
        """Of a method's first batch: at once, and once, also where another call has searched it."""
        if arm.recipe.reward and arm.name not in self._checked:
            check_scored(arm.recipe.reward, Unscored(*found.get("unscored", (0, 0))), self.runs[arm.name])
            self._checked.add(arm.name)

    def _searched(self, recipe: Recipe, problems: Sequence[Problem], run: Run) -> dict[str, Any]:
        all_before, policy_before = run.token_count.total, run.policy.token_count.total
        with contextlib.ExitStack() as stack:
            for scorer in (model for model in run.models.values() if isinstance(model, StepScorer)):
                # replies were scored when they ended: what chooses among them need not read them again
                stack.enter_context(scorer.remembering())
            with keeping(run.policy):
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
        if self.candidates:
            rows = [row | {"candidates": candidates_of(*pair)} for row, *pair in zip(rows, groups, scores, strict=True)]
        told = {"unscored": unscored(scores)} if recipe.reward else {}
        sampled = ends(groups, run, played=environment_of(recipe) is not None)
        return {"rows": rows, "tokens": tokens, "policy_tokens": by_policy, "ends": sampled, **told}

    def _reported(self, cell: dict[str, Any], found: Sequence[Mapping[str, Any]]) -> tuple[dict, Measured | None]:
        rows = [row for done in found for row in done["rows"]]
        spent = sum(done["tokens"] for done in found) / len(rows)
        by_policy = sum(done["policy_tokens"] for done in found) / len(rows)
        # what has no verdict counts as wrong, as in every evaluation
        right = [float(bool(row["right"])) for row in rows]
        numbers = {"tokens": spent, "policy_tokens": by_policy, "scorer_tokens": spent - by_policy}
        numbers["replies"] = sum(row["replies"] for row in rows) / len(rows)
        numbers |= _told(found)
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


def _told(found: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """missing: the replies without a verdict of the reward, where it is asked.  cut_off: the share of replies that were, if any."""
    # older versions kept neither
    told = [Unscored(*done["unscored"]).missing for done in found if "unscored" in done]
    sampled = [Ends(*done["ends"]) for done in found if "ends" in done]
    cut_off, replies = sum(x.cut_off for x in sampled), sum(x.replies for x in sampled)
    return ({"missing": sum(told)} if told else {}) | ({"cut_off": cut_off / replies} if cut_off else {})


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
