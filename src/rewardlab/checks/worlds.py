"""Worlds of claims with measurements: the start, and GRPO's result.

A world is fit for claims about learning where the likeliest reply is often wrong (else learning only sharpens), GRPO improves on
the start by several standard deviations of its noise, and something is left to learn when it ends. `probe` measures that,
and the record ships with the package, in results/worlds.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from rewardlab import api, registry
from rewardlab.core import Problem, Recipe, Run, Task
from rewardlab.errors import RewardlabError, unknown
from rewardlab.models.embedded import checkpoint
from rewardlab.models.load import load_policy
from rewardlab.models.start import player
from rewardlab.registry import describe as catalogue
from rewardlab.runs.metrics import read_metrics
from rewardlab.util.files import check_writable, write_json
from rewardlab.util.progress import Bar, console

Record = dict[str, Any]


@dataclass(frozen=True)
class World:
    """A task that claims are made in.

    task: as on the command line.  fit_for: the kinds of claims that it serves.  reward: what GRPO is paid, as weights of rewards by
    name; None: the task's verifier.  settings: of GRPO there.
    """

    name: str
    task: str
    fit_for: str
    reward: Mapping[str, float] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def recipe(self, lr: float, n: int = 8) -> Recipe:
        """GRPO as this world is probed with it."""
        task = registry.task(self.task)
        recipe = registry.build("grpo", {**self.settings, "lr": lr, "n": n}).but(rollout=player(task, n=n))
        if self.reward is None:
            return recipe
        rewards = [weight * registry.part("reward", name) for name, weight in self.reward.items()]
        return recipe.but(reward=sum(rewards[1:], start=rewards[0]))


WORLDS = (
    World("chains", "arithmetic", "sharpening alone: the greedy answer is right already"),
    World("biased", "arithmetic:biased=0.75,error=0.1", "final accuracy, learning speed, credit"),
    World("biased-long", "arithmetic:biased=0.8,error=0.05,difficulty=[2,5]", "the same over several difficulties"),
    World("redundant", "arithmetic:biased=0.75,error=0.1,redundant=0.4", "length, calls, process rewards"),
    World("corrected", "arithmetic:biased=0.9,error=0.1,corrected=0.5", "length, self-correction, process rewards"),
    World("overthinking", "overthinking", "length: one to five steps, checks that add nothing, needed corrections"),
    World(
        "hard",
        "arithmetic:biased=0.85,rules=+-*,error=0.4,difficulty=[4,8]",
        "sparse rewards, dense and graded rewards",
        reward={"correct": 0.5, "leading_steps": 0.5},
    ),
    World(
        "hackable",
        "arithmetic:biased=0.8,rules=+-,error=0.05,hedged=0.15",
        "hacking, reward noise",
        reward={"number_mentioned": 1.0},
    ),
    World("ways", "countdown:largest=30,habit=0.9", "diversity: several right ways, one of which dominates"),
    World("search", "facts:hops=4,error=0.5,biased=0.75,test_size=1000", "several turns, tools, credit of turns"),
    World("notes", "notes", "reward models, over-optimisation: the true reward is known", reward={"note_quality": 1.0}),
    World(
        "poor-prompts",
        "notes:poor=0.6",
        "choice of prompts: most do not say what replies are judged by",
        reward={"note_quality": 1.0},
    ),
    World(
        "graded",
        "notes:writers=6,noise=0.4",
        "choice of pairs: several replies to each prompt, with a judge's noisy grades",
        reward={"note_quality": 1.0},
    ),
    World("uncertain", "ambiguous:readings=[1,2]", "calibration: which answer was meant cannot be known"),
    World("uncertain-sets", "ambiguous:readings=4,answers=3", "several answers in a reply, their coverage and calibration"),
    World("calls", "calls", "calls of tools: graded rewards, form"),
    World("trips", "trips:biased=0.9", "plans within constraints: sparse rewards, dense and graded rewards"),
    World("choices", "choices", "rationales that contradict the answer, or skip what is known; several rewards at once"),
    World("critiques", "critiques", "learning from critiques: one problem, many solutions of it, and what is wrong with each"),
    World("judgments", "judgments", "verifiers that learn: unusual forms, near misses, replies that are no answer"),
    World("hinted", "hinted", "hints: most prompts are never solved without them"),
    World("queries", "queries", "text to SQL: wrong queries that return the right rows by luck, partial rewards, languages"),
    World("cells", "cells", "tables: right answers from wrong cells"),
    World("cards", "cards", "structured output: what is no JSON, or of another form"),
    World("masked", "masked", "several turns over texts of one to four hidden names; curricula"),
    World("graphs", "erdos:tasks=reading,nodes=[4,5],test_size=1000", "tasks that are trained on, or kept for the test"),
    World("beams", "beams:train=one", "transfer: trained on one kind of problem, tested on others that the same equations solve"),
    World("charts", "charts", "shortcuts: values that go along with the answer in training, and do not in half of the test"),
    World("circuits", "circuits", "several gated rewards: wrong designs that are small, and right ones of more or fewer gates"),
    World("pages", "pages", "web pages: what runs, looks right and responds, each without the others; needs Chromium"),
    World("contracts", "contracts", "specifications: empty ones that any program keeps, and such as say what it does"),
    World("reviews", "reviews", "search by Boolean queries: recall against precision"),
    World("codes", "codes", "programs: tests of which most are easy, partial rewards, cost"),
    World("flaws", "flaws", "labels of which one is rare: what finds nothing is right most often"),
    World("executions", "executions", "following a program: right outputs by luck, answers about every step"),
    World("wordings", "wordings", "learning without labels: each wording of a question brings mistakes of its own"),
    World("reactions", "reactions", "rewards read from what users say next: likely replies are often wrong"),
    World("repairs", "repairs", "several turns: where an episode first goes wrong, and going on from there"),
    World(
        "dilemmas",
        "dilemmas",
        "games of two players: what pays each in a round costs both in the end",
        reward={"paid": 1.0},
    ),
    World("snippets", "snippets", "code without instructions: outputs, errors, masked lines; most of it copies"),
    World("poor-tests", "poor_tests", "choice among programs by tests that a model wrote, a third of them wrong"),
    World("derivations", "derivations", "process rewards: a checker labels steps; goals are stated that were not reached"),
    World("drafts", "drafts", "several roles: an attempt, a critique of it, and the attempt refined"),
    World(
        "recalled", "recalled:hops=4,test_size=1000", "facts learnt by heart, some wrongly: steps that only looking up can judge"
    ),
    World("rethought", "rethought", "process rewards of thoughts: careless ones, before a response with more care"),
    World("screens", "screens", "several turns on screens: clicks that hit by luck, goals on the way"),
    World("inspections", "inspections", "judges with a tool: verdicts that are guessed, and such as were looked up"),
    World("modules", "modules", "graphs that are grown node by node: a planted module, and decoys"),
    World("packings", "packings:test_size=1000", "search for ever better answers, from earlier ones on; lazy repetition"),
)
"""All worlds; some may not have been measured yet."""


def world(name: str) -> World:
    """A world by name. Raises RewardlabError for one that does not exist, with the nearest that do."""
    known = {w.name: w for w in WORLDS}
    if name not in known:
        raise unknown("world", name, known)
    return known[name]


def listed(name: str | None = None) -> list[Record]:
    """Every world, or the one of this name, with what was measured (None: nothing yet)."""
    return [
        {"name": w.name, "task": w.task, "fit_for": w.fit_for, "measured": measured(w)}
        for w in ([world(name)] if name else WORLDS)
    ]  # fmt: skip


def measured(world: World) -> Record | None:
    """The record of a world: of this machine, else the one that came with the package; None where there is none."""
    for folder in (results_folder(), catalogue.SHIPPED / "worlds"):
        path = folder / f"{world.name}.json"
        if path.is_file():
            try:
                return json.loads(path.read_text("utf-8"))
            except ValueError as e:
                raise RewardlabError(f"{path} is not a record of a world ({e}); measure it again: rewardlab worlds --check") from e
    return None


def results_folder() -> Path:
    """Where records are written: $REWARDLAB_RESULTS, else the package's in a checkout, else results/ in the working folder."""
    if chosen := os.environ.get("REWARDLAB_RESULTS"):
        return Path(chosen).resolve() / "worlds"
    return catalogue.SHIPPED / "worlds" if catalogue.repository() else Path.cwd() / "results" / "worlds"


