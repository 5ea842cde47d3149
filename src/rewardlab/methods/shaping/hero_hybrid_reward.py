"""HERO: reward-model scores, stratified by the verifier: right replies stay above wrong ones.

    wrong:  r = -alpha + 2 alpha u;    right:  r = (1 - beta) + 2 beta u;    u = (s - min s) / (max s - min s + eps)
    w = w_min + (w_max - w_min) sigmoid(k (sigma - sigma_mean)),    sigma: std of the scores s of a prompt's replies

min and max are over the replies of the group with the same verdict, so that a group that is all wrong, or all right, still teaches.
w weighs each prompt: where the scores differ more than usual there is more to learn.

Tao et al. 2025, arXiv:2510.07242. alpha = beta = 0.05 are the paper's for verifiable problems (0.1 for others), as are w_min = 0.4,
w_max = 3 and k = 6 (appendix A.1, of the training runs; section 3.2 has 0.5, 2 and 5), n = 8 and no KL; the authors released no
code. sigma_mean is a running mean, with decay 0.9 (inferred). The paper multiplies the reward by w, and GRPO's division by the
group's standard deviation cancels that factor again; here w multiplies the advantages. That division also cancels alpha and beta in
groups with one verdict.
"""

from torch import Tensor

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Batch, Recipe, Run, credit
from rewardlab.credit.group import group_sums
from rewardlab.data.columns import Column, Data
from rewardlab.errors import unknown
from rewardlab.evals.passk import accuracy
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.methods.baselines.rlhf import rlhf
from rewardlab.rewards.operator import operator
from rewardlab.rewards.task import correct

MEMORY = "hero.spread"


@operator(over="group")
def stratified(
    scores: list[float], verdicts: list[float], *, alpha: float = 0.05, beta: float = 0.05, eps: float = 1e-6
) -> list[float]:  # fmt: skip
    """The scores, scaled to [-alpha, alpha] among the wrong replies of a group and to [1 - beta, 1 + beta] among the right ones."""
    right = [verdict >= 1.0 for verdict in verdicts]
    rewards = []
    for score, ok in zip(scores, right, strict=True):
        alike = [s for s, other in zip(scores, right, strict=True) if other == ok]
        # eps: a reply that is alone with its verdict, and equal scores, get the lower end
        u = (score - min(alike)) / (max(alike) - min(alike) + eps)
        rewards.append(1 - beta + 2 * beta * u if ok else -alpha + 2 * alpha * u)
    return rewards


@credit
def weigh_by_spread(
    a: Tensor, batch: Batch, run: Run, *, term: str = "dense", min_weight: float = 0.4, max_weight: float = 3.0, steep: float = 6.0,
    decay: float = 0.9,
) -> Tensor:  # fmt: skip
    """Multiply the credit of each group by w, which is between `min_weight` and `max_weight` and rises with the spread of the
    rewards `term`.

    decay: of the moving average of the spreads that each spread is compared with.
    """
    if term not in batch.terms:
        raise unknown("reward term", term, batch.terms)
    events = batch.terms[term]
    known, score = events.rewarded.any(1, keepdim=True).to(a.dtype), events.reward.sum(1, keepdim=True)  # (B, 1)
    scored = group_sums(known, batch)  # (G,)
    count = scored.clamp(min=1)
    mean = group_sums(score * known, batch) / count
    spread = (group_sums(((score - mean[batch.group, None]) * known).square(), batch) / count).sqrt()
    # by step, so that computing the credit of a step again compares with the same average
    step, before, after = run.memory.get(MEMORY, (-1, None, None))
    # a group without any score has no spread, and not one of 0
    before, now = (before if step == run.step else after), float(spread[scored > 0].mean()) if bool((scored > 0).any()) else 0.0
    usual = now if before is None else decay * before + (1 - decay) * now
    run.memory[MEMORY] = [run.step, before, usual]
    weight = min_weight + (max_weight - min_weight) * (steep * (spread - usual)).sigmoid()
    return a * weight[batch.group, None]


def hero_hybrid_reward(
    base: Recipe | None = None, *, alpha: float = 0.05, beta: float = 0.05, min_weight: float = 0.4, max_weight: float = 3.0,
    steep: float = 6.0, decay: float = 0.9, reward_model: str = "value-head", pairs: int | None = None, passes: int = 1, n: int = 8,
) -> Recipe:  # fmt: skip
    """alpha, beta: half the range of rewards of wrong and of right replies.  min_weight, max_weight, steep: w_min, w_max and k.

    The base's reward gives the scores. reward_model, pairs, passes: see rlhf.
    """
    base = base or rlhf(grpo(n=n), reward_model=reward_model, pairs=pairs, passes=passes).but(measure=accuracy())
    # under a name of its own, since the base may be paid by the verifier too
    scores = base.required("reward").named("dense")
    return base.but(
        reward=stratified(scores, correct(), alpha=alpha, beta=beta),
        credit=base.required("credit") >> weigh_by_spread(min_weight=min_weight, max_weight=max_weight, steep=steep, decay=decay),
    )


fidelity = "core"
left_out = "the short SFT before it; and the weight multiplies advantages, where the paper multiplies rewards, which GRPO undoes."

data = Data(
    answer="the gold answer",
    chosen=Column("a reply that was preferred, for teaching the reward model; not read with --reward-model PATH", optional=True),
    rejected=Column("the reply that it was preferred to", optional=True),
    rows=[
        {
            "prompt": "A car drives 150 km in 2.5 hours. How fast is it, in km/h?",
            "answer": "60",
            "chosen": "Speed is distance by time: 150 / 2.5 = 60.\nAnswer: 60",
            "rejected": "150 * 2.5 = 375.\nAnswer: 375",
        },
        {
            "prompt": "What is the sum of the angles of a hexagon, in degrees? Put your answer in \\boxed{}.",
            "answer": "720",
            "chosen": "It is made of 4 triangles: 4 * 180 = \\boxed{720}.",
            "rejected": "Each angle is 60, so \\boxed{360}.",
        },
    ],
)

claim = Claim(
    says="where many groups are all wrong, more is learnt in as many updates than from the verifier alone",
    versus="grpo", task="preferences:writer=policy,difficulty=[4,6],error=0.1,biased=0.75", measure="auc.truth",
    direction="higher", margin=0.17, settings={"reward_model": "value-head:surprise", "pairs": 2000, "n": 4},
    versus_settings={"n": 4}, steps=40,
    fault=Within("train.signal", high=0.8, says="share of groups that teach anything"),
    moved=Within("train.signal", low=0.15, says="share of groups that teach anything"),
    judge=Within("train.pair_accuracy", low=0.65, says="better solutions above worse ones"), start=None,
    tried="writer=several, three seeds: -.067, sd .044; difficulty=[4,8],error=0.4 was not run: nobody learns such chains; "
    "[3,5], three seeds: -.023, sd .038, and groups with a signal grew by .127 where .15 were asked; "
    "as written here: -.134, sd .174, one seed of three collapses",
    finding="Right replies rise from 36% to 50%, with the verifier alone to 63%, though groups with a signal rise from 61% to "
    "80%: where a reward model ranks 72% of pairs rightly, what it says of wrong replies teaches worse than silence.",
)  # fmt: skip
