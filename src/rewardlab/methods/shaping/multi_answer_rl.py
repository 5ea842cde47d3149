"""Multi-answer RL: one reply lists K different answers with a confidence each, and is paid for every one that is right.

    r = sum_i 1[a_i right] - mean_i (q_i - 1[a_i right])^2        over the K answers;   in stages:
    -2 unless there are K answers with a confidence each;   -1 unless all differ;   sum_i 1[a_i right] - 1 unless sum_i q_i <= 1

Where several answers may be right, a reward for one makes a policy give the likeliest alone, and asking it again brings the same;
here the second best is worth giving too. Confidences of answers of which one is right are chances that sum to 1 at most. With K = 1
it is RLCR; `calibrated=False` pays coverage alone, as if nothing were said of confidence (the paper's Multi-RLVR, beside its
Multi-RLCR).

Puri et al. 2026, arXiv:2603.24844. Stages, the mean of the squares and the advantage without the standard deviation are those of
the released code (ishapuri/multi_answer_rl 918e956, reward_fns.py; arguments.py 18d056e): .5 for the form, .5 for a right
answer among different ones, .5 (1 - mean) if they differ and the sum is at most 1: twice that, less 2, is r where one answer is
right. Of several right ones it counts one, or, by a switch, their number over K; the sum is the paper's (read in a summary of it).
Left out: <think> and <analysis>. The base's reward is replaced: it judges one answer.

Data: prompts and answers (a list, where several are right), and a policy that lists answers: ask for them with --system.
"""

from rewardlab.core import Recipe
from rewardlab.credit.group import center
from rewardlab.credit.value import to_go
from rewardlab.evals.calibration import answer_sets
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.proof.claim import Claim, Within
from rewardlab.rewards.answer_sets import answers_covered, answers_listed, confidences_within, distinct_answers, set_brier
from rewardlab.rewards.operator import operator
from rewardlab.rollouts.independent import independent


@operator
def set_reward(listed: float, different: float, within: float, right: float, squares: float, *, k: int) -> float:
    """What a list of k answers earns: right of them are right, and `squares` is the sum of the squared errors of their confidences.

    listed, different, within: 1 where the list has its form, its answers differ, and its confidences sum to what they may.
    """
    if not listed:
        return -2.0
    if not different:
        return -1.0
    return right - (squares / k if within else 1.0)


def multi_answer_rl(base: Recipe | None = None, *, k: int = 3, calibrated: bool = True, total: float = 1.0) -> Recipe:
    """k: answers of a reply.  calibrated: whether their confidences count.  total: the most that they may sum to: 1 where one
    answer at most is right, k to leave them free.
    """
    base = base or grpo().but(credit=center() >> to_go())
    form = (answers_listed(k=k, confidences=calibrated), distinct_answers(k=k, confidences=calibrated))
    # without confidences no list gets what they would earn
    stated = (confidences_within(total=total), answers_covered(), set_brier()) if calibrated else (0.0, answers_covered(), 0.0)
    return base.but(reward=set_reward(*form, *stated, k=k), measure=answer_sets(rollout=independent(n=1)))


claim = Claim(
    says="replies of several answers contain the right one more often than where GRPO pays for one answer, after equal updates",
    versus="grpo", task="ambiguous:difficulty=1,readings=4,answers=3,again=0.4",
    measure="coverage", direction="higher",
    margin=0.048, settings={"lr": 3e-4}, versus_settings={"lr": 3e-4}, by=answer_sets(rollout=independent(n=1)), steps=40,
    guard=Within("brier", high=0.03),
    fault=Within("unique", high=0.85, says="different answers among those listed"),
    moved=Within("distinct", low=0.2, says="different answers in a reply, more than with GRPO"), learns=None,
    tried="again=0.7, 40 steps at 3e-4, three seeds: 1.0 more different answers, the right one among them .10 less often; "
    "chains of two at 1e-4, 60 steps: -.042, sd .063",
    finding="confidence becomes honest (Brier .18, not .45) and answers more different, but sets with the right one fall "
    "on both sides, from .50 to .31 and .37",
)  # fmt: skip
