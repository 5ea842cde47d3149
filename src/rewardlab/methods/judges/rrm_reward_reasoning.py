r"""Reward Reasoning Models: a judge thinks before it says which of two replies is better, by GRPO alone; tournaments judge many.

    y ~ pi(. | x, reply 1, reply 2),   r(y) = 1 if \boxed{Assistant i} is the better one, else -1;   GRPO, without traces to imitate
    k votes: the verdict of most of k judgements of a pair
    N replies, all pairs:  R_a += K (s - 1 / (1 + 10^((R_b - R_a) / 400))),  s = 1, 1/2, 0 for won, tied, lost;   Elo ratings
    N replies, knockout:   pairs at random, of which the winners go on, until one is left;   N - 1 comparisons

A judge that compares two replies leaves room to think, and knows nothing of scores. Which compute is spent at test time can be
chosen afterwards: longer judgements, more votes, or more comparisons. Elo ratings can pay a policy that is trained; for a best of N
the knockout costs little.

Guo et al. 2025, arXiv:2505.14674, by summaries that quote its reward, its prompt and its strategies; models were released, no code.
(inferred): every second vote reads the pair in reverse; a judgement without a verdict does not vote; a tie is decided by lot;
whoever has no opponent in a round goes on, and plays first in the next; K = 4 and a start at 1000, as in Chatbot Arena, where one
result moves little and their order hardly counts.

Votes are cast wherever it is measured; with `candidates`, it answers prompts by a tournament; `elo` is a reward by name.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import Literal

from rewardlab.checks.claim import Check
from rewardlab.core import Group, Learner, Recipe, Run, Score, Scores, Trajectory, select
from rewardlab.data.columns import Data
from rewardlab.methods.baselines.best_of_n import best_of_n
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.methods.baselines.trained_judge import trained_judge
from rewardlab.rewards.reward import reward
from rewardlab.rewards.tournament import shares_won
from rewardlab.rollouts.best import best
from rewardlab.rollouts.knockout import knockout
from rewardlab.settings.domain import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt
from rewardlab.worlds.duels import FORM

START, SCALE = 1000.0, 400.0


def winner(share: float) -> float:
    """1, 1/2 or 0: what most votes say of the first of a pair."""
    return 0.5 if share == 0.5 else float(share > 0.5)


def elo_ratings(count: int, results: Sequence[tuple[int, int, float]], k: float) -> list[float]:
    """The ratings of `count` players after these results, in their order: (a, b, 1 if a won, 0 if b did, 1/2 for a tie)."""
    ratings = [START] * count
    for a, b, score in results:
        gain = k * (score - 1 / (1 + 10 ** ((ratings[b] - ratings[a]) / SCALE)))
        ratings[a], ratings[b] = ratings[a] + gain, ratings[b] - gain
    return ratings


@reward(over="groups", relative=True)
def elo(
    groups: list[Group], run: Run, *, model: str = "policy", form: str = "rrm", votes: PositiveInt = 1, k: PositiveFloat = 4.0,
    temperature: NonNegativeFloat = 1.0, max_new: NonNegativeInt = 0,
) -> Scores:  # fmt: skip
    """The Elo rating of a reply after all pairs of its group have been compared; 1000 at the start, and for a reply alone.

    model: that judges, of the run or openai:URL#NAME.  votes: judgements of a pair.  k: what one result moves at most.  max_new:
    tokens of a judgement; 0: those of the run.
    """
    matches = [(g, a, b) for g, group in enumerate(groups) for a, b in combinations(range(len(group)), 2)]
    pairs = [(groups[g][a].problem, groups[g][a].reply, groups[g][b].reply) for g, a, b in matches]
    shares = shares_won(pairs, run, model=model, form=form, votes=votes, temperature=temperature, max_new=max_new)
    results: list[list[tuple[int, int, float]]] = [[] for _ in groups]
    for (g, a, b), share in zip(matches, shares, strict=True):
        results[g].append((a, b, winner(share)))
    return [[Score(x) for x in elo_ratings(len(group), own, k)] for group, own in zip(groups, results, strict=True)]


@select
def highest_elo(
    group: Group, scores: list[Score], run: Run, *, model: str = "policy", form: str = "rrm", votes: PositiveInt = 1,
    k: PositiveFloat = 4.0, temperature: NonNegativeFloat = 1.0, max_new: NonNegativeInt = 0,
) -> Trajectory:  # fmt: skip
    """The reply with the highest Elo rating after all pairs have been compared, the first of equals. It reads no scores.

    model, votes, k, max_new: as in `elo`.
    """
    rated = elo(model=model, form=form, votes=votes, k=k, temperature=temperature, max_new=max_new)
    return best()(group, rated([group], run)[0], run)


def rrm_reward_reasoning(
    base: Recipe | None = None, *, form: str = "rrm", n: int = 8, problems: int = 16, votes: int = 5, lr: float | None = None,
    candidates: NonNegativeInt = 0, strategy: Literal["knockout", "elo"] = "knockout", judge: str = "",
) -> Recipe:  # fmt: skip
    """form: what the judge is asked (`judges/named.py`).  n: judgements of a row.  problems: rows of a step.  votes: judgements of
    a pair, held out (in each order) and in tournaments.  candidates: 0 trains a judge; more: so many replies to a prompt, of which
    a tournament of this `strategy` chooses one (`rewardlab answer`).  judge: who judges there, a model that is loaded beside the
    policy; empty: the policy itself."""
    base = base or (best_of_n(n=candidates) if candidates else grpo(n=n))
    if candidates:
        return _by_tournament(base, form, votes, candidates, strategy, judge)
    return trained_judge(base, form=form, n=n, problems=problems, votes=votes, lr=lr)


def _by_tournament(base: Recipe, form: str, votes: int, candidates: int, strategy: str, judge: str) -> Recipe:
    model = "judge" if judge else "policy"
    others = (Learner("judge", judge, Recipe(), every=0),) if judge else ()
    chosen = (knockout if strategy == "knockout" else highest_elo)(model=model, form=form, votes=votes)
    answering = best_of_n(base, n=candidates)
    # a tournament reads no scores
    return answering.but(reward=None, select=chosen, also=(*answering.also, *others))


fidelity = "core"
left_out = (
    "the mixture of pairs that it was trained on, 420,000 of them; reinforcement of a policy by Elo ratings is the reward `elo`"
)
data = Data(
    chosen="the better reply", rejected="the worse reply",
    rows=[
        {"prompt": "Why do leaves fall?", "chosen": "Trees save water in winter.", "rejected": "Because of gravity alone."},
        {"prompt": "How does one boil an egg?", "chosen": "Seven minutes in boiling water.", "rejected": "In a pan, somehow."},
    ],
)  # fmt: skip

check = Check(
    says="five votes in each order rank more held-out pairs right than one judgement does, of a judge that was only rewarded for "
    "its verdicts",
    versus=None, task="duels", measure="pair_accuracy", direction="higher", margin=0.03, against="judged",
    settings={"form": FORM}, problems=200, steps=40,
    finding="after 40 steps of rewards one judgement is right in 72% of cases, and five in each order rank 80% of the pairs "
    "right; before them 66% and 77%: votes gain more than these rewards, and gain less after them",
)  # fmt: skip
baseline = "trained_judge"
