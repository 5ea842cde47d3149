"""FLR: score a reply by the likelihood of satisfied minus dissatisfied user follow-ups; DPO on pairs ranked by it.

    r(x, y) = mean over satisfied f of log p(f | x, y)  -  mean over dissatisfied f of log p(f | x, y)
    chosen, rejected: of n own replies to a prompt the ones with the highest and the lowest r;    loss: DPO's

Nobody labels replies, but people react to them, and a model that has read conversations has read how. What it would say itself is
another matter: a mistake that it often makes is likely as a reply, and is followed by a complaint all the same.

Zhang et al. 2024, arXiv:2409.13948 (abstract, and the README of the authors' repository FLR, AAAI 2025; its code and texts were
not found): groups of positive and negative follow-ups; a model tuned on feedback takes the user's part: roles are swapped and
the conversation begins with "Please ask me a question and provide feedback to my answer." (`speaker="assistant"`). (inferred):
log p is per token, so that long follow-ups weigh like short ones; both sets are averaged; the texts; n = 8; the best and the
worst make the pair.

What judges is a model that knows how people react: the one that is trained, as it started, or --reward-model PATH.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Group, Learner, Message, Recipe, Run, Score, Scores, Trajectory
from rewardlab.data.columns import Column, Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.groups import told_apart
from rewardlab.methods.baselines.dpo import dpo
from rewardlab.rewards.intrinsic import likelihood
from rewardlab.rewards.reward import reward
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent
from rewardlab.rollouts.ranked import ranked
from rewardlab.text.followups import FRONT, NEGATIVE, POSITIVE
from rewardlab.text.pieces import tokens_with
from rewardlab.worlds.reactions import DISPLEASED, PLEASED

# ---- What a model expects the user to say next, as a reward of the reply ---------------------------------------------

SWAPPED = {"user": "assistant", "assistant": "user"}


@reward(over="groups")
def followup_likelihood(
    groups: list[Group], run: Run, *, positive: tuple[str, ...] = POSITIVE, negative: tuple[str, ...] = NEGATIVE,
    speaker: Literal["user", "assistant"] = "user", model: str = "reference",
) -> Scores:  # fmt: skip
    """How much likelier satisfied follow-ups to a reply are than dissatisfied ones: mean over `positive` of log p(f | x, y), minus
    the mean over `negative`; log p in nats per token of f.

    speaker: who says them: the user, as the next message; or the assistant, in a conversation whose roles are swapped and which
    begins with FRONT, as models are taught that were fine-tuned on feedback.  model: whose likelihood, of the run. No verdict on an
    empty reply, on episodes of several replies, and where the context is too short.  Zhang et al. 2024, arXiv:2409.13948
    """
    if not positive or not negative:
        raise RewardlabError("followup_likelihood compares positive with negative follow-ups: give at least one of each")
    rows, scorer = [t for group in groups for t in group], run.model(model)
    if scorer is not run.policy and scorer.tokenizer.get_vocab() != run.policy.tokenizer.get_vocab():
        raise RewardlabError(f"the model {model!r} cannot score the policy's replies: their tokenizers differ")
    judged = [i for i, t in enumerate(rows) if t.reply.strip() and len(t.replies) == 1]
    texts = (*positive, *negative)
    said = _said([rows[i] for i in judged for _ in texts], list(texts) * len(judged), scorer, speaker)
    fits = [len(t) <= scorer.context for t, _ in said]
    logprobs = iter(scorer.score([t for (t, _), ok in zip(said, fits, strict=True) if ok]) if any(fits) else [])
    means = [
        float(next(logprobs)[tokens].mean(dtype=np.float64)) if ok else None for (_, tokens), ok in zip(said, fits, strict=True)
    ]
    table = dict(zip(judged, [means[k : k + len(texts)] for k in range(0, len(means), len(texts))], strict=True))
    scores = iter([_score(table.get(i), len(positive)) for i in range(len(rows))])
    return [[next(scores) for _ in group] for group in groups]


def _score(means: Sequence[float | None] | None, positive: int) -> Score:
    if means is None:
        return Score(None, why="not one reply that says something")
    known = [x for x in means if x is not None]
    if len(known) < len(means):
        return Score(None, why="a follow-up does not fit the model's context")
    pleased, displeased = float(np.mean(known[:positive])), float(np.mean(known[positive:]))
    return Score(pleased - displeased, why=f"{pleased:.2f} nats a token for satisfied follow-ups, {displeased:.2f} for others")


def _said(rows: list[Trajectory], texts: list[str], scorer: Any, speaker: str) -> list[tuple[Trajectory, list[int]]]:
    """Each conversation with the follow-up, and the positions of its tokens."""
    if not rows:
        return []
    if speaker == "user":
        found = scorer.read(rows, [(Message("user", text),) for text in texts])
    else:
        prompts = [
            (Message("user", FRONT), *(_swapped(m) for m in t.problem.prompt if m.role in SWAPPED), Message("user", t.reply))
            for t in rows
        ]  # fmt: skip
        found = scorer.write(scorer.read([Trajectory(t.problem) for t in rows], prompts), texts)
    return [(t, _tokens(t, text, scorer)) for t, text in zip(found, texts, strict=True)]


def _swapped(message: Message) -> Message:
    return Message(SWAPPED[message.role], message.text, message.images)


def _tokens(t: Trajectory, text: str, scorer: Any) -> list[int]:
    """The tokens of the last turn in which the text stands, without what a chat template puts around it; else all."""
    last = t.turns[-1]
    first = len(t) - len(last.ids)
    return [first + i for i in tokens_with(text, scorer.pieces(last.ids)) or range(len(last.ids))]


# ---- the recipe ---------------------------------------------------------------------------------------------------------

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


fidelity = "reading"
left_out = (
    "tuning the model on feedback first, which is `rewardlab train sft` on such conversations (--reward-model names "
    "it); the paper's follow-ups were not found"
)
data = Data(
    answer=Column("the gold answer, for the held-out accuracy alone", optional=True),
    rows=[
        {"prompt": "Can you suggest a name for a grey cat?"},
        {"prompt": "How long should I boil rice?"},
        {
            "prompt": [{"role": "system", "content": "You are brief."}, {"role": "user", "content": "What is 9 + 6?"}],
        },
    ],
)

EXPECTED = followup_likelihood(positive=PLEASED, negative=DISPLEASED, speaker="assistant").named("followups")
check = Check(
    says="what the user is expected to say next tells the right one of two replies better than their own likelihood",
    versus=None, task="reactions", measure="agreement.followups", direction="higher", margin=0.05, against="agreement.likelihood",
    settings={"positive": PLEASED, "negative": DISPLEASED, "speaker": "assistant"},
    by=told_apart(reward=EXPECTED + likelihood(), truth=correct(), rollout=independent(n=8)), problems=300, steps=1,
    fault=Within("agreement.likelihood", high=0.6, says="how often the right one of two replies is the likelier one"), learns=None,
    finding="expected follow-ups find the right one of two replies in 58%, likelihood in 49%, which is chance. The model has read "
    "just these follow-ups; the words of real users are not tested",
)  # fmt: skip
baseline = "dpo"
