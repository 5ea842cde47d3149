"""SPEAR: self-imitation of good past episodes with a growing weight, their advantages recalibrated to the current level.

    r = right + min(0.1 calls, 1) (1 + cos(pi p)) / 2,    p: progress of the training;    A = r - mean r, ratio clipped at 1.28
    kept: episodes with A > 0, for `tolerance` steps.  When 1.5 `capacity` of them earn more than P50, `capacity` at random give
    L = gamma(p) L_clip(A'),    A' = r - P50 > 0,    gamma = (1 - cos(pi min(p / warmup, 1))) / 2;    then the buffer is empty
    P50: median of the mean rewards of all groups so far;    both losses leave out 2% of the tokens, of those with
    (A - mean A)(log pi - mean log pi) between 1 and 40

Where rewards are sparse, a group's few good episodes are seen once and lost; but imitated from the beginning, they make the policy
sure of what it can do by chance. So tools are paid for first, and imitation comes later. An old advantage tells how much better an
episode was than its group then, and A' than what is usual by now, which teaches nothing any more.

Qin et al. 2025, arXiv:2509.22601, and TencentYoutuResearch/SPEAR: buffer and P50 (verl-agent, ray_trainer_hybrid.py, e3dbfe3),
an update of its own for L after that of the step, and gamma (dp_actor.py, 28fffef), calls in right and wrong episodes (retool,
reward.py, 7b51a57), a tolerance of 10 and the bounds (README, 03388e4; scripts have 5, and 2 to 60 for rewards of 10).
Covariances are found before the update over the batch, there in it over a micro-batch. (inferred): warmup = 1/2, and pay for
calls to the end: which of the two schedules ends first differs there (steps of pay and of growing imitation: 200 and 300 in
run_qwen2-32b_spear.sh, 200 and 100 in the README, 100 and 200 in run_alfworld_spear.sh, which does not pass them on); capacity, the
128 episodes of a step, there 2048. The base is the paper's Dr.BoT: `dr_grpo`, clipped higher.
"""

import math
import statistics
from typing import Any

import torch

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Environment, Loop, Recipe, Run, Score, loop
from rewardlab.credit.entropy import drop_covarying
from rewardlab.credit.value import to_go
from rewardlab.data.columns import Column, Data
from rewardlab.envs.search import tools
from rewardlab.evals.episodes import episode_accuracy
from rewardlab.methods.baselines.dr_grpo import dr_grpo
from rewardlab.objectives.ratio import clipped_ratio
from rewardlab.rewards.algebra import scheduled
from rewardlab.rewards.environment import calls_made
from rewardlab.rewards.task import correct
from rewardlab.rollouts.interactive import in_place_of_replies, interactive
from rewardlab.settings.domain import NonNegativeInt, PositiveInt, PositiveShare, Share

MEMORY, EPS_HIGH = "spear", 0.28


@loop(wraps="inner")
def then_again(
    recipe: Recipe, run: Run, ops: Any, *, weight: Share = 1.0, warmup: PositiveShare = 0.5, capacity: PositiveInt = 128,
    tolerance: NonNegativeInt = 10, history: PositiveInt = 10240, covarying: Share = 0.02, inner: Loop | None = None,
) -> None:  # fmt: skip
    """A step, and then an update on good episodes of earlier ones, where there are enough.  weight: of the loss in the end.
    history: groups, of which the median is taken.  covarying: share of tokens left out.  inner: how a step is taken.
    Logs replayed, how many were learnt from again so far.
    """
    inner(recipe, run, ops) if inner else ops.standard_step(recipe)
    if not weight:
        run.log("replayed", 0)
        return
    memory = run.memory.setdefault(MEMORY, {"kept": [], "means": [], "replayed": 0})
    usual = statistics.median([m for _, step in memory["means"] for m in step]) if memory["means"] else math.inf
    good = [(t, earned - usual) for _, t, earned in memory["kept"] if earned > usual]
    gamma = weight * (1 - math.cos(math.pi * min(1.0, run.progress / warmup))) / 2
    full, step = len(good) > 1.5 * capacity, ops.step_data
    if full:
        memory["kept"] = []
    # an update of weight 0 would still move the weights, by the optimiser's moments
    if full and gamma > 0:
        chosen = [good[i] for i in torch.randperm(len(good), generator=run.rng("spear"))[:capacity].tolist()]
        # as many rows in an update as the step had
        minibatches = max(1, round(capacity / len(step.batch)))
        credit = to_go() >> drop_covarying(share=covarying, eps_high=EPS_HIGH) if covarying else to_go()
        learnt = recipe.but(credit=credit, objective=gamma * clipped_ratio(eps_high=EPS_HIGH), epochs=1, minibatches=minibatches)
        ops.learn_besides([[t] for t, _ in chosen], [[Score(advantage)] for _, advantage in chosen], learnt, "replay")
        memory["replayed"] += capacity
    run.log("replayed", memory["replayed"])
    remember(memory, step, run.step, tolerance, history)


