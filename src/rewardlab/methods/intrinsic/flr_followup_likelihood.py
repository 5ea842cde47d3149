"""FLR: a reply is worth what a model expects the user to say next: satisfied follow-ups, not dissatisfied ones; DPO on pairs.

    r(x, y) = mean over satisfied f of log p(f | x, y)  -  mean over dissatisfied f of log p(f | x, y)
    chosen, rejected: of n own replies to a prompt the ones with the highest and the lowest r;    loss: DPO's

Nobody labels replies, but people react to them, and a model that has read conversations has read how. What it would say itself is
another matter: a mistake that it often makes is likely as a reply, and is followed by a complaint all the same.

Zhang et al. 2024, arXiv:2409.13948 (abstract, and the README of the authors' repository FLR, AAAI 2025; its code and texts were not
found): groups of positive and negative follow-ups; a model tuned on feedback takes the user's part: roles are swapped and the
conversation begins with "Please ask me a question and provide feedback to my answer." (`speaker="assistant"`). (inferred): log p is
per token, so that long follow-ups weigh like short ones; both sets are averaged; the texts; n = 8; the best and the worst make the
pair. Left out: tuning the model on feedback first, which is `rewardlab train sft` on such conversations; --reward-model names it.

Data: prompts, and a model that knows how people react: the one that is trained, as it started, or --reward-model PATH.
"""

from typing import Literal

from rewardlab.core import Learner, Recipe
from rewardlab.evals.groups import told_apart
from rewardlab.methods.baselines.dpo import dpo
from rewardlab.proof.claim import Claim, Within
from rewardlab.rewards.followups import followup_likelihood
from rewardlab.rewards.intrinsic import likelihood
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent
from rewardlab.rollouts.ranked import ranked
from rewardlab.tasks.reactions.problems import DISPLEASED, PLEASED
from rewardlab.text.followups import NEGATIVE, POSITIVE

LISTENER = "listener"


def flr_followup_likelihood(
    base: Recipe | None = None, *, positive: tuple[str, ...] = POSITIVE, negative: tuple[str, ...] = NEGATIVE,
    speaker: Literal["user", "assistant"] = "user", reward_model: str = "", n: int = 8, temperature: float = 1.0,
) -> Recipe:  # fmt: skip
    """positive, negative: follow-ups of satisfied and of dissatisfied users.  speaker: who says them, as in `followup_likelihood`.
    reward_model: the model that expects them; without it, the one that is trained, as it started.  n, temperature: of the samples.
    """
    base = base or dpo(problems=8)
    model = LISTENER if reward_model else "reference"
    liked = followup_likelihood(positive=tuple(positive), negative=tuple(negative), speaker=speaker, model=model)
    also = (*base.also, Learner(LISTENER, reward_model, Recipe(), every=0)) if reward_model else base.also
    return base.but(rollout=ranked(by=liked, n=n, temperature=temperature), also=also)


EXPECTED = followup_likelihood(positive=PLEASED, negative=DISPLEASED, speaker="assistant").named("followups")
claim = Claim(
    says="what the user is expected to say next tells the right one of two replies better than their own likelihood",
    versus=None, task="reactions", measure="agreement.followups", direction="higher", margin=0.05, against="agreement.likelihood",
    settings={"positive": PLEASED, "negative": DISPLEASED, "speaker": "assistant"},
    by=told_apart(reward=EXPECTED + likelihood(), truth=correct(), rollout=independent(n=8)), problems=300, steps=1,
    fault=Within("agreement.likelihood", high=0.6, says="how often the right one of two replies is the likelier one"), learns=None,
)  # fmt: skip
baseline = "dpo"
