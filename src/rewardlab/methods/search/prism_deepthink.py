"""PRISM: replies as particles in a process reward's energy: resampled at low effective size, refined, voted by score.

    w = r^(1 / T);   resample by w if (sum w)^2 / sum w^2 < n / 2;   refine y -> y', accept with min(1, w(y') / w(y));   repeat
    answer = argmax over a of sum_i 1[answer(y_i) = a] r(y_i)

Deliberation without a signal of what is right drags minorities that are right to what most believe. Here a refinement that scores
worse is mostly refused, and one that scores better spreads by resampling, of one text no more than 30% of the population.

Sharma et al. 2026, arXiv:2603.02479, and the released code (Rituraj003/PRISM, bc4b063, prism.py; README: n = 10, 5 rounds, T = 0.8,
resampling below 0.5, noise 0.1, temperature 0.8). Here a reply is refined by going on from before the first step with which it
scores below 1/2, with the noise as the chance of any step, which needs no model that follows instructions (inferred to be alike).
As there, a reply without an answer scores 0, so that it is not copied and does not vote; so does one that was cut off, which has no
answer in a box there and here may end in a number; and acceptance ignores how likely a refinement was: no exact sampler. Where a
text has its share of the places, the release fills the others with any reply; here one that scores 0 keeps one place at most.

Replies must end in an answer, and the scorer must read unfinished ones, and give a chance from 0 to 1 (`rewardlab search
--scorer`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Group, Problem, Recipe, Run, Scores, Term, Trajectory, Update, rollout
from rewardlab.data.columns import Data
from rewardlab.evals.passk import accuracy
from rewardlab.methods.baselines.weighted_vote import own_probability, weighted_majority
from rewardlab.rewards.correct_so_far import correct_so_far
from rewardlab.rewards.imperfect import imperfect
from rewardlab.rewards.reward import Reward, reward
from rewardlab.rewards.scores import derive
from rewardlab.rollouts.particles import chosen
from rewardlab.rollouts.stepwise import UNSURE, Scored, Stepping, grown, marked, started, worths
from rewardlab.settings.domain import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, PositiveShare, Share
from rewardlab.text.answers import after_thinking
from rewardlab.text.votes import answer_of

# ---- A population of replies that is resampled and refined, round after round, as a reward says ----------------------

PERFECT = 1 - 1e-6
WORTHLESS = 1e-6


@dataclass(frozen=True)
class Heat:
    """temperature: a reply weighs score^(1 / temperature).  least: the share of effective replies below which they are resampled.
    copies: the largest share of equal replies that resampling leaves."""

    temperature: float
    least: float
    copies: float

    def weight(self, score: float) -> float:
        return math.exp(math.log(score) / self.temperature) if score > 0 else 0.0


@rollout
def population(
    problems: list[Problem], run: Run, *, score: Reward, n: PositiveInt = 10, rounds: NonNegativeInt = 5,
    heat: PositiveFloat = 0.8, resample_below: Share = 0.5, copies: PositiveShare = 0.3, elsewhere: Share = 0.1,
    temperature: NonNegativeFloat = 0.8, step_tokens: PositiveInt | None = None, stop: tuple[str, ...] = ("\n",),
) -> list[Group]:  # fmt: skip
    """n replies to each problem after so many rounds of resampling and refining.

    A reply weighs w = score^(1 / heat), its score being a chance; one that was cut off, or has no answer, scores 0, whatever the
    reward says of it, and is never copied. If the effective number of replies, (sum w)^2 / sum w^2, is less than `resample_below`
    n, they are resampled by weight (systematically), no text more often than ceil(copies n); not if all are worthless. Then each
    that is not perfect is refined: it is cut before its first step with which it scores below 1/2 (its last step, if there is none;
    with the chance `elsewhere`, before any step), and gone on with. What comes out takes its place with the chance min(1, w' / w).
    step_tokens: most tokens of a step (None: of a reply).  stop: the texts that end a step.
    Logged: accepted, the share of refinements that took a place.

    Sharma et al. 2026, arXiv:2603.02479
    """
    how, hot = Stepping(step_tokens, temperature, tuple(stop)), Heat(heat, resample_below, copies)
    first = [(g, t, k) for g, t in enumerate(started(problems, run)) for k in range(n)]
    clouds = _scored(_written([t for _, t, _ in first], [k for _, _, k in first], how, run), n, score, run)
    taken = tried = 0
    for number in range(1, rounds + 1):
        clouds = [resampled(cloud, hot, run.rng("resampling")) for cloud in clouds]
        at = [(g, k) for g, cloud in enumerate(clouds) for k, (value, _) in enumerate(cloud) if value < PERFECT]
        begun = _begun([clouds[g][k][1] for g, k in at], score, elsewhere, run)
        # numbers that no earlier step at the same place has
        again = _written(begun, [number * n + k for _, k in at], how, run)
        luck = torch.rand(len(at), generator=run.rng("accept")).tolist()
        for (g, k), (new,), u in zip(at, _scored(again, 1, score, run), luck, strict=True):
            if u < chance(hot, clouds[g][k][0], new[0]):
                clouds[g][k], taken = new, taken + 1
        tried += len(at)
    run.log("accepted", taken / max(1, tried))
    return [marked([t for _, t in cloud], run) for cloud in clouds]


def resampled(cloud: list[Scored], heat: Heat, rng: torch.Generator) -> list[Scored]:
    """As many replies, by weight, if few of them hold most of it; else the same ones."""
    weights = [heat.weight(value) for value, _ in cloud]
    total, n = math.fsum(weights), len(cloud)
    if max(value for value, _ in cloud) < WORTHLESS or total**2 >= heat.least * n * math.fsum(w * w for w in weights):
        return cloud
    most, texts, kept = max(1, math.ceil(n * heat.copies)), Counter[str](), list[int]()
    for i in chosen([math.log(w) if w > 0 else UNSURE for w in weights], "systematic", rng):
        # where a text is there often enough, another takes the place; a worthless one keeps its own, and no second
        free = [j for j, (_, t) in enumerate(cloud) if texts[t.reply] < most and (weights[j] > 0 or j not in kept)]
        if texts[cloud[i][1].reply] >= most and free:
            i = free[int(torch.randint(len(free), (), generator=rng))]
        texts[cloud[i][1].reply] += 1
        kept.append(i)
    return [cloud[i] for i in kept]


def answered(t: Trajectory) -> bool:
    """Whether a reply came to its end and has an answer there."""
    return t.stop != "length" and answer_of(after_thinking(t.reply)) is not None


def chance(heat: Heat, old: float, new: float) -> float:
    """That a refinement takes the place of what it refines: min(1, w' / w); of a worthless one, if it is better."""
    weight = heat.weight(old)
    return min(1.0, heat.weight(new) / weight) if weight > 0 else float(new > old)


def _begun(rows: Sequence[Trajectory], score: Reward, elsewhere: float, run: Run) -> list[Trajectory]:
    """Each reply up to the step that is to be written anew."""
    rng = run.rng("refining")
    parts = [[_before(t, k) for k in range(1, len(t.path))] for t in rows]
    found = []
    for t, known in zip(rows, worths(parts, score, run), strict=True):
        last = len(t.path) - 1
        wrong = next((k for k, value in enumerate(known) if value < 0.5), last)
        if float(torch.rand((), generator=rng)) < elsewhere:
            wrong = int(torch.randint(last + 1, (), generator=rng))
        found.append(_before(t, wrong))
    return found


def _before(t: Trajectory, step: int) -> Trajectory:
    """The row with this many of its steps."""
    return replace(t, turns=t.turns[: step + 1], path=t.path[:step], stop=None, steps=())


def _written(rows: Sequence[Trajectory], numbers: Sequence[int], how: Stepping, run: Run) -> list[Trajectory]:
    """Each row to the end of its reply, step by step."""
    done = list(rows)
    while at := [i for i, t in enumerate(done) if t.stop is None]:
        for i, t in zip(at, grown([done[i] for i in at], [numbers[i] for i in at], how, run), strict=True):
            done[i] = t
    return done


def _scored(rows: Sequence[Trajectory], n: int, score: Reward, run: Run) -> list[list[Scored]]:
    """The replies in groups of n, with their scores; one without a verdict or an answer is worth nothing."""
    groups = [list(rows[i : i + n]) for i in range(0, len(rows), n)]
    values = worths(groups, score, run)
    return [[(max(0.0, v) if answered(t) else 0.0, t) for v, t in zip(*x, strict=True)] for x in zip(values, groups, strict=True)]


# ---- the recipe ---------------------------------------------------------------------------------------------------------


@reward(over="groups")
def score_of_answered(groups: list[Group], run: Run, *, inner: Reward) -> Scores:
    """The reward `inner` of finished replies with an answer, and 0 of others."""
    return [
        [s if answered(t) else derive("score_of_answered", Term(0.0), [s]) for t, s in zip(*rows, strict=True)]
        for rows in zip(groups, inner(groups, run), strict=True)
    ]


def prism_deepthink(
    base: Recipe | None = None, *, n: int = 10, rounds: int = 5, heat: float = 0.8, resample_below: float = 0.5,
    copies: float = 0.3, elsewhere: float = 0.1, temperature: float = 0.8, step_tokens: int | None = None,
    stop: tuple[str, ...] = ("\n",),
) -> Recipe:  # fmt: skip
    """n: replies.  rounds: of resampling and refining.  heat: T.  resample_below: share of effective replies.  copies: largest
    share of one text after resampling.  elsewhere: the noise.  step_tokens: most tokens of a step.
    stop: the texts that end one."""
    base = base or Recipe(name="prism_deepthink", reward=own_probability(), measure=accuracy(), update=Update())
    score = base.required("reward")
    search = population(
        score=score, n=n, rounds=rounds, heat=heat, resample_below=resample_below, copies=copies,
        elsewhere=elsewhere, temperature=temperature, step_tokens=step_tokens, stop=stop,
    )  # fmt: skip
    return base.but(rollout=search, reward=score_of_answered(inner=score), select=weighted_majority())


fidelity = "core"
left_out = (
    "refinement by a model that is shown its solution with the verdict on each step, and at times asked to try another way: here "
    "the reply is written anew from its first bad step; a comparison of two answers that both score 1"
)
data = Data(answer="the gold answer")

claim = Claim(
    says="a population refined by scores is right more often than a vote by the same scores over more replies, at no more tokens",
    versus="weighted_vote", task="arithmetic:biased=0.75,error=0.1", measure="accuracy", direction="higher", margin=0.04,
    settings={"n": 6, "rounds": 3, "temperature": 1.0}, versus_settings={"n": 24}, reward=imperfect(auc=0.8,
    inner=correct_so_far()), problems=300, guard=Within("tokens_per_answer", high=0.0),
    fault=Within("accuracy", high=0.85, says="right answers by the weighted vote"), learns=None, start=None,
    finding="six replies, resampled and refined in three rounds, are right 63% of the time at 515 tokens an answer; a vote of 24 "
    "replies by the same scores 56% at 683 tokens. The scores are the truth with noise; a learnt scorer is not tested",
)  # fmt: skip
baseline = "weighted_vote"
