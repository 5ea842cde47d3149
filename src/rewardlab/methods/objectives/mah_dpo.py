"""MAH-DPO: multi-objective DPO with one output head per objective on a shared trunk, and head weights chosen at inference.

    logits_h = W_h s(x, y_<t);    loss = sum over h and its pairs of -log sigmoid(beta [log pi_h/ref(y_w) - log pi_h/ref(y_l)])
    decoding: logits = sum_h w_h logits_h,  w >= 0, sum w = 1

Summed into one number, objectives that are at odds teach a compromise, which is fixed when training ends. A head that learns from
the pairs of one objective alone makes no compromise, and what all objectives have in common is learnt once, by the trunk.

Shen et al. 2025, arXiv:2510.01167, and pearls-lab/multiobj-align, c37836a (mah_dpo/multihead_model.py, mahdpo_trainers.py): heads
begin as copies of the trained model's head, of which the first is itself; beta = 0.1; the trunk learns from all pairs; weights at
decoding are normalised. Here the pairs of a batch weigh alike, there each objective does, which is the same where all have as many.
Copies are exact, as in the code without its noise of .001: their pairs tell heads apart. One learning rate for all is the code's
(head_lr_scale=1). A model that is saved decodes by `mix`; the heads stay in the checkpoints of the run.

Pairs in the data are told apart by their column `objective` (heads="A,B"); or, in Python, a reward or judge for each objective
(objectives={"A": ..., "B": ...}; by default right and brief) pairs the policy's own replies.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Group, Learner, Loop, Problem, Recipe, Run, Sampling, Trajectory, loop, measure
from rewardlab.data.columns import Column, Data
from rewardlab.errors import RewardlabError
from rewardlab.methods.baselines.dpo import dpo
from rewardlab.objectives.joint import by_head
from rewardlab.rewards.algebra import clip
from rewardlab.rewards.length import tokens
from rewardlab.rewards.reward import Reward
from rewardlab.rewards.task import correct
from rewardlab.rollouts.ranked import ranked_by_each
from rewardlab.settings.domain import PositiveFloat, PositiveInt

# ---- What a policy of several heads earns, as the user weighs its heads ----------------------------------------------


@measure
def rewards_by_head(
    problems: Sequence[Problem], run: Run, *, rewards: dict[str, Reward], heads: str = "heads", n: PositiveInt = 1
) -> dict[str, float]:
    """X@Y: the mean reward X under the head Y alone; X@even: under equal weights of all heads.

    own: the mean over the objectives of X@X, what users get who want one of them.  even: that of X@even.  control: how much X@X is
    above X under the other heads, on average.  A run without heads has one for all: its policy's.
    """
    model = run.models.get(heads)
    sides = {name: {name: 1.0} for name in rewards} | {"even": dict.fromkeys(rewards, 1.0)}
    found: dict[str, float] = {}
    for side, weights in sides.items():
        with model.deciding(run.policy, weights) if model is not None else nullcontext():
            # detached: each side has the same random numbers
            aside = run.detached()
            groups = _replies(problems, aside, n)
        found |= {f"{name}@{side}": _mean(reward, groups, aside) for name, reward in rewards.items()}
    own = [found[f"{name}@{name}"] for name in rewards]
    others = [found[f"{a}@{b}"] for a in rewards for b in rewards if a != b]
    numbers = {"own": sum(own) / len(own), "even": sum(found[f"{name}@even"] for name in rewards) / len(rewards)}
    control = numbers["own"] - sum(others) / len(others) if others else 0.0
    return {**numbers, "control": control, **found, "n": float(len(problems))}


def _replies(problems: Sequence[Problem], run: Run, n: int) -> list[Group]:
    prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    done = run.policy.extend([t for t in prompts for _ in range(n)], Sampling(run.max_new), run.rng("eval"))
    return [done[i : i + n] for i in range(0, len(done), n)]


def _mean(reward: Reward, groups: list[Group], run: Run) -> float:
    totals = [s.total for row in reward(groups, run) for s in row if s.total is not None]
    if not totals:
        raise RewardlabError(f"{reward} gave no verdict on any of {len(groups)} held-out problems")
    return sum(totals) / len(totals)


# ---- the recipe ---------------------------------------------------------------------------------------------------------

HEADS = "heads"
RIGHT_AND_BRIEF: dict[str, Reward] = {"right": correct(), "brief": 1 + clip(-0.02 * tokens(), low=-1.0)}


@loop(wraps="inner")
def speak_mixed(
    recipe: Recipe, run: Run, ops: Any, *, weights: dict[str, float], head_lr_scale: PositiveFloat = 1.0, inner: Loop | None = None
) -> None:
    """A step, after which the policy decodes with these weights of its heads.  head_lr_scale: the learning rate of the heads, as a
    multiple of the trunk's.  inner: how a step is taken.
    """
    # all else as the run was given it for the trunk
    ops.learners[HEADS].recipe = ops.learners[HEADS].recipe.but(
        update=replace(recipe.update, lr=head_lr_scale * recipe.update.rate)
    )
    inner(recipe, run, ops) if inner else ops.standard_step(recipe)
    run.model(HEADS).decide(run.policy, weights)


def weights_of(names: list[str], mix: tuple[float, ...]) -> dict[str, float]:
    if mix and len(mix) != len(names):
        raise RewardlabError(f"mix has {len(mix)} weights for {len(names)} heads ({', '.join(names)}): give one for each")
    return dict(zip(names, mix or (1.0,) * len(names), strict=True))


def mah_dpo(
    base: Recipe | None = None, *, objectives: dict[str, Reward] | None = None, heads: str = "", mix: tuple[float, ...] = (),
    beta: float = 0.1, n: PositiveInt = 8, head_lr_scale: float = 1.0, shared: bool = False,
) -> Recipe:  # fmt: skip
    """objectives: a reward for each head, by which own replies are paired.  heads: names in the data, whose pairs are learnt
    instead.  mix: weights of the heads while and after they learn; none: all alike.  beta: of DPO.  n: own replies to each
    prompt.  head_lr_scale: the learning rate of the heads, as a multiple of the trunk's.  shared: one head for all objectives,
    which is plain DPO on the pairs of all.
    """
    base = base or dpo(beta=beta, problems=16)
    if base.objective is None or base.objective.units != ("group",):
        raise RewardlabError(f"each head learns from pairs of its own, and the objective {base.objective} does not compare pairs")
    names = [name.strip() for name in heads.split(",")] if heads else list(objectives or RIGHT_AND_BRIEF)
    if not heads:
        by = objectives or RIGHT_AND_BRIEF
        base = base.but(rollout=ranked_by_each(by=by, n=n), measure=rewards_by_head(rewards=by))
    if shared:
        return base
    learnt = Recipe(objective=base.objective, weighting=base.weighting, update=base.update)
    return base.but(
        objective=by_head(inner=base.objective),
        loop=speak_mixed(weights=weights_of(names, mix), head_lr_scale=head_lr_scale, inner=base.loop),
        also=(*base.also, Learner(HEADS, f"heads:{','.join(names)}", learnt)),
    )  # fmt: skip


fidelity = "core"
left_out = "training process reward models for all objectives alike, and their guidance of decoding step by step"
data = Data(
    chosen=Column("the better reply; not with objectives given in Python", optional=True),
    rejected=Column("the worse reply", optional=True),
    objective=Column("the name of what the two were compared by", optional=True),
    answer=Column("the gold answer, for the reward `right`, where no heads are named and own replies are paired", optional=True),
    rows=[
        {
            "prompt": "Name a planet, in a few words.",
            "chosen": "Mars.",
            "rejected": "There are many planets, of which one is Mars.",
            "objective": "brief",
        },
        {
            "prompt": "Why do leaves fall?",
            "chosen": "Trees save water in winter.",
            "rejected": "Because of gravity alone.",
            "objective": "right",
        },
        {
            "prompt": "How does one boil an egg?",
            "chosen": "Seven minutes in boiling water.",
            "rejected": "In a pan, somehow.",
            "objective": "brief",
        },
    ],
    settings={"heads": "brief,right"},
)

claim = Claim(
    says="whoever wants one of two objectives gets more of it by its own head than by one head that learnt from the pairs of both",
    versus="mah_dpo", task="arithmetic:biased=0.75,error=0.1", measure="own", direction="higher", margin=0.02538,
    settings={"head_lr_scale": 10.0}, versus_settings={"shared": True}, problems=500, steps=40,
    fault=Within("own", high=0.6, says="mean of both rewards where one head serves both"),
    moved=Within("control", low=0.05, says="how much more a reward is under its own head"), learns=None, start=None,
    tried="redundant=0.4, one seed: 15 updates at 3e-4 for trunk and heads, control .03, right falls from .31 to .13 under its own "
    "head too; 12 at 1e-4 with heads ten times as fast, control .02, right stays and brief rises from .27 to .41 under its own",
    finding="a reward is .09 higher under its own head than under the other's, so that users have a choice. But one head for both "
    "serves them nearly as well: mean of the two rewards .400 before, .431 by own heads, .420 by one. It is brevity that moves, "
    "from .43 to .48; right stays at .38 either way",
)  # fmt: skip
baseline = "dpo"
