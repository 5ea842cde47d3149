"""Several methods on the same problems, with equal updates or equal tokens, in a folder from which a stopped comparison resumes."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rewardlab.api.arguments import check_config
from rewardlab.api.dry_run import policy_before_runs
from rewardlab.api.idle import tell_idle
from rewardlab.api.inputs import in_environment, task_of
from rewardlab.api.order import in_order
from rewardlab.api.pair_labels import check_rows
from rewardlab.api.prompt_lengths import fit_prompts
from rewardlab.api.stages import check_stages
from rewardlab.checks.kept import STARTS
from rewardlab.checks.pairs import Rehearsal, rehearsals
from rewardlab.checks.workers import Crew, shared_processes
from rewardlab.comparisons.arms import ONE_REPLY, SELECTED, Arm, arms_of, measured_alike, shared_reward
from rewardlab.comparisons.completing import Record, complete, complete_already, measured_problems
from rewardlab.comparisons.estimate import seconds
from rewardlab.comparisons.frontier import axes, names_of
from rewardlab.comparisons.plan import TOKENS, UPDATES, Plan, new_comparison, read_plan
from rewardlab.comparisons.side_by_side import crew
from rewardlab.comparisons.tuning import numbers_to_choose_by
from rewardlab.core import Recipe, Task
from rewardlab.data.in_memory import GivenRows, is_rows
from rewardlab.errors import RewardlabError, unknown
from rewardlab.models.checkpoint import absolute_name
from rewardlab.registry.formula import reward_from
from rewardlab.report.html import duration
from rewardlab.runs.config import RunConfig
from rewardlab.runs.track import trackers
from rewardlab.settings.domain import PATH
from rewardlab.util.progress import console

OWN_REWARD = "reward"
"""What runs call the mean of their own reward on held-out problems (`evals/own_reward.py`)."""
PAIRS, PREFERRED = "pair_likelihood", "preferred"
"""What `pairs_preferred` leads with, and the share of pairs that it tells beside it."""
STEPS = 20  # of every run, if neither steps nor a budget are given


@in_order
def compare(
    methods: Sequence[str | Recipe], config: RunConfig | None = None, *, settings: Mapping[str, Any] | None = None,
    reward: Any = None, seeds: Sequence[int] = range(5), measure: str | None = None, jobs: int | None = None,
    out: Path | str | None = None, keep_models: bool = False, x: str | None = None, y: str | None = None,
    equal: str | None = None, rates: Sequence[float] = (), rate_seeds: int = 2, self_contained: bool = False,
    dry_run: bool = False, **changes: Any,
) -> Record:  # fmt: skip
    """Run every method on every seed and compare them; returns the contents of compare.json.

    methods: names, stacks (`grpo+hapo`), or recipes with distinct names.  config, and `changes` to it by name: what all runs share
    (task, model, lora_rank, eval_problems ...; rows in Python are kept in the folder); they end after config.steps (default 20)
    steps, or at config.budget tokens.  settings: of the methods: `n` for all, `grpo.n` for one; a list of numbers compares each of
    them.  reward: in place of the methods' own, a part, a text as of --reward, or a function of a module that can be imported.
    measure: the number compared; None: the first one that the first method measures.  jobs: runs at a time; None: as many as suit
    model and machine (`side_by_side`).  out: the folder; None: a new one in runs/.  keep_models: of finished runs, whose models
    are removed otherwise.  x, y: the axes of the frontier (see `frontier.axes`); y None: the number compared.  equal: what all
    runs get alike: "updates", or "tokens": the budget, or without one what the first method which trains uses in config.steps
    steps with the same seed; None: tokens with a budget, else updates.  rates: learning rates, from which each method gets its own
    (see `tuning`), each tried on `rate_seeds` seeds.  self_contained: every page holds Plotly's library (5 MB), in place of
    loading it from a file beside it.  dry_run: only what is checked beforehand; returns how many runs it takes, and seconds.

    One step of each method checks beforehand what can be known. Raises RewardlabError for what is wrong, and for a run that fails;
    `resume` then completes the comparison.
    """
    config = _shared(config, changes)
    arms = tuple(arms_of(methods, settings, reward := None if reward is None else reward_from(reward)))
    equal = equal or (TOKENS if config.budget else UPDATES)
    alike: dict[str, Any] = {"equal": equal, "rates": tuple(rates), "rate_seeds": rate_seeds}
    plan = Plan(arms, config, tuple(seeds), measure or "", str(reward or ""), keep_models, *_axes(x, y), **alike)
    _check_budget(plan)
    task = task_of(None, config)
    measured_problems(task, config)
    _say(f"{_runs(plan)} on {task.name}: {plan.alike}")
    processes = _processes(plan, task, jobs)
    if dry_run:
        return _dry_run(plan, task, processes)
    with new_comparison(out, plan.methods, config.task) as folder, shared_processes(processes):
        plan, _ = _prepared(*_written(plan, task, folder), folder, processes)
        plan.save(folder)
        return complete(plan, folder, self_contained)


def _dry_run(plan: Plan, task: Task, processes: Crew) -> Record:
    """What a comparison would take, in numbers, once what can be known beforehand has been checked."""
    with TemporaryDirectory() as folder, shared_processes(processes):
        plan, whole = _prepared(*_written(plan, task, Path(folder)), Path(folder), processes)
    return {
        "task": task.name, "methods": [arm.name for arm in plan.arms], "seeds": len(plan.seeds), "alike": plan.alike,
        "runs": len(plan.arms) * len(plan.seeds) + len(plan.trained) * len(plan.rates) * plan.rate_seeds,
        "measure": plan.measure, "seconds": round(whole),
    }  # fmt: skip


def _written(plan: Plan, task: Task, folder: Path) -> tuple[Plan, Task]:
    """The plan and its task with rows that were given in Python as files of the folder: runs are processes of their own, and the
    comparison may be completed by another one."""
    given = {name: rows for name in ("task", "test") if isinstance(rows := getattr(plan.config, name), GivenRows)}
    if not given:
        return plan, task
    files = {name: rows.written(folder.resolve() / rows.replace(" ", "_")) for name, rows in given.items()}
    plan = replace(plan, config=plan.config.but(**{name: str(file) for name, file in files.items()}))
    return plan, task_of(None, plan.config)


def _prepared(plan: Plan, task: Task, folder: Path, processes: Crew) -> tuple[Plan, float]:
    """The plan as its folder keeps it, after all checks that come before a run; and about how many seconds its runs will take."""
    # here, since runs get recipes as JSON, which does not tell what their user said
    played = [replace(arm, recipe=in_environment(arm.recipe, task)) for arm in plan.arms]
    plan = replace(plan, arms=tuple(measured_alike(played, task)))
    policy = policy_before_runs(plan.config, task)
    # prompts too long for the model are refused, or counted, here and not in every run
    for arm in plan.arms:
        _check_rows(arm, task)
        fit_prompts(task, policy, plan.config, arm.recipe)
        check_stages(arm.recipe.but(name=arm.of or arm.name), plan.config)
        tell_idle(arm.recipe.but(name=arm.of or arm.name), task, plan.config)
    plan = replace(plan, config=_anywhere(plan.config, task))
    shown = _rehearsed(plan, folder)
    names = {name: found.names for name, found in shown.items()}
    plan = replace(plan, measure=_measure(plan, names))
    plan = replace(plan, rates_by=numbers_to_choose_by(plan, names))
    at_a_time = min(processes.size, len(plan.arms) * len(plan.seeds))
    how = f", {at_a_time} at a time" if at_a_time > 1 else ""
    whole = seconds(plan, shown, measured_problems(task, plan.config)) / at_a_time
    _say(f"{_runs(plan)}: about {duration(round(whole, -1) or 5)}{how}")
    return plan, whole


def _check_rows(arm: Arm, task: Task) -> None:
    """Raise RewardlabError, as a run of the arm would, for rows that it does not learn from."""
    if not arm.trains:
        return
    try:
        check_rows(arm.recipe.but(name=arm.of or arm.name), task)
    except RewardlabError as e:
        raise RewardlabError(
            f"{arm.name} cannot be compared on {task.name}: {e}\nleave {arm.of or arm.name} out, or give rows that all of them read"
        ) from e


def _processes(plan: Plan, task: Task, jobs: int | None) -> Crew:
    runs = max(len(plan.arms) * len(plan.seeds), len(plan.trained) * len(plan.rates) * plan.rate_seeds)
    return crew(jobs, plan.config, [arm.recipe for arm in plan.arms], task, runs)


def _runs(plan: Plan) -> str:
    """How many runs there are, in words."""

    seeds, rate_seeds = (f"{n} seed{'s' * (n > 1)}" for n in (len(plan.seeds), plan.rate_seeds))
    text = f"{len(plan.arms)} methods x {seeds}"
    return f"{text}, after {len(plan.rates)} rates x {rate_seeds}" if plan.rates else text


def _say(text: str) -> None:
    """A line for people, on stderr as bars are."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def resume(
    folder: Path | str, *, seeds: Sequence[int] | None = None, without: Sequence[str] = (), jobs: int | None = None,
    x: str | None = None, y: str | None = None, self_contained: bool = False,
) -> Record:  # fmt: skip
    """Complete a comparison that was stopped: runs that have finished are read, the others are run or resumed.

    seeds: more of them than before; a comparison that had finished is extended by the new ones.  without: methods to leave out from
    now on, such as one whose runs fail; their run folders stay.  x, y, self_contained: as in `compare`.
    """
    folder = Path(PATH.check("the folder of the comparison", folder))
    plan = read_plan(folder)
    if without:
        plan = plan.without(without)
        plan.save(folder)
    if seeds is not None:
        if missing := [seed for seed in plan.seeds if seed not in seeds]:
            raise RewardlabError(f"a comparison can get more seeds and not fewer: {folder} has seed {missing[0]} already")
        plan = replace(plan, seeds=tuple(seeds))
        plan.save(folder)
    if x is not None or y is not None:
        right, up = _axes(x or plan.x, y or plan.y)
        plan = replace(plan, x=right, y=up)
    _say(f"{_runs(plan)}: {plan.alike}")
    # a finished one is told anew without its model
    done = complete_already(plan, folder)
    with shared_processes(1 if done else _processes(plan, task_of(None, plan.config), jobs)):
        record = complete(plan, folder, self_contained)
    # axes that nothing was measured for are refused by then, and must not stay
    plan.save(folder)
    return record


