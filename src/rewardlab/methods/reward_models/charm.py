"""CHARM: a reward model that overrates some policies goes on learning from pairs relabelled by scores that Elo ratings calibrate.

    P(a beats b) = 1 / (1 + 10^((elo_b - elo_a) / 400))
    offsets o:    mean over replies y of a, y' of b of sigmoid((r(y) + o_a - r(y') - o_b) / temperature) = P(a beats b)
    relabelled:   of both replies to a prompt, the one with the higher r + o of its policy is the chosen one
    L = -log sigmoid(r(chosen) - r(rejected)),   from the reward model that gave the scores
    mismatch degree of a = (share of its pairs that r says a wins - P) / max(P, 1 - P)

What a reward model overrates (a style, a format) often marks the replies of one policy, and how often people prefer that policy is
known from an arena. With more than two policies the win rates are fitted by least squares (`data/elo.py`).

Zhu et al. 2025, arXiv:2504.10045, by the released code (HexagonStar/CHARM, 38daa5e: src/calibrate.py, src/utils.py,
src/train_rm.py): temperature 0.1, all replies of a against all of b, strict wins in the mismatch degree, plain Bradley-Terry from
the same model afterwards; its rate is 2e-6, one pass, 64 pairs an update. The code calibrates an overrated policy and a reference;
several are calibrated at once here, as its matrix allows. (inferred): of pairs whose replies are by one policy the label stays; how
far a reward model that knows nothing is taught by the labels first (`first`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Loop, Problem, Recipe, Run, loop, measure
from rewardlab.data.columns import Column, Data
from rewardlab.data.elo import calibrating_offsets, elo_table, mismatch_degrees, scores_by_model
from rewardlab.data.strength import flipped
from rewardlab.data.values import number_of
from rewardlab.errors import RewardlabError
from rewardlab.evals.pairs import pair_scores, pairs_won
from rewardlab.methods.baselines.bradley_terry import bradley_terry, on_pairs
from rewardlab.methods.baselines.rlhf import UNTAUGHT, Curated, labels_right, learn_from, pairs_in
from rewardlab.scoreboard.correlation import spearman
from rewardlab.settings.domain import PositiveFloat, PositiveInt, Share

MODEL, NAME = "reward", "charm"
TURNED, OFFSETS = f"{NAME}.turned", f"{NAME}.offsets"


def authors(problem: Problem) -> tuple[str, str]:
    """The policies that wrote the chosen and the rejected reply."""
    problem.required("chosen_model", "rejected_model", by=NAME, how="They say which policy wrote each reply of the pair")
    return str(problem.meta["chosen_model"]), str(problem.meta["rejected_model"])


def ratings_of(problems: Sequence[Problem], file: str | None) -> dict[str, float]:
    """The Elo rating of each policy, from a file or from the columns `chosen_elo` and `rejected_elo`."""
    if file:
        return elo_table(file)
    found: dict[str, float] = {}
    for p in problems:
        for name, column in zip(authors(p), ("chosen_elo", "rejected_elo"), strict=True):
            rating = number_of(p.meta.get(column))
            if rating is not None and found.setdefault(name, rating) != rating:
                raise RewardlabError(f"{NAME}: the rows give {name} two ratings, {found[name]:g} and {rating:g}")
    if not found:
        raise RewardlabError(
            f"{NAME} needs Elo ratings: name a file with columns model and elo (--elo FILE), or give rows the columns "
            "chosen_elo and rejected_elo"
        )
    return found


# ---- the data --------------------------------------------------------------------------------------------------------


@loop(wraps="inner")
def calibrated(
    recipe: Recipe, run: Run, ops: Any, *, first: Share = 0.0, elo: str | None = None, temperature: PositiveFloat = 0.1,
    pairs: PositiveInt | None = None, inner: Loop | None = None,
) -> None:  # fmt: skip
    """Training steps (of the loop `inner`, if there is one) on the pairs as they are labelled, and on relabelled ones afterwards.

    first: the share of the run in which the labels of the data are learnt; 0: the model was taught before.  elo, temperature: see
    `charm`.  pairs: so many of the data are relabelled; None: all.
    """
    if run.progress >= first:
        if not isinstance(ops.task.train, Curated):
            problems = pairs_in(ops, run, pairs)
            if TURNED not in run.memory:
                relabel(problems, run, ratings_of(problems, elo), temperature)
            turned = run.memory[TURNED]
            learn_from(ops, [turned_round(p) if turn else p for p, turn in zip(problems, turned, strict=True)])
            run.memory[f"{NAME}.told"] = {
                "turned": float(np.mean(turned)), **labels_right(ops.task.train.problems),
                **{f"raw_{name}": value for name, value in labels_right(problems).items()},
            }  # fmt: skip
        for name, value in (run.memory[f"{NAME}.told"] | run.memory[OFFSETS]).items():
            run.log(name, value)
    inner(recipe, run, ops) if inner else ops.standard_step(recipe)


def relabel(problems: Sequence[Problem], run: Run, elo: Mapping[str, float], temperature: float) -> None:
    """Keep in the run's memory the offset of each policy, and for each pair whether its replies change places."""
    scores, wrote = pair_scores(problems, run, MODEL), [authors(p) for p in problems]
    offsets = calibrating_offsets(scores_by_model(scores, wrote), elo, temperature)
    run.memory[OFFSETS] = {f"offset.{name}": offset for name, offset in offsets.items()}
    run.memory[TURNED] = [
        names[0] != names[1] and bool(b + offsets[names[1]] > a + offsets[names[0]])
        for (a, b), names in zip(scores.tolist(), wrote, strict=True)
    ]


