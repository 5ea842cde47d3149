"""LIMR: keep the problems whose rewards follow the average learning curve, and train the base model on those alone.

    s_i = 1 - sum_k (r_i^k - r^k)^2 / sum_k (1 - r^k)^2,    r_i^k: share of right replies of problem i in epoch k, r^k its mean
    kept: s_i >= threshold;    then training starts again from the base model

Problems that are always solved score 0, and those that never are, or that are unlearnt, below: what is left are problems that the
model learns while it learns as a whole. The score needs no model but the one that is trained.

Li et al. 2025, arXiv:2502.11886. Scores, threshold 0.6 and the filling of missing epochs are those of lim/lim_selection.py and
lim.sh (GAIR-NLP/LIMR, ca90156), where 21 epochs of 8 steps are compared; there both runs are PPO's (scripts/train_limr.sh), here
the base method's: ppo+limr. `first` is the share of the steps that the first run gets; the paper gives both runs as many as they
need. Only whole epochs are compared. `select` is lim, random (as many problems at random) or all, the paper's own baselines.

Problems must come again: a file, or a generated task with a size. On a run that is done (--record-every 1): rewardlab data
learning FILE --run RUN, then data filter --between lim=0.6:, then train on what is left.
"""

import random
from dataclasses import replace
from typing import Any, Literal

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Learner, Loop, Recipe, Run, loop, seed_of
from rewardlab.data.columns import Data
from rewardlab.data.learning import lim_scores
from rewardlab.errors import RewardlabError
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.settings.domain import PositiveShare
from rewardlab.tasks.sources import Shuffled

CURVES, KEPT, BEGUN, BASE = "limr.curves", "limr.kept", "limr.begun", "base"
Selection = Literal["lim", "random", "all"]


@loop(wraps="inner")
def learnt_again(
    recipe: Recipe, run: Run, ops: Any, *, first: PositiveShare = 0.5, threshold: float = 0.6, select: Selection = "lim",
    inner: Loop | None = None,
) -> None:  # fmt: skip
    """Training steps (of the loop `inner`, if there is one). After the share `first` of them the policy is the base model again,
    with a fresh optimiser, and learns from the problems that are kept alone.

    run.memory holds for each problem its share of right replies at each visit, and then the keys of those that are kept.
    """
    if not hasattr(ops.task.train, "__len__"):
        raise RewardlabError("LIMR compares epochs, and these problems never come again: use a file, or give the task a size")
    # a run may start anywhere in its data; what its first epoch missed is filled from the next
    begun = run.memory.setdefault(BEGUN, ops.position // len(ops.task.train))
    if run.progress >= first and KEPT not in run.memory:
        epochs = ops.position // len(ops.task.train) - begun
        run.memory[KEPT] = kept(_problems(ops), run.memory.get(CURVES, {}), epochs, threshold, select, run.seed)
        run.policy.load_state(run.model(BASE).state())
        ops.policy.reset_optimizer()
        ops.position = 0
    if KEPT in run.memory:
        if len(run.memory[KEPT]) != len(ops.task.train):
            keys = set(run.memory[KEPT])
            ops.task = replace(ops.task, train=Shuffled([p for p in _problems(ops) if p.key in keys]))
        run.log("kept", len(run.memory[KEPT]))
    epoch = ops.position // len(ops.task.train) - begun
    inner(recipe, run, ops) if inner else ops.standard_step(recipe)
    if KEPT not in run.memory:
        _remember(run, ops, epoch)


def kept(problems: list, curves: dict[str, list], epochs: int, threshold: float, select: Selection, seed: int) -> list[str]:
    """The keys of the problems that are learnt again."""
    if epochs < 1:
        raise RewardlabError("the first run of LIMR ended before its first epoch: give it more steps, or larger ones")
    known = [list(curves.get(p.key, [])) for p in problems]
    scores = lim_scores([(row + [None] * epochs)[:epochs] for row in known])
    best = [p.key for p, s in zip(problems, scores, strict=True) if s is not None and s >= threshold]
    if not best:
        highest = max((s for s in scores if s is not None), default=0.0)
        raise RewardlabError(f"no problem has a LIM score of {threshold:g}; the highest is {highest:.2f}")
    keys = [p.key for p in problems]
    chosen = {"lim": best, "random": random.Random(seed_of("limr", seed)).sample(keys, len(best)), "all": keys}
    return chosen[select]


def _problems(ops: Any) -> list:
    """The training problems; every epoch holds each once."""
    return [ops.task.train[i] for i in range(len(ops.task.train))]


def _remember(run: Run, ops: Any, epoch: int) -> None:
    """Add the share of right replies of each group of this step, which began in this epoch, to the curve of its problem."""
    groups = ops.step_data.groups
    # every process keeps the same problems, whatever else a judge may say when it is asked again
    for group, row in zip(groups, ops.verdicts(groups), strict=True):
        judged = [s.value >= 1.0 for s in row if s.value is not None]
        share = sum(judged) / len(judged) if judged else None
        curve = run.memory.setdefault(CURVES, {}).setdefault(group[0].problem.key, [])
        # a base may leave groups out: what it learnt from later is not what it missed before
        curve += [None] * (epoch - len(curve))
        curve.append(share)


def limr(base: Recipe | None = None, *, first: float = 0.5, threshold: float = 0.6, select: Selection = "lim") -> Recipe:
    """first: share of the steps of the run that scores the problems.  threshold: the least score.  select: lim, random, all."""
    base = base or grpo()
    again = learnt_again(first=first, threshold=threshold, select=select, inner=base.loop)
    return base.but(loop=again, also=(*base.also, Learner(BASE, "copy:policy", Recipe(), every=0)))


fidelity = "core"
left_out = (
    "PPO for both runs, unless it is the base; its KL of .01 and replies at a temperature of 1.2; and runs without a fixed end"
)
data = Data(
    answer="the gold answer",
    again="keeps rows by how their replies improve over the epochs of its first half",
    visits=4,
    rows=[
        {"prompt": "A train covers 180 km in 3 hours. What is its speed in km/h?", "answer": "60"},
        {"prompt": "A shirt costs 40 euros and is reduced by 15%. What does it cost now?", "answer": "34"},
        {"prompt": "What is $7^2 - 3^2$? Put the answer in \\boxed{}.", "answer": "40"},
        {"prompt": "How many prime numbers are there below 20?", "answer": "8"},
    ],
)

GIVEN = {"problems": 16, "first": 0.55}
claim = Claim(
    says="from the base model, the problems kept by their score teach more than as many at random, in as many updates",
    versus="limr", task="arithmetic:biased=0.8,error=0.05,difficulty=[2,5],size=96", measure="gold", direction="higher",
    margin=0.073, settings=GIVEN, versus_settings={**GIVEN, "select": "random"}, steps=120, guard=Within("pass@1", low=-0.03),
    fault=Within("train.signal", high=0.75, says="share of groups with a signal among problems at random"),
    moved=Within("train.signal", low=0.03, says="share of groups with a signal"),
    tried="60 and 80 steps (+.068, +.038 in three seeds each): the baseline hardly learnt; here -.043, sd .073",
    finding="start 35% right; the problems kept by their score end at 40%, as many at random at 42%: no sign of a gain, but "
    "neither side learns enough here for a gain to show",
)  # fmt: skip
system = "limr-lim"
