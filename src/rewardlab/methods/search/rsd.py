"""RSD: a small model drafts each step, and the large one rewrites it only where a process reward model rejects the draft.

    P(z_t) = w(r) P_draft(z_t) + nu P_target(z_t),    w = 1[r(x, z_<=t) >= delta],    nu = 1 - E_draft[w]

Speculative decoding keeps the target's distribution, and so refuses right steps that the target would have worded otherwise. Here
a good draft is accepted however unlikely it is: of all w that ask the target as often, the threshold has the highest mean reward.

Liao et al. 2025, arXiv:2501.19324, and the released code (BaohaoLiao/RSD, ce9aa41, main_online.py): delta = 0.7, greedy, steps end
at a blank line, the model's score of the last step. The policy is the target. The paper's other weights (its table 1) are a
constant, min(1, max(0, r)), max(0, r / (1 + r)), called sigmoid there, and 1 / (1 + exp(-alpha (r - delta))), logistic;
alpha = 10 is (inferred).

The --model is the target, `draft` a checkpoint or run folder of a smaller model with the same vocabulary, and the scorer one of
steps (`rewardlab search --scorer`). With the default draft, a copy of the policy, it samples twice at most.
"""

from __future__ import annotations

import math
from typing import Literal

import torch

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Group, Learner, Problem, Recipe, Run, Trajectory, Update, rollout
from rewardlab.data.columns import Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.passk import accuracy
from rewardlab.methods.baselines.weighted_vote import own_probability
from rewardlab.rewards.correct_so_far import correct_so_far
from rewardlab.rewards.imperfect import imperfect
from rewardlab.rewards.reward import Reward
from rewardlab.rollouts.best import best
from rewardlab.rollouts.stepwise import UNSURE, Stepping, grown, marked, read_alike, started, worths
from rewardlab.settings.domain import NonNegativeFloat, PositiveFloat, PositiveInt

# ---- Replies whose steps a small model drafts, and the policy writes where a reward does not like the draft ----------

Rule = Literal["threshold", "clipped", "sigmoid", "logistic", "constant"]


@rollout
def speculative_steps(
    problems: list[Problem], run: Run, *, score: Reward, draft: str = "draft",
    rule: Literal["threshold", "clipped", "sigmoid", "logistic", "constant"] = "threshold", threshold: float = 0.7,
    steepness: PositiveFloat = 10.0, n: PositiveInt = 1, temperature: NonNegativeFloat = 0.0,
    step_tokens: PositiveInt | None = None, stop: tuple[str, ...] = ("\n\n",),
) -> list[Group]:  # fmt: skip
    """n replies to each problem. Each step is drafted by the model `draft`; the policy writes it anew if the draft is refused.

    rule: a draft is accepted where its score reaches the threshold; with the chance min(1, max(0, score)) (clipped), score /
    (1 + score) and never below 0 (sigmoid), or 1 / (1 + exp(-steepness (score - threshold))) (logistic); or with the chance
    `threshold`, whatever it scores (constant). A draft without a verdict is refused.  step_tokens: most tokens of a step (None: of
    a reply).  stop: the texts that end a step.  Logged: drafted, the share of steps that are drafts.

    Liao et al. 2025, arXiv:2501.19324
    """
    if rule == "constant" and not 0 <= threshold <= 1:
        raise RewardlabError(f"rule=constant accepts with the chance `threshold`, from 0 to 1, not {threshold:g}")
    read_alike(run, (draft,))
    how, rng = Stepping(step_tokens, temperature, tuple(stop)), run.rng("accept")
    groups: list[Group] = [[t] * n for t in started(problems, run)]
    kept = steps = 0
    while open_ := [(g, k) for g, rows in enumerate(groups) for k, t in enumerate(rows) if t.stop is None]:
        begun = [groups[g][k] for g, k in open_]
        # of even number, as what the policy writes instead is of odd: siblings that differ
        drafts = grown(begun, [2 * k for _, k in open_], how, run, draft)
        chances = _chances(drafts, score, rule, threshold, steepness, run)
        luck = torch.rand(len(drafts), generator=rng).tolist()
        refused = [i for i, (chance, u) in enumerate(zip(chances, luck, strict=True)) if not u < chance]
        written = grown([begun[i] for i in refused], [2 * open_[i][1] + 1 for i in refused], how, run) if refused else []
        instead = dict(zip(refused, written, strict=True))
        for i, (g, k) in enumerate(open_):
            groups[g][k] = instead.get(i, drafts[i])
        kept, steps = kept + len(drafts) - len(refused), steps + len(drafts)
    run.log("drafted", kept / max(1, steps))
    return [marked(rows, run) for rows in groups]