def _axes(x: str | None, y: str | None) -> tuple[str, str]:
    if y and not x:
        raise RewardlabError(f"{y} is to be drawn against what? Give x too: a measure, such as length or tokens")
    return x or "", y or ""


def _shared(config: RunConfig | None, changes: Mapping[str, Any]) -> RunConfig:
    """What all runs share, with an end. Raises RewardlabError for an engine whose tokens are not counted."""
    check_config(config)
    named = {"task": ("rows", "row"), "test": ("test rows", "test row")}
    given = {name: GivenRows.of(rows, *named[name]) for name, rows in changes.items() if name in named and is_rows(rows)}
    config = (config or RunConfig()).but(**{**changes, **given})
    if config.engine != "embedded":
        raise RewardlabError(f"a comparison counts the tokens of every method, which the engine {config.engine} cannot")
    return config.but(steps=None if config.budget else config.steps or STEPS, track=tuple(trackers(config.track)))


def _check_budget(plan: Plan) -> None:
    if plan.equal not in (TOKENS, UPDATES):
        raise unknown("thing that runs may get alike", plan.equal, (TOKENS, UPDATES))
    if plan.equal == UPDATES and plan.config.budget:
        raise RewardlabError("runs get the same updates or the same tokens: drop the budget, or compare at equal tokens")