# ----------------------------------------------------------------------------------------------------------------------
#
# What is known of a world: where its small policy starts, what GRPO reaches there, and how much of that is noise.

UPDATES, SEEDS, RATES = 40, (0, 1, 2), (3e-4, 1e-3)
PROBLEMS, VOTED, VOTES = 1000, 300, 8
"""Held-out problems, one sample each; those that a majority is asked of, and of how many replies."""
LAST = 10
"""Steps over whose reward rates are compared: one step alone is too noisy."""
ROOM = 0.15
"""Fit: the start and the end of GRPO keep so much of the range above and below."""


def check(
    world: World, *, seeds: Sequence[int] = SEEDS, updates: int = UPDATES, problems: int = PROBLEMS, start_only: bool = False
) -> Record:  # fmt: skip
    """Measure a world and write its record; returns it, with the file as "recorded".

    GRPO runs on the first seed at each of RATES; on the others at the better one. Development seeds: no claim is decided by them.
    The record is written after each part, so that what was measured is kept if the rest is stopped.
    start_only: do not run GRPO.
    """
    where = results_folder() / f"{world.name}.json"
    where.parent.mkdir(parents=True, exist_ok=True)
    # now, and not after minutes of runs
    check_writable(where)
    began, task = time.process_time(), registry.task(world.task)
    record: Record = {}

    def keep(runs: Sequence[Record], start: Record) -> None:
        record.update(_record(world, task, start, runs), updates=updates, problems=problems)
        record["seconds"] = round(time.process_time() - began)
        write_json(where, record)

    with Bar(f"measuring {world.name}", 1 if start_only else len(RATES) + len(seeds)) as bar:
        start = _start(task, problems)
        keep([], start)
        bar.advance(f"starts at {start['single']:.2f}")
        runs: list[Record] = []
        for lr, seed in () if start_only else _planned(seeds, runs):
            runs.append(_grpo(world, task, lr, seed, updates, problems))
            keep(runs, start)
            bar.advance(f"seed {seed}, lr {lr:g}: {runs[-1]['truth']['single']:.2f}")
    return {**record, "recorded": str(where)}


