"""CARDS: rejection sampling of segments that end at uncertain tokens, each accepted or rejected by a reward.

    segment: until the entropy of the next token exceeds tau;    accepted with probability min(1, exp((r(x, y_<=k) - r*(k)) / beta))
    r*(k) rises with the tokens written, from (1 - alpha) r(x) + alpha r* to r*;    a rejected segment alone is sampled again

Rejecting whole replies wastes all of their tokens for one bad one, and a reward for every token is asked too often. At uncertain
tokens a thought is complete, so that the reward of a beginning foretells the reward of the whole. Approximately, replies come from
policy(y | x) exp(r / beta).

Li et al. 2024, arXiv:2406.16306, and the released code (lblaoke/CARDS, 012cd83, reward_sampling.py, seg_rs_generate): segments of 4
to 64 tokens, tau = 3, alpha = 0.5, top-k 40, after 20 rejections the best of the 21 candidates, even if the last would be
accepted (here the last, if it is). There 0.7 is both beta and the sampling temperature (0.8 in its configurations of OPT), every
reply is as long as allowed, and r* is set for each reward model (8.5 for a Llama of 7B). Here a reply also ends at its end token.

The reward must read unfinished replies, as a reward model does (`score=model_score(...)`), and `target` must be in its units.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Group, Problem, Recipe, Run, Sampling, Trajectory, Update, rollout
from rewardlab.core.score import check_finite
from rewardlab.data.columns import Data
from rewardlab.evals.passk import accuracy
from rewardlab.rewards.correct_so_far import correct_so_far
from rewardlab.rewards.intrinsic import likelihood
from rewardlab.rewards.reward import Reward
from rewardlab.rollouts.best import best
from rewardlab.settings.domain import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, Share

# ----------------------------------------------------------------------------------------------------------------------
#
# Replies written a segment at a time, each of which is sampled again until a reward likes what has been written so far.


@dataclass
class Draft:
    """A reply as far as it is accepted.

    number: of the reply among those to its problem.  first: the bar at its beginning.  rejected: candidates for its next segment.
    best: the one of them that is liked most, with its score.
    """

    row: Trajectory
    number: int
    first: float
    rejected: int = 0
    best: tuple[float, Trajectory] | None = None

    @property
    def written(self) -> int:
        return int(self.row.mask.sum())


def bar(first: float, last: float, tokens: int, length: int) -> float:
    """What a reply of so many tokens must score: it rises from `first` to `last`, which it reaches at `length`."""
    return min(first + tokens * (last - first) / length, last)


def chance(score: float, needed: float, beta: float) -> float:
    """Of being accepted: min(1, exp((score - needed) / beta))."""
    return math.exp(min(0.0, (score - needed) / beta))


@rollout
def cascade(
    problems: list[Problem], run: Run, *, score: Reward, n: PositiveInt = 1, target: float = 0.0, beta: PositiveFloat = 0.7,
    alpha: Share = 0.5, max_entropy: NonNegativeFloat = 3.0, min_tokens: PositiveInt = 4, max_tokens: PositiveInt = 64,
    attempts: NonNegativeInt = 20, temperature: NonNegativeFloat = 0.7, top_k: NonNegativeInt = 40,
) -> list[Group]:  # fmt: skip
    """n replies to each problem, by rejection sampling of segments: approximately from policy * exp(score / beta).

    A segment ends where the next token's entropy exceeds `max_entropy` nats, after `min_tokens` tokens of it at the earliest and
    `max_tokens` at the latest. It is kept with the probability min(1, exp((r - bar) / beta)), r being what `score` pays for the
    reply so far; the bar rises with the tokens written from (1 - alpha) r(prompt) + alpha `target` to `target` at the run's
    max_new. Otherwise the segment alone is sampled again; after `attempts` rejections the best candidate is kept. A candidate
    without a score is rejected, and never the best of several. Each segment is a turn, and `path` holds the number of its
    candidate.

    Li et al. 2024, arXiv:2406.16306
    """
    rows = [(t, i) for t in run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems]) for i in range(n)]
    # what is known before anything is written; without it the bar does not rise
    known = _paid([t for t, _ in rows[::n]], score, run)
    first = [target if math.isinf(r) else (1 - alpha) * r + alpha * target for r in known]
    drafts = [Draft(t, i, first[k // n]) for k, (t, i) in enumerate(rows)]
    segment = Sampling(max_tokens, temperature, top_k=top_k, max_entropy=max_entropy, min_new=min_tokens)
    while going := [d for d in drafts if d.row.stop is None]:
        candidates = _extended(going, segment, run)
        scores, luck = _paid(candidates, score, run), torch.rand(len(going), generator=run.rng("accept")).tolist()
        for draft, row, r, u in zip(going, candidates, scores, luck, strict=True):
            # numbered so that no two replies to a problem seem to share a segment
            row = replace(row, path=(*draft.row.path, draft.rejected * n + draft.number))
            needed = bar(draft.first, target, int(row.mask.sum()), run.max_new)
            _decide(draft, row, r, u < chance(r, needed, beta), attempts, run)
    return [[d.row for d in drafts[i : i + n]] for i in range(0, len(drafts), n)]


def _extended(drafts: Sequence[Draft], segment: Sampling, run: Run) -> list[Trajectory]:
    """A candidate for the next segment of each; near the end of its room a reply may have fewer tokens than others."""
    by_room: dict[int, list[int]] = defaultdict(list)
    for i, draft in enumerate(drafts):
        by_room[min(segment.max_new, run.max_new - draft.written)].append(i)
    found: dict[int, Trajectory] = {}
    for room, places in by_room.items():
        rows = run.policy.extend([drafts[i].row for i in places], replace(segment, max_new=room), run.rng("rollout"))
        found |= dict(zip(places, rows, strict=True))
    return [found[i] for i in range(len(drafts))]


def _paid(rows: Sequence[Trajectory], score: Reward, run: Run) -> list[float]:
    """What each row is worth so far; -inf without a verdict. Raises NotFinite for a score that is NaN or infinite."""
    # each is a group of its own: candidates of different replies are not compared
    groups = [[t] for t in rows]
    scores = score(groups, run)
    check_finite(groups, scores, f"the score {score}")
    return [-math.inf if row[0].total is None else row[0].total for row in scores]


def _decide(draft: Draft, row: Trajectory, score: float, accepted: bool, attempts: int, run: Run) -> None:
    """Go on from a candidate that is accepted, or, after enough of them, from the best."""
    if draft.best is None or score > draft.best[0]:
        draft.best = (score, row)
    if not accepted and draft.rejected < attempts:
        draft.rejected += 1
        return
    row = row if accepted else draft.best[1]
    draft.row, draft.rejected, draft.best = row, 0, None
    if row.stop in ("entropy", "length"):
        draft.row = replace(row, stop=None if draft.written < run.max_new else "length")


# ---- the recipe ---------------------------------------------------------------------------------------------------------


def cards(
    base: Recipe | None = None, *, score: Reward | None = None, n: int = 1, target: float = 0.0, beta: float = 0.7,
    alpha: float = 0.5, max_entropy: float = 3.0, min_tokens: int = 4, max_tokens: int = 64, attempts: int = 20,
    temperature: float = 0.7, top_k: int = 40,
) -> Recipe:  # fmt: skip
    """score: what judges unfinished replies; None: the recipe's reward, the policy's own mean log-probability unless another is
    given.  n: replies to each problem, the best of which is the answer.  target: r*, in units of the score.  max_entropy: tau, in
    nats.  min_tokens, max_tokens: tokens of a segment.  attempts: rejections after which the best candidate is taken.
    """
    base = base or Recipe(name="cards", reward=likelihood(), measure=accuracy(), update=Update())
    score = score or base.required("reward")
    sampled = cascade(
        score=score, n=n, target=target, beta=beta, alpha=alpha, max_entropy=max_entropy, min_tokens=min_tokens,
        max_tokens=max_tokens, attempts=attempts, temperature=temperature, top_k=top_k,
    )  # fmt: skip
    return base.but(rollout=sampled, reward=score, select=best())


STRICT = {"score": correct_so_far(), "target": 1.0, "beta": 0.2, "temperature": 1.0, "top_k": 0}
"""An exact judge of beginnings: a reply with a wrong line is accepted with probability exp(-5)."""

fidelity = "whole"
data = Data(answer="the gold answer")

claim = Claim(
    says="rejecting segments costs fewer tokens an answer than rejecting whole replies by the same reward, and is as often right",
    versus="cards", task="arithmetic:biased=0.75,error=0.1", measure="tokens_per_answer", direction="lower", margin=54,
    settings=STRICT | {"max_entropy": 0.1}, versus_settings=STRICT | {"max_entropy": 1e9, "max_tokens": 100_000}, problems=300,
    guard=Within("accuracy", low=-0.03), fault=Within("tokens_per_answer", low=100.0, says="tokens for an answer"), learns=None,
    start=None,
    finding="rejecting segments costs 75 tokens an answer, with 92% right; rejecting whole replies 170 tokens, with 86% right. The "
    "reward judges beginnings exactly here, which a learnt one does not",
)  # fmt: skip
baseline = "best_of_n"