def turned_round(problem: Problem) -> Problem:
    """The pair with its replies in each other's place, and all columns about either."""
    return replace(problem, meta=flipped(problem.meta))


# ---- what it is measured by ------------------------------------------------------------------------------------------


@measure
def mismatch(problems: Sequence[Problem], run: Run, *, elo: str | None = None) -> dict[str, float]:
    """How often the chosen reply of held-out pairs scores higher, ties half, and how well win rates agree with Elo ratings.

    mismatch: the mean over policies of the size of the mismatch degree.  mismatch.NAME: that of one policy; above 0, it is
    overrated.  elo_correlation: Spearman's, over policies, of their mean score and their rating.
    """
    scores, wrote = pair_scores(problems, run, MODEL), [authors(p) for p in problems]
    ratings = ratings_of(problems, elo)
    degrees = mismatch_degrees(scores, wrote, ratings)
    means = {name: float(np.mean(of)) for name, of in scores_by_model(scores, wrote).items()}
    return {
        **pairs_won(scores[:, 0], scores[:, 1]), "mismatch": float(np.mean(np.abs(list(degrees.values())))),
        **{f"mismatch.{name}": degree for name, degree in degrees.items()},
        "elo_correlation": spearman(np.array(list(means.values())), np.array([ratings[name] for name in means])),
    }  # fmt: skip


def charm(
    base: Recipe | None = None, *, elo: str | None = None, temperature: float = 0.1, first: float | None = None,
    pairs: int | None = None, reward_lr: float | None = None, problems: int = 32, init: str = "value-head",
) -> Recipe:  # fmt: skip
    """elo: a file of ratings with columns model and elo; None: the columns `chosen_elo` and `rejected_elo`.  temperature: of the
    win rates between calibrated scores.  first: the share of the run in which the labels of the data are learnt, before scores
    are calibrated; None: half of it where `init` is no trained reward model, else 0.  pairs: that are relabelled, None: all.
    init: the reward model that is calibrated, a folder or a run.  reward_lr, problems: as in `bradley_terry`."""
    base = base or bradley_terry(reward_lr=reward_lr, problems=problems, init=init)
    taught = on_pairs(base, reward_lr=reward_lr, init=init)
    start = (0.5 if init.startswith(UNTAUGHT) else 0.0) if first is None else first
    steps = calibrated(first=start, elo=elo, temperature=temperature, pairs=pairs, inner=taught.loop)
    return taught.but(loop=steps, measure=mismatch(elo=elo))


fidelity = "whole"
data = Data(
    chosen="one reply, the better one as far as the data says",
    rejected="another reply, by another policy",
    chosen_model="the policy that wrote the first reply",
    rejected_model="the policy that wrote the other one",
    chosen_elo=Column("the Elo rating of the first one's policy; not with --elo FILE", optional=True),
    rejected_elo=Column("the Elo rating of the other one's policy", optional=True),
    qualities=Column("the true quality of both replies, where it is known: how many labels are right is logged", optional=True),
    rows=[
        {
            "prompt": "Name a planet.", "chosen": "Great question! Mars!", "rejected": "Mars.", "chosen_model": "chatty-9b",
            "rejected_model": "plain-70b", "chosen_elo": 1191, "rejected_elo": 1248,
        },
        {
            "prompt": "Why do leaves fall?", "chosen": "Trees save water in winter.", "rejected": "What a lovely thing to ask!",
            "chosen_model": "plain-70b", "rejected_model": "chatty-9b", "chosen_elo": 1248, "rejected_elo": 1191,
        },
        {
            "prompt": "How does one boil an egg?", "chosen": "Wonderful! In a pan!", "rejected": "Seven minutes.",
            "chosen_model": "chatty-9b", "rejected_model": "plain-70b", "chosen_elo": 1191, "rejected_elo": 1248,
        },
    ],
)  # fmt: skip

SAME = {"init": "value-head:surprise", "reward_lr": 1e-3, "problems": 16}
check = Check(
    says="pairs relabelled by scores that true Elo ratings calibrate bring the win rates of policies closer to the ratings, where "
    "the annotator likes a habit of one policy, and no fewer true pairs are ranked right",
    versus="bradley_terry", task="authored_notes:size=1000", measure="mismatch", direction="lower", margin=0.05, settings=SAME,
    versus_settings=SAME, by=mismatch(), problems=500, steps=140, guard=Within("pair_accuracy", low=-0.03),
    fault=Within("mismatch.chatty", low=0.15, says="how far plain Bradley-Terry overrates the policy that praises"),
    moved=Within("elo_correlation", low=0.1, says="correlation of the policies' mean scores with their ratings"),
    tried="one run of each: mismatch .24 and .34, true pairs .68 and .56, mismatch of the unseen chatty policy .41 and .63; one "
    "run with 400 pairs and 100 steps: .24, and .32 at half of them",
    finding="After 140 updates win rates of policies miss their ratings by .23, by .33 without charm; 64% of true pairs are ranked "
    "right, 58% without. The policy that praises is still overrated, by .34 in place of .53. It costs a second training: 1.4 "
    "times the tokens",
)  # fmt: skip
baseline = "bradley_terry"
