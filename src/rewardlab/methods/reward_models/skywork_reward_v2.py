"""Skywork-Reward-V2: keep pairs on whose label a model of verified pairs and the best model so far agree; flip what both reject.

    gold model:  learns the verified pairs alone;      best model: of those that learn the other pairs, round after round, the one
                                                       that ranks most verified pairs right
    p = sigmoid(r(chosen) - r(rejected)):    kept if p > 1/2 for both, flipped ("recycled") if p < 1/2 for both, else dropped
    next round: the pairs as they are now;   at last:  L = -log sigmoid(r(chosen) - r(rejected)) on them and the verified ones

The gold model is right about what people want and has seen little; the best one has seen much, most of it labelled by nobody in
particular. What both say is taken for true without another look, so that a few verified labels curate any number of pairs. Every
round judges the same raw pairs anew.

Liu et al. 2025, arXiv:2507.01352, sections 3.2 and 3.3 (both consistencies) and 4.3 (flips of what passes neither check); of the
pipeline no code was released, the repository SkyworkAI/Skywork-Reward-V2 has the report alone. (inferred): the passes of both
models, and that the rounds are two (the paper has eight, each with new pairs that people and models annotate).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from rewardlab.checks.claim import Check
from rewardlab.core import Loop, Problem, Recipe, Run, loop
from rewardlab.data.columns import Column, Data
from rewardlab.data.strength import Fate, by_agreement, flipped, shares
from rewardlab.evals.pairs import pair_gaps
from rewardlab.methods.baselines.bradley_terry import bradley_terry, on_pairs
from rewardlab.methods.baselines.rlhf import Curated, by_verified, labels_right, learn_from, pairs_in, taught_pairs
from rewardlab.settings.domain import PositiveInt

MODEL, NAME = "reward", "skywork_reward_v2"
FOUND, TOLD = f"{NAME}.fates", f"{NAME}.told"


@loop(wraps="inner")
def curated_first(
    recipe: Recipe, run: Run, ops: Any, *, rounds: PositiveInt = 2, passes: PositiveInt = 1, gold_passes: PositiveInt = 4,
    recycle: bool = True, pairs: PositiveInt | None = None, inner: Loop | None = None,
) -> None:  # fmt: skip
    """Training steps (of the loop `inner`, if there is one) on pairs that were curated before the first.

    passes, gold_passes: of a round's model over its pairs, and of the gold model over the verified ones.  recycle: flip what both
    reject; else it is dropped.  pairs: so many of the data; None: all.
    """
    if not isinstance(ops.task.train, Curated):
        gold, wild = by_verified(pairs_in(ops, run, pairs), NAME)
        if FOUND not in run.memory:
            run.memory[FOUND] = judged(ops, run, gold, wild, rounds, passes, gold_passes, recycle)
        kept = curated(wild, run.memory[FOUND])
        learn_from(ops, [*gold, *kept])
        right = labels_right(kept) | {f"raw_{name}": value for name, value in labels_right(wild).items()}
        run.memory[TOLD] = shares(run.memory[FOUND]) | right
    for name, value in run.memory[TOLD].items():
        run.log(name, value)
    inner(recipe, run, ops) if inner else ops.standard_step(recipe)


def judged(
    ops: Any, run: Run, gold: list[Problem], wild: list[Problem], rounds: int, passes: int, gold_passes: int, recycle: bool
) -> list[Fate]:  # fmt: skip
    """What becomes of each pair that nobody verified."""
    with taught_pairs(ops, run, MODEL, gold, gold_passes, "teaching the gold model"):
        by_gold = pair_gaps(wild, run, MODEL)
    best, fates, silver = -1.0, [], wild
    for i in range(rounds):
        with taught_pairs(ops, run, MODEL, silver, passes, f"teaching the model of round {i + 1} of {rounds}"):
            right = accuracy(pair_gaps(gold, run, MODEL))
            if right > best:
                best, by_best = right, pair_gaps(wild, run, MODEL)
        fates = by_agreement(np.stack([by_gold, by_best]))
        if not recycle:
            fates = ["dropped" if fate == "flipped" else fate for fate in fates]
        silver = curated(wild, fates)
        if not silver:
            break
    run.memory[f"{NAME}.best"] = best
    return fates


def accuracy(gaps: np.ndarray) -> float:
    """Share of pairs that are ranked right; ties count half."""
    return float(np.where(gaps == 0, 0.5, gaps > 0).mean())


def curated(problems: list[Problem], fates: list[Fate]) -> list[Problem]:
    """The pairs that stay, flipped ones with their replies in each other's place."""
    return [
        replace(p, meta=flipped(p.meta)) if fate == "flipped" else p
        for p, fate in zip(problems, fates, strict=True)
        if fate != "dropped"
    ]


def skywork_reward_v2(
    base: Recipe | None = None, *, rounds: int = 2, passes: int = 1, gold_passes: int = 4, recycle: bool = True,
    pairs: int | None = None, reward_lr: float | None = None, problems: int = 32, init: str = "value-head",
) -> Recipe:  # fmt: skip
    """rounds: of models that learn the pairs curated so far.  passes, gold_passes: of theirs, and of the gold model.  recycle: flip
    pairs that both models reject.  pairs: of the data, None: all.  reward_lr, problems, init: as in `bradley_terry`."""
    base = base or bradley_terry(reward_lr=reward_lr, problems=problems, init=init)
    taught = on_pairs(base, reward_lr=reward_lr, init=init)
    settings = {"rounds": rounds, "passes": passes, "gold_passes": gold_passes, "recycle": recycle, "pairs": pairs}
    return taught.but(loop=curated_first(**settings, inner=taught.loop))


fidelity = "core"
left_out = (
    "language models that annotate what the best model doubts, shown similar verified pairs: what the two models disagree on is "
    "dropped; attributes of pairs, and the search by them for new pairs where the model errs; people who verify more each round"
)
data = Data(
    chosen="the better reply",
    rejected="the worse reply",
    gold=Column("true where people verified which reply is better, as in some of the rows to train on", some=True),
    qualities=Column("the true quality of both replies, where it is known: how many labels are right is logged", optional=True),
    rows=[
        {"prompt": "Name a planet.", "chosen": "Mars.", "rejected": "There are planets, of which one is Mars.", "gold": True},
        {"prompt": "Why do leaves fall?", "chosen": "Because of gravity.", "rejected": "To save water.", "gold": False},
        {"prompt": "How does one boil an egg?", "chosen": "Seven minutes.", "rejected": "In a pan, somehow.", "gold": False},
        {"prompt": "What is 12 * 12?", "chosen": "144.", "rejected": "12 * 12 is 124.", "gold": True},
    ],
)

SAME = {"init": "value-head:surprise", "reward_lr": 1e-3, "problems": 16}
check = Check(
    says="with 30% of the labels wrong and 20% of the pairs verified, curated pairs teach to rank more true pairs right than all "
    "raw ones do",
    versus="bradley_terry", task="verified_notes:gold=0.2,flip=0.3,size=400", measure="pair_accuracy", direction="higher",
    margin=0.03, settings={**SAME, "passes": 3, "gold_passes": 10}, versus_settings=SAME, problems=500, steps=100,
    tried="one run of each: .635 and .585, although the curated labels were right less often (62%) than the raw ones (71%)",
    finding="63.3% of true pairs ranked right, 58.4% on all raw pairs (20 seeds); it makes two and a half times the updates, as "
    "it also trains the model that curates",
)  # fmt: skip
baseline = "bradley_terry"
