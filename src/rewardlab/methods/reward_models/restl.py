"""RESTL: four reward models of one aspect each, taught from easy to hard pairs, pay a policy that writes temporal logic.

    aspects   atoms       the atomic propositions are those that the requirement names
              semantics   the formula says what the requirement says
              succinct    it says so briefly
              symbols     its symbols are those of the gold formula, in its order
    r_k:  -log sigmoid(r_k(chosen) - r_k(rejected)), on pairs that differ in aspect k, in stages: those with the largest difference
          first, then more and more of the closer ones
    R = sum_k w_k (r_k - mean_k) / std_k,  maximised by PPO with a KL to the policy that it starts from

A single reward for a formula that matches says nothing of what is wrong with the others; learnt aspects need no gold formula when
the policy is trained. The policy comes from supervised fine-tuning on requirements and formulas (`sft`).

Fang et al. 2025, arXiv:2511.08555, by its abstract and summaries: no code was found. (inferred): how pairs are made, and so all
below. A pair is the gold formula, often with slips in other aspects, and the same with slips in this one (`text/stl_edits.py`), or
the best and the worst of the formulas in the column `replies`; how much they differ is computed from the gold formula, semantics by
random signals (`verifiers/stl.py`) where the paper compares sentences; equal weights, three stages; scores are standardised over
the pairs, so that weights mean the same for each.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Group, Learner, Loop, Problem, Recipe, Run, Score, Scores, Update, loop, measure, seed_of
from rewardlab.data.columns import Column, Data
from rewardlab.data.values import list_of
from rewardlab.errors import RewardlabError, unknown
from rewardlab.evals.pairs import pair_gaps, pair_scores
from rewardlab.evals.passk import mean_interval
from rewardlab.methods.baselines.ppo import ppo
from rewardlab.methods.baselines.rlhf import SIDES, pairs_in, teach
from rewardlab.objectives.pairs import preference_loss
from rewardlab.rewards.model import model_score
from rewardlab.rewards.reward import Reward, reward
from rewardlab.rollouts.independent import independent
from rewardlab.rollouts.recorded import recorded
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt
from rewardlab.tasks.pairs import Reply, with_pair
from rewardlab.text import stl
from rewardlab.text.stl_edits import KINDS, slipped
from rewardlab.verifiers.stl import ASPECTS, aspects, stated_formula

NAME, SCALES, ACCURACY = "restl", "restl.scales", "restl.accuracy"
SLIPS = {"atoms": ("atoms",), "semantics": ("times", "logic", "atoms"), "succinct": ("longer",), "symbols": KINDS}
HELD_OUT, TRIES, ENDLESS = 200, 8, 1000


# ---- pairs that differ in one aspect -------------------------------------------------------------------------------------


def pair_of(problem: Problem, aspect: str) -> tuple[float, Problem] | None:
    """How far two formulas for a problem differ in this aspect, from 0 to 1, and the problem with them as its pair; None where
    there are no such formulas."""
    try:
        gold = stl.parse(str(problem.answer))
    except ValueError as why:
        raise RewardlabError(f"{NAME}: the answer of {problem.question[:60]!r} is no formula: {why}") from None
    rng = random.Random(seed_of(NAME, aspect, problem.key))
    given = [str(text) for text in list_of(problem.meta.get("replies")) or []]
    for _ in range(1 if given else TRIES):
        texts = given or list(_slipped_pair(gold, aspect, rng))
        rated = sorted(
            ((aspects(stated_formula(text), gold, wanted=(aspect,))[aspect], text) for text in texts), key=lambda x: -x[0]
        )
        (best, better), (least, worse) = rated[0], rated[-1]
        if best > least:
            return best - least, with_pair(problem, Reply(better, best), Reply(worse, least))
    return None


def _slipped_pair(gold: stl.Formula, aspect: str, rng: random.Random) -> tuple[str, str]:
    """A formula that is right in the aspect, if not in others, and the same with one to three slips in it."""
    others = [kind for kind in KINDS if kind not in SLIPS[aspect]]
    right = _with_slips(gold, others, rng.randint(0, 1), rng) if others else gold
    wrong = str(_with_slips(right, SLIPS[aspect], rng.randint(1, 3), rng))
    if aspect == "symbols" and rng.random() < 0.5:
        symbols = wrong.split(" ")
        del symbols[rng.randrange(len(symbols))]
        wrong = " ".join(symbols)
    return str(right), wrong


def _with_slips(formula: stl.Formula, kinds: Sequence[str], count: int, rng: random.Random) -> stl.Formula:
    for _ in range(count):
        formula = slipped(formula, rng.choice(kinds), rng) or formula
    return formula


def stages_of(pairs: Sequence[tuple[float, Problem]], stages: int, curriculum: bool, rng: random.Random) -> list[list[Problem]]:
    """The pairs of each stage: the first 1/stages of them, the first 2/stages ..., those that differ most first; without the
    curriculum in a random order, as many."""
    order = sorted(pairs, key=lambda x: -x[0]) if curriculum else rng.sample(list(pairs), len(pairs))
    return [[p for _, p in order[: -(-len(order) * (s + 1) // stages)]] for s in range(stages)]


# ---- reward models, and what they pay ------------------------------------------------------------------------------------


@loop(wraps="inner")
def aspects_first(
    recipe: Recipe, run: Run, ops: Any, *, models: tuple[str, ...], pairs: PositiveInt | None = None, stages: PositiveInt = 3,
    curriculum: bool = True, at_once: PositiveInt = 32, inner: Loop | None = None,
) -> None:  # fmt: skip
    """Before the first step, teach these reward models on pairs of the data's problems (`pairs_in`); then train by the recipe.

    stages, curriculum: see `stages_of`.  at_once: pairs of an update.  inner: how a step is taken. Logged at every step:
    NAME.pair_accuracy, of held-out pairs.
    """
    if SCALES not in run.memory:
        problems = pairs_in(ops, run, pairs, ENDLESS)
        scales, accuracy = {}, {}
        for model in models:
            aspect = model.removeprefix("reward_")
            made = _made(problems, aspect)
            for stage in stages_of(made, stages, curriculum, random.Random(seed_of(NAME, model, run.seed))):
                teach(ops, run, model, stage, 1, at_once, f"teaching the reward model of {aspect}")
            scales[model] = _scale([p for _, p in made], run, model)
            accuracy[f"{model}.pair_accuracy"] = _accuracy(_made(ops.task.test[:HELD_OUT], aspect), run, model)
        run.memory[SCALES], run.memory[ACCURACY] = scales, accuracy
    inner(recipe, run, ops) if inner else ops.standard_step(recipe)
    for name, value in run.memory[ACCURACY].items():
        run.log(name, value)


def _made(problems: Sequence[Problem], aspect: str) -> list[tuple[float, Problem]]:
    made = [pair for p in problems if (pair := pair_of(p, aspect))]
    if not made:
        raise RewardlabError(f"{NAME}: no formulas of {len(problems)} problems differ in the aspect {aspect}")
    return made


def _scale(problems: Sequence[Problem], run: Run, model: str) -> list[float]:
    """The mean and the standard deviation of the scores of both sides of pairs."""
    with run.unbilled():
        values = pair_scores(problems[:HELD_OUT], run, model)
    # a model that scores all alike pays nothing for any of them
    return [float(values.mean()), max(float(values.std()), 1e-6)]


def _accuracy(pairs: Sequence[tuple[float, Problem]], run: Run, model: str) -> float:
    with run.unbilled():
        gaps = pair_gaps([p for _, p in pairs], run, model)
    return float(np.mean(np.where(gaps == 0, 0.5, gaps > 0)))


@reward(over="groups")
def aspect_score(groups: list[Group], run: Run, *, model: str) -> Scores:
    """The score by the reward model of an aspect, in standard deviations of its scores of pairs, from their mean."""
    mean, std = run.memory.get(SCALES, {}).get(model, (0.0, 1.0))
    return [
        [Score(None if s.value is None else (s.value - mean) / std, why=s.why) for s in row]
        for row in model_score(model=model)(groups, run)
    ]  # fmt: skip


@measure
def formulas(problems: Sequence[Problem], run: Run, *, temperature: NonNegativeFloat = 1.0) -> dict[str, float]:
    """equivalent: the share of held-out requirements of which one sampled formula holds of the same signals as the gold one.

    atoms, semantics, succinct, symbols: the mean of each aspect, by the gold formula and not by a reward model.  readable: the
    share that are formulas at all.
    """
    replies = [stated_formula(row[0].reply) for row in independent(n=1, temperature=temperature)(list(problems), run)]
    found = [aspects(text, stl.parse(str(p.answer))) for text, p in zip(replies, problems, strict=True)]
    # a text that is no formula is of no atoms
    same = [float(of["semantics"] == 1.0) for of in found]
    low, high = mean_interval(same)
    return {
        "equivalent": float(np.mean(same)), "ci95_low": low, "ci95_high": high, "n": float(len(same)),
        **{aspect: float(np.mean([of[aspect] for of in found])) for aspect in ASPECTS},
        "readable": float(np.mean([of["succinct"] > 0 for of in found])),
    }  # fmt: skip


def restl(
    base: Recipe | None = None, *, aspects: tuple[str, ...] = ASPECTS, weights: tuple[float, ...] = (), pairs: int | None = None,
    stages: int = 3, curriculum: bool = True, reward_lr: float | None = None, init: str = "value-head", n: int = 1,
    problems: int = 128,
) -> Recipe:  # fmt: skip
    """aspects: that have a reward model each.  weights: of their scores in the reward; none: all the same, of sum 1.
    pairs: problems whose pairs each model learns from; None: all, of endless data 1,000.  stages, curriculum: in which order,
    from easy to hard or at random. reward_lr, init: as in `bradley_terry`.  n, problems: formulas of a problem and problems of a
    step, of PPO."""
    # one name on the command line is a text
    aspects = (aspects,) if isinstance(aspects, str) else tuple(aspects)
    for aspect in aspects:
        if aspect not in ASPECTS:
            raise unknown("aspect of a formula", aspect, ASPECTS)
    if not aspects or (weights and len(weights) != len(aspects)):
        raise RewardlabError(
            f"{NAME} needs an aspect, and a weight for each or none: {len(aspects)} aspects, {len(weights)} weights"
        )
    models = tuple(f"reward_{aspect}" for aspect in aspects)
    shares = weights or (1 / len(aspects),) * len(aspects)
    said: list[Reward] = [w * aspect_score(model=model).named(model) for w, model in zip(shares, models, strict=True)]
    total = said[0]
    for other in said[1:]:
        total = total + other
    base = base or ppo(n=n).but(problems=problems)
    taught = Recipe(rollout=recorded(fields=SIDES), objective=preference_loss(), update=Update(lr=reward_lr, loss_kind="scorer"))
    first = aspects_first(models=models, pairs=pairs, stages=stages, curriculum=curriculum, inner=base.loop)
    # every=0: the loop alone teaches them
    also = (*base.also, *(Learner(model, init, taught, every=0) for model in models))
    return base.but(reward=total, also=also, loop=first, measure=formulas())


fidelity = "reading"
left_out = (
    "how the paper makes the pairs, measures how alike they are, orders and weighs them, of which only its abstract and summaries "
    "were found: semantics is judged by signals, not by sentences made of formulas; supervised fine-tuning, which is the method sft"
)
data = Data(
    prompt="a requirement in words",
    answer="the gold formula of signal temporal logic, as `text/stl.py` reads it: G[0,5] (x > 3 -> F[0,2] y < 1)",
    replies=Column("several formulas for the requirement, right and wrong, a list; without it slips are made", optional=True),
    verified_by="stl_equivalent",
    rows=[
        {
            "prompt": "Write as STL: the temperature stays below 90 for the first 20 seconds.", "answer": "G[0,20] temp < 90",
            "replies": ["G[0,20] temp < 90", "F[0,20] temp < 90", "G[0,20] temp > 90", "not not G[0,20] temp < 90", "temp < 90"],
        },
        {
            "prompt": "Write as STL: whenever speed exceeds 30, brake rises above 0.5 within 3 seconds, for 60 seconds.",
            "answer": "G[0,60] (speed > 30 -> F[0,3] brake > 0.5)",
        },
        {
            "prompt": "Write as STL: pressure is above 2 until the valve is above 0, which it is within 8 seconds.",
            "answer": "pressure > 2 U[0,8] valve > 0",
        },
    ],
)  # fmt: skip

SAME = {"init": "value-head:surprise", "reward_lr": 1e-3, "pairs": 400, "problems": 64, "lr": 1e-4}
check = Check(
    says="PPO on reward models of four aspects, taught from easy to hard, writes more formulas that hold of the same signals as "
    "the gold ones than PPO on one reward model of how far the symbols match",
    versus="restl", task="requirements", measure="equivalent", direction="higher", margin=0.05, settings=SAME,
    versus_settings={**SAME, "aspects": ("symbols",)}, problems=500, steps=15,
    moved=Within("succinct", low=0.02, says="brevity beside the gold formula"),
    judge=Within("train.reward_semantics.pair_accuracy", low=0.65, says="held-out pairs that the model of semantics ranks right"),
    tried="one run of each: .44 to .82 equivalent with four models and with that of symbols, which sees slips of every kind too; "
    "held-out pairs .95 to .995 by aspect. Greedily nearly all are right at first, since the writer slips at random, so that RL "
    "only sharpens",
    finding="Stopped after 5 pairs of runs, undecided: after 15 steps of PPO 80% of formulas hold of the same signals as the gold "
    "ones, 74% with one reward model, from 44%; they are not briefer",
)  # fmt: skip
baseline = "ppo"