def _planned(seeds: Sequence[int], runs: Sequence[Record]) -> Iterator[tuple[float, int]]:
    """Rates and seeds to run; `runs` holds, by the time it is asked for, those that are done."""
    yield from ((lr, seeds[0]) for lr in RATES)
    # by what it is paid, not by the truth: a method does not know the truth either
    best = max(runs, key=lambda run: run["paid"])["lr"]
    yield from ((best, seed) for seed in seeds[1:])


def _record(world: World, task: Task, start: Record, runs: Sequence[Record]) -> Record:
    best = max(runs, key=lambda run: run["paid"])["lr"] if runs else None
    return {
        "name": world.name, "task": world.task, "reward": dict(world.reward) if world.reward else None, "start": start, "lr": best,
        "runs": list(runs), "steps": _steps(task), **_summary([run for run in runs if run["lr"] == best], start, task.window[1]),
        "policy": checkpoint(task).name, "when": datetime.now(UTC).isoformat(timespec="seconds"), "versions": api.versions(),
    }  # fmt: skip


def _summary(runs: Sequence[Record], start: Record, most: float = 0.6) -> Record:
    """reached: mean over seeds; noise: their standard deviation, None of one; left: of the range above it; remarks: what to know
    before a claim is made there. most: what the greedy reply may get at the start."""
    greedy_right = (start["greedy"] > most, "its greedy answer is right already")
    if not runs:
        return {"reached": None, "noise": None, "left": None, "remarks": _so(greedy_right, (True, "GRPO was not run yet"))}
    ends = [run["truth"]["single"] for run in runs]
    reached, noise = statistics.mean(ends), statistics.stdev(ends) if len(ends) > 1 else None
    gained = reached - start["single"]
    return {
        "reached": round(reached, 4), "noise": None if noise is None else round(noise, 4), "left": round(1 - reached, 4),
        "remarks": _so(
            (noise is not None and abs(gained) < 3 * noise, "GRPO moves it by less than three standard deviations of its noise"),
            (gained < 0, "GRPO lowers the truth"), (reached > 1 - ROOM, "little is left to learn when GRPO ends"), greedy_right,
            (noise is None, "one seed tells nothing of the noise"),
        ),
    }  # fmt: skip


