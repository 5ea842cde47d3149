"""BLEUBERI: GRPO with BLEU against reference replies as the reward, on the prompts where the base model's BLEU is lowest.

    r = BLEU(reply, references) = min(1, e^(1 - shortest / |reply|)) (prod over n = 1..4 of (hits_n + 1) / (total_n + 1))^(1/4)

Several references are used at once: an n-gram counts as often as it occurs in the one that has it most often. The more good
references there are, the better BLEU agrees with what people prefer, up to what a reward model learns from preferences.

Chang et al. 2025, arXiv:2505.11080. BLEU is that of the package evaluate with smooth=True, as in the released code
(lilakk/BLEUBERI, 70a66e4): one is added at every n, and the reference length is that of the shortest. `hard` selects as it does
5,000 of 50,000 prompts: by one reply of the base model to each, at temperature 0.7 and top-p 0.9. Left out: ROUGE and BERTScore.

Data: prompts, and answers that are good replies: a text, or a list of several (by different models, say).
"""

from rewardlab.core import Recipe
from rewardlab.evals.own_reward import own_reward
from rewardlab.evals.pairs import pair_agreement
from rewardlab.evals.seeded_subset import own_share
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.proof.claim import Claim, Within
from rewardlab.rewards.task import correct
from rewardlab.rollouts.hardest import hardest
from rewardlab.rollouts.independent import independent
from rewardlab.verifiers.text import bleu


def bleuberi(base: Recipe | None = None, *, references: int | None = None, hard: int = 0, weight: float = 1.0) -> Recipe:
    """references: how many of the answers are compared with; None: all.  hard: train on so many prompts, those of ten times as many
    where BLEU is lowest before training; 0: on all.  weight: of BLEU. A base's reward beside the task's verifier is kept."""
    base = base or grpo()
    score = bleu(variant="nmt", references=references)
    # BLEU stands in the place of a verifier, which few prompts of this kind have
    reward = weight * score if base.reward in (None, correct()) else base.reward + weight * score
    rollout = base.required("rollout")
    if hard:
        rollout = hardest(of=rollout, by=score, keep=hard, pool=10 * hard)
    return base.but(reward=reward, rollout=rollout, measure=own_reward(reward=score, rollout=independent(n=1)))


MANY, ONE = (bleu(variant="nmt", references=n).named(name) for n, name in ((8, "eight"), (1, "one")))
claim = Claim(
    says="BLEU against eight references prefers the better of two replies more often than BLEU against one",
    versus=None, task="notes:references=8,test_size=4000", measure="pair_accuracy.eight", direction="higher", margin=0.03,
    against="pair_accuracy.one", model="untrained", by=own_share(of=pair_agreement(reward=MANY + ONE)), problems=4000, steps=1,
    fault=Within("pair_accuracy.one", 0.55, 0.85, says="agreement of BLEU against one reference"), learns=None, start=None,
)  # fmt: skip
baseline = "grpo"