def _chances(drafts: list[Trajectory], score: Reward, rule: Rule, threshold: float, steepness: float, run: Run) -> list[float]:
    """Of being accepted, for each draft."""
    if rule == "constant":
        return [threshold] * len(drafts)
    # each is a group of its own: drafts of different replies are not compared
    known = [value for (value,) in worths([[t] for t in drafts], score, run)]
    return [0.0 if value == UNSURE else accepted(value, rule, threshold, steepness) for value in known]


def accepted(value: float, rule: Rule, threshold: float, steepness: float) -> float:
    """The chance that a draft of this score is accepted."""
    if rule == "threshold":
        return float(value >= threshold)
    if rule == "sigmoid":
        return max(0.0, value) / (1 + max(0.0, value))
    if rule == "logistic":
        # 1 / (1 + exp(-x)), which overflows for no x
        return 0.5 * (1 + math.tanh(steepness * (value - threshold) / 2))
    return min(1.0, max(0.0, value))


# ---- the recipe ---------------------------------------------------------------------------------------------------------

DRAFT = "draft"


def rsd(
    base: Recipe | None = None, *, draft: str = "copy:policy", rule: Rule = "threshold", threshold: float = 0.7,
    steepness: float = 10.0, n: int = 1, temperature: float = 0.0, step_tokens: int | None = None, step_end: str = "\n\n",
) -> Recipe:  # fmt: skip
    """draft: the small model.  rule: w, a threshold, clipped, sigmoid, logistic or a constant.  threshold: delta, or the constant.
    steepness: alpha of the logistic one.  n: replies to each problem, the best of which is the answer.  step_tokens: most tokens
    of a step.  step_end: what ends one."""
    base = base or Recipe(name="rsd", reward=own_probability(), measure=accuracy(), update=Update())
    search = speculative_steps(
        score=base.required("reward"), draft=DRAFT, rule=rule, threshold=threshold, steepness=steepness, n=n,
        temperature=temperature, step_tokens=step_tokens, stop=(step_end,),
    )  # fmt: skip
    return base.but(rollout=search, select=best(), also=(*base.also, Learner(DRAFT, draft, Recipe(), every=0)))


WEAKER = {"draft": "embedded:arithmetic:biased=0.75,error=0.4", "temperature": 1.0, "step_end": "\n"}
"""A draft model whose teacher slipped four times as often; both are of one size, so that tokens are what they cost."""

fidelity = "core"
left_out = "the stop after 100 steps, or after five rounds in which no reply of the batch ends"
data = Data(answer="the gold answer")

# by construction: the rival accepts at random, and the reward comes from the truth, with noise
claim = Claim(
    says="drafts accepted by reward lead to more right answers than drafts accepted at random, at no more tokens",
    versus="rsd", task="arithmetic:biased=0.75,error=0.1", measure="accuracy", direction="higher", margin=0.049,
    settings=WEAKER | {"threshold": 0.5}, versus_settings=WEAKER | {"rule": "constant", "threshold": 0.5},
    reward=imperfect(auc=0.8, inner=correct_so_far()), problems=500, guard=Within("tokens_per_answer", high=5.0),
    fault=Within("accuracy", high=0.7, says="right answers with drafts accepted at random"), learns=None, start=None, sanity=True,
    finding="36% right where the score decides which drafts stay, 23% where chance does, at 44 tokens an answer and 43. The "
    "scores are the truth with noise, and both models are of one size: what it saves over the target alone is not tested",
)  # fmt: skip
baseline = "best_of_n"
system = "rsd-reward-guided-speculative"
