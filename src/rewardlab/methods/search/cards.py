"""CARDS: a reply is sampled in segments that end where the next token is uncertain, and each is accepted or rejected by a reward.

    segment: until the entropy of the next token exceeds tau;    accepted with probability min(1, exp((r(x, y_<=k) - r*(k)) / beta))
    r*(k) rises with the tokens written, from (1 - alpha) r(x) + alpha r* to r*;    a rejected segment alone is sampled again

Rejecting whole replies wastes all of their tokens for one bad one, and a reward for every token is asked too often. At uncertain
tokens a thought is complete, so that the reward of a beginning foretells the reward of the whole. Approximately, replies come from
policy(y | x) exp(r / beta).

Li et al. 2024, arXiv:2406.16306, and the released code (lblaoke/CARDS, 012cd83, reward_sampling.py, seg_rs_generate): segments of 4
to 64 tokens, tau = 3, alpha = 0.5, top-k 40, after 20 rejections the best candidate. There 0.7 is both beta and the sampling
temperature, every reply is as long as allowed, and r* is set for each reward model. Here a reply also ends at its end token.

Data: prompts, and a reward that reads unfinished replies, such as a reward model (`score=model_score(...)`).
"""

from rewardlab.core import Recipe, Update
from rewardlab.evals.passk import accuracy
from rewardlab.proof.claim import Claim, Within
from rewardlab.rewards.correct_so_far import correct_so_far
from rewardlab.rewards.intrinsic import likelihood
from rewardlab.rewards.reward import Reward
from rewardlab.rollouts.cascade import cascade
from rewardlab.select.best import best


def cards(
    base: Recipe | None = None, *, score: Reward | None = None, n: int = 1, target: float = 0.0, beta: float = 0.7,
    alpha: float = 0.5, max_entropy: float = 3.0, least: int = 4, most: int = 64, attempts: int = 20, temperature: float = 0.7,
    top_k: int = 40,
) -> Recipe:  # fmt: skip
    """score: what judges unfinished replies; None: the recipe's reward, the policy's own mean log-probability unless another is
    given.  n: replies to each problem, the best of which is the answer.  target: r*, in units of the score.  max_entropy: tau, in
    nats.  least, most: tokens of a segment.  attempts: rejections after which the best candidate is taken.
    """
    base = base or Recipe(name="cards", reward=likelihood(), measure=accuracy(), update=Update())
    score = score or base.required("reward")
    sampled = cascade(
        score=score, n=n, target=target, beta=beta, alpha=alpha, max_entropy=max_entropy, least=least, most=most, attempts=attempts,
        temperature=temperature, top_k=top_k,
    )  # fmt: skip
    return base.but(rollout=sampled, reward=score, select=best())


STRICT = {"score": correct_so_far(), "target": 1.0, "beta": 0.2, "temperature": 1.0, "top_k": 0}
"""An exact judge of beginnings: a reply with a wrong line is accepted with probability exp(-5)."""

claim = Claim(
    says="rejecting segments costs fewer tokens an answer than rejecting whole replies by the same reward, and is as often right",
    versus="cards", task="arithmetic:biased=0.75,error=0.1", measure="tokens_per_answer", direction="lower", margin=54,
    settings=STRICT | {"max_entropy": 0.1}, versus_settings=STRICT | {"max_entropy": 1e9, "most": 100_000}, problems=300,
    guard=Within("accuracy", low=-0.03), fault=Within("tokens_per_answer", low=100.0, says="tokens for an answer"), learns=None,
    start=None,
)  # fmt: skip
baseline = "best_of_n"