def _so(*remarks: tuple[bool, str]) -> list[str]:
    return [why for is_so, why in remarks if is_so]


def _steps(task: Task) -> str:
    """Whether the steps of a reply can be checked one by one."""
    meta = task.train[0].meta
    return "every step" if "steps" in meta else "every turn" if "searches" in meta else "the reply as a whole"


def _grpo(world: World, task: Task, lr: float, seed: int, updates: int, problems: int) -> Record:
    """GRPO from the start of a world, in a folder that does not stay."""
    began = time.process_time()
    policy = load_policy(task.model, "cpu", task=task)
    with tempfile.TemporaryDirectory(prefix="rewardlab-") as folder:
        result = api.train(
            world.recipe(lr), policy, task, steps=updates, seed=seed, out=f"{folder}/run", eval_every=0, eval_problems=1,
            device="cpu",
        )  # fmt: skip
        paid = _paid(result.out)
    seconds = time.process_time() - began
    run = result.run
    assert run is not None
    return {
        "seed": seed, "lr": lr, "truth": _rates(task, policy, problems, seed), "paid": paid,
        "tokens": run.tokens, "seconds": round(seconds),
    }  # fmt: skip


def _paid(run: Path) -> float:
    """What the last steps of a run were paid, on average."""
    return round(statistics.mean([row["reward"] for row in read_metrics(run) if "reward" in row][-LAST:]), 4)


def _start(task: Task, problems: int) -> Record:
    policy = load_policy(task.model, "cpu", task=task)
    return {**_rates(task, policy, problems, 0), "majority": _majority(task, policy)}


def _rates(task: Task, policy: Any, problems: int, seed: int) -> Record:
    """The mean verdict of one sample, and of the greedy reply."""
    return {
        "single": _mean(_verdicts(task, policy, task.test[:problems], 1.0, 1, seed)),
        "greedy": _mean(_verdicts(task, policy, task.test[: problems // 2], 0.0, 1, seed)),
    }


def _majority(task: Task, policy: Any) -> float:
    """The mean verdict of what most of several replies say."""
    run = _run(task, policy, 0)
    vote = registry.part("select", "majority")
    groups = player(task, 1.0, VOTES)(list(task.test[:VOTED]), run)
    chosen = [[vote(group, [], run)] for group in groups]
    return _mean([[score.value or 0.0 for score in row] for row in run.verify(chosen, run)])


def _verdicts(
    task: Task, policy: Any, problems: Sequence[Problem], temperature: float, n: int, seed: int
) -> list[list[float]]:  # fmt: skip
    run = _run(task, policy, seed)
    groups = player(task, temperature, n)(list(problems), run)
    return [[score.value or 0.0 for score in row] for row in run.verify(groups, run)]


def _run(task: Task, policy: Any, seed: int) -> Run:
    verify = registry.verifier(task.verifier)
    return Run(policy, seed=seed, max_new=task.max_new, verify=verify).for_evaluation()


def _mean(rows: Sequence[Sequence[float]]) -> float:
    return round(float(np.mean([value for row in rows for value in row])), 4)


def check_all(names: Sequence[str] = (), *, start_only: bool = False) -> list[Record]:
    """Measure the worlds of these names one after another, or all."""
    records, chosen = [], [world(name) for name in names] or list(WORLDS)
    for i, one in enumerate(chosen, 1):
        console.print(f"{i}/{len(chosen)} {one.name}: {one.task}", highlight=False, markup=False)
        records.append(check(one, start_only=start_only))
    return records
