"""RIP: prompts survive whose rejected reply is good and long, and whose chosen reply is little better.

    y_w, y_l = the best and the worst of N replies of the seed model under a reward r
    S = {x :  r(y_l) >= t1,  len(y_l) >= t2,  r(y_w) - r(y_l) <= t3};    DPO on S

A prompt that is garbled, contradictory or cut off makes a model guess: its worst reply is bad and short, and its replies differ by
luck. What is rejected tells more of a prompt than what is chosen. Prompts are dropped, never pairs improved.

Yu et al. 2025, arXiv:2501.18578, sections 3.1 and 3.3 and table 10. N = 64, temperature 0.8, top-p 0.95 (here n = 8, also in
their table 18). Their thresholds are numbers (1,878 characters, 0.126 and 0.042 of ArmoRM, which leave 4,538 of 20,000 prompts).
(inferred): bounds in percent, which fit any reward, and the median as default; lengths are in tokens. Pairs are sampled by the
frozen seed model when their prompt comes up, not beforehand, and those of the first `pool` prompts settle the percentages. Left
out: Self-RIP, which writes new prompts from survivors (a policy here cannot write prompts), and stopping early by a validation set.

Data: prompts, and what scores replies: the columns `chosen` and `rejected` for a reward model that is taught first, --reward-model
PATH, or a reward (score=...). `sampled=False` takes the pairs of the data, with the columns chosen, rejected, chosen_score and
rejected_score. On files: rewardlab data pass-rate --keep-replies, data pairs, data filter --between rejected_score=50%: ...
"""

from rewardlab.core import Recipe
from rewardlab.evals.rewards import mean_reward
from rewardlab.methods.baselines.dpo import dpo
from rewardlab.methods.baselines.rlhf import rlhf
from rewardlab.proof.claim import Claim, Within
from rewardlab.rewards.recorded import score_in_data
from rewardlab.rewards.reward import Reward
from rewardlab.rollouts.ranked import ranked
from rewardlab.rollouts.survivors import filter_pairs
from rewardlab.tasks.notes.rewards import note_quality


def rip(
    base: Recipe | None = None, *, score: Reward | None = None, reward_model: str = "value-head", pairs: int = 2000, n: int = 8,
    rejected_score: str | None = "50%:", rejected_length: str | None = "50%:", gap: str | None = ":50%", pool: int = 256,
    temperature: float = 0.8, top_p: float = 0.95, sampled: bool = True,
) -> Recipe:  # fmt: skip
    """score: what ranks replies; without it a reward model, taught on `pairs` of the data or brought along (`rlhf`).  n: replies
    to each prompt.  sampled: false takes the data's own pairs.  rejected_score, rejected_length, gap: bounds, LOW:HIGH, in percent
    for quantiles; None: no bound.  pool: pairs that settle them.
    """
    base = base or dpo()
    by, rollout = score or score_in_data(), base.required("rollout")
    if sampled:
        base = base if base.reward is not None else rlhf(base, score=score, reward_model=reward_model, pairs=pairs)
        by = base.required("reward")
        rollout = ranked(by=by, n=n, temperature=temperature, top_p=top_p)
    bounds = {"rejected_score": rejected_score, "rejected_length": rejected_length, "gap": gap}
    return base.but(rollout=filter_pairs(of=rollout, by=by, **bounds, pool=pool))


KNOWN = {"score": note_quality(), "problems": 8, "pool": 128, "lr": 1e-4}
ALL = {"rejected_score": None, "rejected_length": None, "gap": None}
claim = Claim(
    says="DPO on the prompts that survive gives better replies to clear prompts than DPO on as many pairs of all prompts",
    versus="rip", task="notes:poor=0.6", measure="reward", direction="higher", margin=0.02, settings=KNOWN,
    versus_settings={**KNOWN, **ALL}, by=mean_reward(), steps=40,
    fault=Within("train.rejected_score", high=0.3, says="what rejected replies are worth where all prompts are learnt from"),
    learns="reward", start=None, version=2, replaces="at the rate of 3e-4 neither side learnt reliably: .44 to .79 unfiltered",
)  # fmt: skip
system = "rip-survival-prompts"
baseline = "dpo"
