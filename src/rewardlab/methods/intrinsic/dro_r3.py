"""DRO: reasoning is paid by the log-probs of the reference after it, of which those tokens count that reasoning makes differ.

    R3_i = sum_j w_j log pi(y*_j | x, c_i, y*_<j),    w_j = std over the group's chains c_i of that log-prob, in sum 1
    trained on are groups with std(R3) >= share * (moving average of std(R3))

Most tokens of a long reference are as likely after any chain: in a plain mean they dilute the few that show what was reasoned.

Xu et al. 2025, arXiv:2506.13351 (abstract and notes on its first version; no code was found). (inferred): w_j is the deviation
itself, in sum 1; the filter's running threshold, which is RLPR's; n = 8. Left out: what keeps tokens from becoming certain because
of the reference's tokens before them; dropping prompts that are too hard, whose references stay unlikely; the rubric gates of its
third version. The reward takes the place of a base's.

Data: prompts with reference outcomes, of any length. Replies of one turn; the verifier is read for reports alone.
"""

from rewardlab.core import Recipe
from rewardlab.evals.own_reward import own_reward
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.proof.claim import Claim
from rewardlab.rewards.reference import reasoning_reflection
from rewardlab.rollouts.filtered import spread_above
from rewardlab.rollouts.independent import independent


def dro_r3(
    base: Recipe | None = None, *, weighted: bool = True, mark: str = "Answer:", share: float = 0.5, decay: float = 0.99,
    start: int = 10, attempts: int = 1, n: int = 8,
) -> Recipe:  # fmt: skip
    """weighted: false gives all tokens of the reference the same weight.  mark: stands before an answer.  share, decay, start,
    attempts: of the filter (`spread_above`).  n: of grpo.
    """
    base = base or grpo(n=n)
    paid = reasoning_reflection(weighted=weighted, mark=mark)
    sampled = base.required("rollout")
    filtered = spread_above(of=sampled, by=paid, share=share, decay=decay, start=start, attempts=attempts)
    return base.but(rollout=filtered, reward=paid, measure=own_reward(reward=paid, rollout=independent(n=1)))


claim = Claim(
    says="paid by its own log-probs of the reference, weighted by what reasoning changes, a policy comes to be right more often",
    versus=None, task="arithmetic:biased=0.75,error=0.1", measure="pass@1", direction="higher", margin=0.1, against="before.pass@1",
    steps=40, learns=None,
    tried="frozen, answers or whole solutions as references: weighted and plain means rank right replies alike (.97, .64 to .65)",
)  # fmt: skip
baseline = "grpo"
