"""Worlds of claims with measurements: the start, and GRPO's result.

A world is fit for claims about learning where the likeliest reply is often wrong (else learning only sharpens), GRPO improves on
the start by several standard deviations of its noise, and something is left to learn when it ends. `probe` measures that,
and the record ships with the package, in results/worlds.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rewardlab import registry
from rewardlab.core import Recipe
from rewardlab.errors import RewardlabError, unknown
from rewardlab.models.start import player
from rewardlab.registry import catalogue

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
