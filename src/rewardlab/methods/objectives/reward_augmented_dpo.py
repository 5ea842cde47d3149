"""Reward-augmented DPO: goal-conditioned pairs; under the rejected reply's score as the goal, that reply is preferred.

    R(x, y, g) = -(g - r(x, y))^2;      g = r_w:  y_w above y_l;      g = r_l:  y_l above y_w
    DPO on both, with g in the prompt;  at inference g is the highest score

DPO sees which reply is better, not how good either is: it unlearns a rejected reply that is nearly perfect, and takes over a chosen
one that is poor. Under goals nothing is unlearnt, and the policy learns what sets the scores apart; replies of the highest score,
rare in the data, are asked for by it. Any loss on pairs may be below: ipo+reward_augmented_dpo, simpo+reward_augmented_dpo.

Zhang et al. 2024, arXiv:2410.08067. Relabelling and system message follow the released code (shenao-zhang/
reward-augmented-preference, 058a5de, scripts/reward_augmentation.py). Label smoothing (0.3) and beta (0.01)
are left to the method below. (inferred): pairs of equal scores, which the code keeps with contrary labels under one goal, are left
out, since R prefers neither; scores are rounded to `digits`.

rewardlab data pairs makes scored pairs; coig_p below takes several scored replies; a reward of one's own is score=.... To answer
with the trained model, give it the message: --system "... Overall score: 10."
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rewardlab.checks.claim import START, Check, Within
from rewardlab.core import Measure, Problem, Recipe, Rollout, Run, measure
from rewardlab.data.columns import Column, Data
from rewardlab.errors import RewardlabError
from rewardlab.methods.baselines.dpo import dpo
from rewardlab.rewards.recorded import score_in_data
from rewardlab.rewards.reward import Reward
from rewardlab.rollouts.goals import under_both_goals
from rewardlab.rollouts.recorded import recorded
from rewardlab.worlds.notes import note_quality

# ----------------------------------------------------------------------------------------------------------------------
#
# What a policy makes of goals in the prompt: of a pair of replies, the one whose score the prompt asks for should be likelier.


@measure
def goal_margins(problems: Sequence[Problem], run: Run, *, rollout: Rollout, reward: Reward, least: float) -> dict[str, float]:
    """Teacher-forced on held-out pairs under both goals, as `under_both_goals` makes them; nothing is sampled.

    kept: log pi/ref per token of rejected replies that score at least `least`, each under its own score: below 0 they are unlearnt.
    preferred: share of pairs whose better reply gained more under its score, ties half.  told_apart: share in which it gained more
    on the other under its own score than under the other's, ties half; 1/2 where goals are not read.
    """
    if run.reference is None:
        raise RewardlabError("goal_margins needs a reference policy, and this method has none")
    groups = rollout(list(problems), run)
    rows = [t for group in groups for t in group]
    both = zip(rows, run.policy.score(rows), run.reference.score(rows), strict=True)
    gained = np.array([float((pi - ref)[t.mask].sum()) for t, pi, ref in both]).reshape(-1, 2, 2)  # pair, goal, (its reply, other)
    tokens = np.array([t.mask.sum() for t in rows]).reshape(-1, 2, 2)
    scores = np.array([s.total for row in reward(groups, run) for s in row], float).reshape(-1, 2, 2)
    near = scores[:, 1, 0] >= least
    if not near.any():
        raise RewardlabError(f"goal_margins: no rejected reply of {len(near)} pairs scores {least:g} or more by {reward}")
    margins = gained[..., 0] - gained[..., 1]  # under each goal, of its own reply over the other
    return {
        "kept": float((gained / tokens)[near, 1, 0].mean()), "preferred": _positive(margins[:, 0]),
        "told_apart": _positive(margins.sum(1)), "n": float(near.sum()),
    }  # fmt: skip


def _positive(x: np.ndarray) -> float:
    return float(((np.sign(x) + 1) / 2).mean())


# ---- A measure of the policy under a system message that its training told it ----------------------------------------


@measure
def with_system_prompt(problems: Sequence[Problem], run: Run, *, inner: Measure, system: str) -> dict[str, float]:
    """The numbers of the measure `inner`, with this system message before each problem."""
    return inner([problem.told(system) for problem in problems], run)


# ---- the recipe ---------------------------------------------------------------------------------------------------------

TOLD = (
    "You are an assistant that generates responses for the instruction while implicitly achieving the following target scores "
    "(on a scale of 1-10, where 1 is lowest and 10 is highest):\nOverall score: {goal}."
)


def reward_augmented_dpo(
    base: Recipe | None = None, *, score: Reward | None = None, best: float = 10.0, told: str = TOLD, digits: int = 1
) -> Recipe:
    """score: what scores replies; None: the data.  best: the highest score, which held-out problems are answered under.  told: the
    system message, in which {goal} is the score.  digits: of the score after the point.
    """
    base = base or dpo(problems=16)
    if base.objective is None or "group" not in base.objective.units:
        raise RewardlabError(f"goals turn pairs round, and the objective {base.objective} does not compare the replies of a pair")
    goals = under_both_goals(inner=base.required("rollout"), by=score or score_in_data(), told=told, digits=digits)
    asked = with_system_prompt(inner=base.required("measure"), system=told.replace("{goal}", f"{best:g}"))
    return base.but(rollout=goals, measure=asked)


fidelity = "core"
left_out = (
    "goals of several attributes; the implicit reward as score; dropping pairs whose scores contradict the label, since under "
    "goals nothing is wrong with them"
)
data = Data(
    chosen="the better reply",
    rejected="the worse reply",
    chosen_score=Column("how good the better reply is; not with a score of your own", optional=True),
    rejected_score=Column("how good the worse reply is", optional=True),
    rows=[
        {
            "prompt": "Name a planet, in a few words.",
            "chosen": "Mars.",
            "rejected": "There are many planets, of which one is Mars.",
            "chosen_score": 9,
            "rejected_score": 5,
        },
        {
            "prompt": "Why do leaves fall?",
            "chosen": "Trees save water in winter.",
            "rejected": "Because of gravity alone.",
            "chosen_score": 8,
            "rejected_score": 2,
        },
        {
            "prompt": "How does one boil an egg?",
            "chosen": "Seven minutes in boiling water.",
            "rejected": "In a pan, somehow.",
            "chosen_score": 7,
            "rejected_score": 3,
        },
    ],
)

SCORED = {"score": 10 * note_quality(), "told": "Score: {goal}."}
PAIRS = under_both_goals(inner=recorded(fields=("chosen", "rejected")), by=SCORED["score"], told=SCORED["told"])
check = Check(
    says="rejected replies that are nearly as good as the best are not unlearnt, as by DPO in as many updates on the same pairs",
    versus="dpo", task="notes", measure="kept", direction="higher", margin=0.4635,
    settings={**SCORED, "lr": 3e-4}, versus_settings={"problems": 16, "lr": 3e-4},
    by=goal_margins(rollout=PAIRS, reward=SCORED["score"], least=7.0), steps=40,
    fault=Within("kept", high=-0.1, says="nats per token by which DPO changes good replies that were rejected"),
    judge=Within("told_apart", low=0.65, says="pairs in which goals are told apart"), learns=None,
    start=START,
    tried="the share of replies of the highest score where that is asked for, .27 to .57 below DPO's; the same after 60 updates of "
    "imitating replies under their scores, .21 below: it takes 300 of these before the goal changes what is written; 120 updates "
    "at 3e-4: goals told apart in .55 of pairs (kept -.06, by DPO -.98, whence the margin); 160 at 1e-3: in .56",
    finding="good replies that were rejected lose .18 nats per token by DPO, .04 under goals. This shows nothing: so small a "
    "policy does not read the goals (told apart in 51% of pairs; 50% is chance), so that their contrary labels cancel out",
)  # fmt: skip
baseline = "dpo"
