"""CAPO: critiques list a reply's wrong steps; tokens get the outcome reward, minus a penalty in steps voted wrong.

    r_t = W_whole 1[right] - W_process 1[t in a wrong step];     A_t = (r_t - mean) / std,   over all tokens of the group

A step is wrong if all of several critiques list it (or most do): a general model reads the whole reply and writes one in a pass.
W_whole above W_process keeps a right reply with a flawed step above a wrong one, so that the critic decides only how the outcome is
shared out among the steps.

Xie et al. 2025, arXiv:2508.02298: token reward, weights 2 and 1, several critiques, their intersection or majority (from notes on
the paper and an independent implementation; the authors' repository, andyclsr/CAPO, held no code); that mean and deviation are
over tokens is equation 2, as a review of it says. (inferred): four critiques; which vote is the default; the critic's prompt; a
reply whose critiques cannot be read has no wrong step, as the equation says of steps that none lists: the share of such replies is
logged, and where it is large, the critic is too weak, and what is left is the outcome.

The critic is --critic PATH, a copy of the policy's start without it, or in Python any reward that pays 1 at the end of a wrong
step, 0 at the others (critiques=...).
"""

from collections.abc import Sequence
from typing import Any, Literal

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Group, Learner, Recipe, Run, Score, Scores
from rewardlab.credit.group import center, scale_by_std
from rewardlab.credit.tokens import each_token
from rewardlab.data.columns import Data
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.critiques import noisy_critiques, wrong_steps
from rewardlab.rewards.reward import Reward, reward
from rewardlab.rewards.steps import sound_steps
from rewardlab.rewards.task import correct

TERM = "wrong_steps"


@reward(over="groups")
def none_unless_listed(groups: list[Group], run: Run, *, inner: Reward) -> Scores:
    """The step labels of `inner`, and right for every step of a reply without any.

    Logs the share of such replies.
    """
    found = inner(groups, run)
    silent = [s.missing for row in found for s in row]
    run.log("uncriticised", sum(silent) / max(1, len(silent)))
    return [
        [_no_step(t.steps, s) if s.missing else s for t, s in zip(*rows, strict=True)] for rows in zip(groups, found, strict=True)
    ]


def _no_step(ends: Sequence[int], unread: Score) -> Score:
    return Score(None if ends else 0.0, steps=[(at, 0.0) for at in ends], why=unread.why)


def capo_genprm(
    base: Recipe | None = None, *, critiques: Reward | None = None, critic: str = "copy:policy", votes: int = 4,
    agree: Literal["majority", "all"] = "all", longest: int = 512, whole: float = 2.0, process: float = 1.0, n: int = 8,
) -> Recipe:  # fmt: skip
    """critiques: pays 1 at the end of each wrong step, 0 at the others; None: what the model `critic` writes (`Learner.init`).
    votes, agree: critiques of a reply, and how many of them must list a step.  longest: tokens of a
    critique; one that is cut off before its list does not vote.  whole, process: W.  n: of grpo.
    """
    base = base or grpo(n=n)
    also = base.also if critiques else (*base.also, Learner("critic", critic, Recipe(), every=0))
    right: Any = base.reward or correct()
    found = none_unless_listed(inner=critiques or wrong_steps(votes=votes, agree=agree, max_new=longest)).named(TERM)
    return base.but(
        rollout=base.required("rollout").but_innermost(steps="newline"),
        reward=whole * right - process * found,
        credit=each_token(steps=TERM, chain=center() >> scale_by_std()),
        also=also,
    )


fidelity = "core"
left_out = (
    "the policy's own marks of steps (<step k>; here steps are lines), the paper's prompt for the critic, and whatever else the "
    "code has, which is not released"
)
data = Data(answer="the gold answer")

VOTED = noisy_critiques(inner=sound_steps(), miss=0.1, alarm=0.2, votes=4, agree="majority")
claim = Claim(
    says="with a vote of critiques that each err in one step of six, more is learnt than from the outcome alone in as many updates",
    versus="grpo", task="arithmetic:biased=0.75,error=0.1", measure="auc.truth", direction="higher", margin=0.0126,
    settings={"critiques": VOTED}, steps=40, guard=Within("pass@1", low=-0.03),
    finding="start 36% right; CAPO ends at 75%, GRPO at 73%, and it gets there sooner. The critic is simulated and knows the gold "
    "steps: it errs in one of six, so that this says what good critiques are worth, not what a model's are",
)  # fmt: skip
baseline = "grpo"
