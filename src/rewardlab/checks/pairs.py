"""The runs of a claim: method and baseline in pairs, with the same seed, problems, held-out random numbers and updates."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from rewardlab import api, registry
from rewardlab.api.inputs import held_out, task_of
from rewardlab.checks.claim import Claim
from rewardlab.checks.kept import STARTS, keepable, recorded, run_kept, run_once, start_within, still_so, with_shared_start
from rewardlab.checks.runs import BEFORE, Done, Job, as_plain, finished, kind_of, number, recipe_of, run
from rewardlab.checks.workers import Failed, run_all, shared_processes
from rewardlab.core import Recipe, Run
from rewardlab.errors import RewardlabError, unknown
from rewardlab.models.load import load_policy
from rewardlab.rewards.reward import Reward
from rewardlab.runs.config import RunConfig
from rewardlab.util.files import write_json
from rewardlab.util.progress import Bar, console

# ---- A rehearsal of runs: one step each, so that what would end them late ends them now ------------------------------
#
# It finds a measure that does not exist, a missing package, a column that cannot be read, a reward that raises, and a model that
# does not fit into memory, before the first of many long runs.

PROBLEMS = 128  # held-out problems that a rehearsal measures on: a share of them must hold every kind
FEW = 8  # of them before and after its step, where only the names matter


class Rehearsal(NamedTuple):
    """What one step of a run shows of the whole.

    names: of the numbers that it will measure.  around, step, problem: seconds of its beginning and end, of a step, and of a
    held-out problem, about 0 where another run of the same measure took that time.  tokens: of a step.
    """

    names: tuple[str, ...]
    around: float = 0.0
    step: float = 0.0
    problem: float = 0.0
    tokens: float = 0.0


def rehearsed(jobs: Sequence[Job], processes: int | None = None) -> list[tuple[str, ...]]:
    """The names of the numbers that each job will measure. Raises RewardlabError, naming the method, where one fails."""
    return [found.names for found in rehearsals(jobs, processes)]


def rehearsals(jobs: Sequence[Job], processes: int | None = None) -> list[Rehearsal]:
    """One step of each job. Raises RewardlabError, naming the method, where one fails."""
    found: dict[int, Rehearsal] = {}
    with Bar("one step of each method, to check", len(jobs)) as bar, closing(run_all(rehearse, jobs, processes)) as outcomes:
        for i, outcome in outcomes:
            if isinstance(outcome, Failed):
                raise RewardlabError(f"{jobs[i].method} fails at its first step: {outcome.reason}")
            bar.advance(jobs[i].method)
            found[i] = outcome
    return [found[i] for i in range(len(jobs))]


def rehearse(job: Job) -> Rehearsal:
    """Do one step of a job. Of its run, nothing that is written stays."""
    began, recipe, folder = time.monotonic(), recipe_of(job), Path(job.folder)
    config = job.config.but(eval_problems=min(PROBLEMS, job.config.eval_problems), track=())
    if kind_of(recipe) != "train":
        # it takes no steps: answering a few problems is its rehearsal
        names = tuple(run(replace(job, config=config, keep=False)).numbers)
        return Rehearsal(names, problem=(time.monotonic() - began) / max(1, config.eval_problems))
    try:
        few = min(FEW, config.eval_problems)
        short = config.but(steps=1, budget=None, checkpoint_every=0, eval_problems=few, out=folder)
        one_step = with_shared_start(replace(job, config=short), folder.parent)
        trained = api.train(recipe_of(one_step), config=short)
        done = finished(folder)
        assert done is not None
        assert trained.run is not None
        measuring = time.monotonic()
        # on more problems, since a number that is undefined (a length of right replies where none is right) is not logged
        more = _measured(replace(job, config=config), trained.run, folder.parent / STARTS) if config.eval_problems else []
        names = tuple(dict.fromkeys([*done.numbers, *(prefix + name for prefix in ("", BEFORE) for name in more)]))
        each = (time.monotonic() - measuring) / max(1, config.eval_problems)
        return Rehearsal(names, max(0.0, measuring - began - done.seconds), done.seconds, each, done.numbers.get("tokens", 0.0))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _measured(job: Job, trained: Run, starts: Path) -> list[str]:
    """The names of what a job measures: measured once for all jobs that begin alike, whose names are kept in `starts`."""
    measure = recipe_of(job).measure
    if measure is None:
        return []
    file = starts / f"{start_within(job)}-names.json"
    if not file.exists():
        numbers = measure(held_out(task_of(None, job.config), job.config.eval_problems), trained.for_evaluation())
        file.parent.mkdir(parents=True, exist_ok=True)
        write_json(file, list(numbers))
    return json.loads(file.read_text("utf-8"))


Outcomes = list[Done | Failed]


class Pairs:
    """The runs of a claim so far.  seeds: of its pairs.  method, baseline: their outcomes, seed by seed; of the baseline there are
    none without one.

    A context: the folder that the runs write to is removed at its end. Runs of the baseline are kept, and serve other claims.
    """

    def __init__(self, name: str, claim: Claim, jobs: int | None = None, device: str = "auto"):
        self.name, self.claim, self.processes = name, claim, jobs
        self.seeds: list[int] = []
        self.method: Outcomes = []
        self.baseline: Outcomes = []
        sides = [(name, claim.settings)] + ([(claim.versus, claim.versus_settings)] if claim.versus else [])
        self.names = [side for side, _ in sides]
        self.recipes = [_paid_by(claim.reward, registry.build(side, as_plain(settings))) for side, settings in sides]
        config = RunConfig(task=claim.task, model=claim.model, eval_problems=claim.problems, budget=claim.budget, eval_every=0)
        self.config = config.but(steps=claim.steps, device=device)
        self._known, self._keeps = False, False

    def __enter__(self) -> Pairs:
        _cache_policy(self.claim, self.recipes)
        self._open = ExitStack()
        self._scratch = self._open.enter_context(tempfile.TemporaryDirectory(prefix="rewardlab-"))
        # all looks in the same processes, each of which takes seconds to start; they end before their folder is removed
        self._open.enter_context(shared_processes(self.processes))
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def sides(self) -> dict[str, Outcomes]:
        return {"method": self.method, "baseline": self.baseline} if self.baseline else {"method": self.method}

    def recorded(self, seeds: Sequence[int]) -> None:
        """Say that the outcomes of these seeds are in a record now."""
        for seed in seeds:
            recorded(self.job(0, seed))

    def add(self, seeds: Sequence[int]) -> None:
        """Run these seeds too."""
        work = [self.job(side, seed) for seed in seeds for side in range(len(self.names))]
        if not self._known:
            self._check(work[: len(self.names)])
        keep = [len(self.names) == 2 and i % 2 == 1 and self._keeps for i in range(len(work))]
        found: dict[int, Done | Failed] = {}
        try:
            tasks = list(zip(work, keep, strict=True))
            for i, outcome in _outcomes_of(f"reproducing {self.name}", tasks, self.processes, self._measures):
                found[i] = outcome
        finally:
            # when it is stopped, the pairs whose two sides are done count
            self._take(seeds, found)
        self._check_bounds()

    def _take(self, seeds: Sequence[int], found: Mapping[int, Done | Failed]) -> None:
        """Take up the pairs that are whole. Jobs end in any order; by position, method and baseline take turns."""
        sides = len(self.names)
        for i, seed in enumerate(seeds):
            pair = [found[j] for j in range(sides * i, sides * (i + 1)) if j in found]
            if len(pair) == sides:
                self.seeds.append(seed)
                self.method.append(pair[0])
                self.baseline += pair[1:]

    @property
    def _measures(self) -> list[str]:
        return [self.claim.measure, *filter(None, [self.claim.against])]

    def job(self, side: int, seed: int, **update: Any) -> Job:
        """The run of a side (0: the method) on a seed.  update: fields of its Update that differ, such as lr."""
        by = self.claim.by.to_json() if self.claim.by else None
        recipe, folder = (
            self.recipes[side].but(**update),
            f"{self._scratch}/{side}-{seed}{'-'.join(map(str, update.values()))}",
        )
        config = self.config.but(seed=seed)
        return Job(self.names[side], recipe.to_json(), config, folder, by, beside=self.claim.beside)

    def _check_bounds(self) -> None:
        """Raise RewardlabError for a bound of the claim on a number that no run has: a misspelt one would make the world unfit."""
        claim, reference = self.claim, self.baseline or self.method
        for bound, sides in (
            (claim.fault, [reference]), (claim.judge, [self.method]), (claim.moved, [self.method, reference]),
            (claim.guard, [self.method, reference]),
        ):  # fmt: skip
            for runs in sides if bound else ():
                known = set().union(*(run.numbers for run in runs if isinstance(run, Done)))
                if bound and known and bound.number not in known:
                    raise unknown(f"number that the claim of {self.name} bounds", bound.number, known)

    def _check(self, sides: list[Job]) -> None:
        """Once, before the first pair: what would end runs late ends them now; whether kept runs are of this machine."""
        _rehearse(sides, self._measures, self.processes)
        self._keeps = len(sides) == 2 and keepable(sides[1])
        if self._keeps:
            for _, same in run_all(still_so, [sides[1]], 1):
                if isinstance(same, Failed):
                    raise RewardlabError(f"{sides[1].method} fails at its first steps: {same.reason}")
        self._known = True


def _paid_by(reward: Reward | None, recipe: Recipe) -> Recipe:
    """The recipe with this reward in place of its own, if it has one; a search searches by it, too."""
    return recipe if reward is None or recipe.reward is None else recipe.scored_by(reward)


def _outcomes_of(
    what: str, work: list[tuple[Job, bool]], jobs: int | None, measures: list[str]
) -> Iterator[tuple[int, Done | Failed]]:
    """Run jobs, each with whether it is kept, under a progress bar, and report a failure as it happens."""
    with Bar(what, len(work)) as bar, closing(run_all(run_one, work, jobs)) as outcomes:
        for i, outcome in outcomes:
            job, _ = work[i]
            if isinstance(outcome, Failed):
                console.print(
                    f"{job.method}, seed {job.config.seed}, failed: {outcome.error}", style="red", markup=False, highlight=False
                )
            else:
                _check(job, outcome, measures)
            bar.advance(f"{job.method}, seed {job.config.seed}")
            yield i, outcome


def run_one(work: tuple[Job, bool]) -> Done:
    """Do a job, or take its outcome from the runs that are kept, or from a reproduction that was stopped."""
    job, keep = work
    return run_kept(job) if keep else run_once(job)


def _rehearse(sides: list[Job], measures: list[str], processes: int | None) -> None:
    """Raise RewardlabError if a side cannot do one step, or lacks a metric that the claim needs."""
    # a study has no steps, and what training logs may begin after its first one: both are noticed after the first run
    trained = [job for job in sides if kind_of(recipe_of(job)) == "train"]
    for job, names in zip(trained, rehearsed(trained, processes), strict=True):
        for measure in measures:
            if not measure.startswith("train."):
                number(dict.fromkeys(names, 0.0), measure, job.method)


def _check(job: Job, outcome: Done, measures: list[str]) -> None:
    """Raise RewardlabError if a run lacks a metric that the claim needs; report a budget that was not used up."""
    for measure in measures:
        number(outcome.numbers, measure, job.method)
    tokens, steps = (int(outcome.numbers.get(name, 0)) for name in ("tokens", "steps"))
    budget = job.config.budget
    # methods without training, which take no steps, use what tokens they need
    if steps and budget and tokens < budget:
        message = f"{job.method}, seed {job.config.seed}, ended after {steps} steps with {tokens:,} of {budget:,} tokens"
        console.print(message, markup=False, highlight=False)


def _cache_policy(claim: Claim, recipes: list[Recipe]) -> None:
    """Fill the cache with the policy that every worker loads, before they start."""
    if any(kind_of(recipe) != "study" for recipe in recipes):
        task = registry.task(claim.task)
        load_policy(claim.model or task.model, task=task)