def remember(memory: dict[str, Any], step: Any, now: int, tolerance: int, history: int) -> None:
    """Keep the episodes of a step that were better than their groups, and how much its groups earned; forget what is old."""
    newest = memory["kept"][-1][0] if memory["kept"] else now
    kept = [entry for entry in memory["kept"] if newest - entry[0] <= tolerance]
    better = step.batch.credit.sum(1) > 0
    rows = zip(step.batch.rows, better.tolist(), strict=True)
    memory["kept"] = [*kept, *([now, t, score.total] for (t, score), above in rows if above and score.total is not None)]
    groups = [[score.total for score in row if score.total is not None] for row in step.scores]
    memory["means"].append([now, [statistics.fmean(row) for row in groups if row]])
    while len(memory["means"]) > 1 and sum(len(means) for _, means in memory["means"]) > history:
        memory["means"].pop(0)


def spear(
    base: Recipe | None = None, *, env: Environment | None = None, corpus: str = "", n: int | None = None, turns: int = 5,
    calls: float = 1.0, weight: float = 1.0, warmup: float = 0.5, capacity: int = 128, tolerance: int = 10, covarying: float = 0.02,
) -> Recipe:  # fmt: skip
    """env: the tools, or those that the base plays with, or a search (corpus: of this file; `tools`).  n, turns: as in
    `interactive`; n=None: as many episodes as the base has replies.  calls: weight of their reward.  weight, warmup: of learning
    again.  capacity, tolerance: of the buffer, in episodes and steps.  covarying: share of tokens that are left out.
    """
    base = base or dr_grpo().but(objective=clipped_ratio(eps_high=EPS_HIGH))
    if env or corpus or not base.sampling_settings.get("env"):
        played: dict[str, Any] = {"env": tools(env, corpus), "turns": turns}
        measured = episode_accuracy(rollout=interactive(**played, n=1))
        base = base.but(rollout=in_place_of_replies(base.required("rollout"), **played, n=n), measure=measured)
    reward, credit = base.reward or correct(), base.required("credit")
    buffer = {"capacity": capacity, "tolerance": tolerance}
    return base.but(
        reward=reward + scheduled(calls_made(), start=calls, end=0.0, shape="cosine") if calls else reward,
        credit=credit >> drop_covarying(share=covarying, eps_high=EPS_HIGH) if covarying else credit,
        loop=then_again(weight=weight, warmup=warmup, covarying=covarying, inner=base.loop, **buffer),
    )


fidelity = "core"
left_out = "not to learn from episodes that are too long, empty or repetitive, nor from the quarter of the groups that differ least"
data = Data(
    answer="the gold answer",
    facts=Column(
        "documents that can be searched, a list of texts or of {title, text}; not read with `corpus` or `env`", optional=True
    ),
    rows=[
        {
            "prompt": "Which sea does the river that flows through Vienna end in?",
            "answer": "Black Sea",
            "facts": ["The Danube flows through Vienna.", "The Danube ends in the Black Sea.", "The Rhine ends in the North Sea."],
        },
        {
            "prompt": "Who directed the film Psycho?",
            "answer": "Alfred Hitchcock",
            "facts": ["Psycho is a film by Alfred Hitchcock of 1960."],
        },
        {
            "prompt": "What is the tallest mountain of Africa?",
            "answer": "Kilimanjaro",
            "facts": [{"title": "Kilimanjaro", "text": "The tallest mountain of Africa."}],
        },
    ],
)

claim = Claim(
    says="good episodes learnt from again, and calls paid for at first, make episodes right more often while it learns",
    versus="spear", task="facts:hops=4,error=0.5,biased=0.75,test_size=1000", measure="auc.truth", direction="higher",
    margin=0.02957, versus_settings={"weight": 0.0, "calls": 0.0, "covarying": 0.0}, steps=22,
    moved=Within("train.replayed", low=128.0, says="learnt again"), start=None,
    finding="while they learn both sides solve half of the episodes (50% and 52%), at the end three quarters (75% and 76%, 30% "
    "before): replay and pay for calls gain nothing here, for twice the tokens",
)  # fmt: skip
baseline = "dr_grpo"