def _anywhere(config: RunConfig, task: Task) -> RunConfig:
    """The configuration with paths made absolute, so that the comparison can be completed from another working folder."""
    where = task.source["name"] if task.source else config.task
    return config.but(task=where, model=absolute_name(config.model) if config.model else None)


def _rehearsed(plan: Plan, folder: Path) -> dict[str, Rehearsal]:
    """What one step of every arm shows, by its name."""
    seed = plan.seeds[0]
    tried = [replace(plan.job(arm, seed, folder), folder=str(folder / f".rehearsal-{arm.folder}")) for arm in plan.arms]
    try:
        return dict(zip((arm.name for arm in plan.arms), rehearsals(tried), strict=True))
    finally:
        # what the rehearsals shared, and what a process leaves that is ended with the others
        for left in (*(Path(job.folder) for job in tried), folder / STARTS):
            shutil.rmtree(left, ignore_errors=True)


def _measure(plan: Plan, names: Mapping[str, Sequence[str]]) -> str:
    """The number to compare.  names: of the numbers that each arm measures. Raises RewardlabError where one does not measure it."""
    measure = plan.measure or _first_of_all(plan, names)
    for arm in plan.arms:
        if arm.measured_by(measure) not in names[arm.name]:
            raise _not_measured(arm, measure, names)
        for axis in axes(replace(plan, measure=measure)) if plan.x else ():
            if not set(names_of(axis.name, arm)) & set(names[arm.name]):
                raise _not_measured(arm, axis.name, names)
    return measure


def _first_of_all(plan: Plan, names: Mapping[str, Sequence[str]]) -> str:
    """What the first trained arm measures first; the share of right answers, where others measure that and not this."""
    if not plan.trained:
        return SELECTED
    first = names[plan.trained[0].name][0]
    if first == OWN_REWARD and len(plan.trained) > 1 and shared_reward(plan.arms) is None:
        raise RewardlabError(
            f"{' and '.join(arm.name for arm in plan.trained)} are paid by different rewards, so that what they are paid compares "
            "nothing, and without answers nothing else is measured on held-out problems: give rows with answers, one --reward "
            "for all, or a number that training logs, as --measure train.length"
        )
    # the likelihood of pairs is of each method's own beta; which replies have gained more, all say alike
    first = PREFERRED if first == PAIRS and PREFERRED in names[plan.trained[0].name] else first
    of_all = (name for name in (first, ONE_REPLY) if all(arm.measured_by(name) in names[arm.name] for arm in plan.arms))
    return next(of_all, first)


def _not_measured(arm: Arm, measure: str, names: Mapping[str, Sequence[str]]) -> RewardlabError:
    if not any(measure in known for known in names.values()):
        return unknown(f"measure of {', '.join(names)}", measure, {name for known in names.values() for name in known})
    why = "measures" if arm.trains else "trains nothing; it measures"
    return RewardlabError(
        f"{arm.name} does not measure {measure!r} and cannot be compared by it: it {why} {', '.join(names[arm.name])}"
    )
