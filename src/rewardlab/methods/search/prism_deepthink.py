"""PRISM: replies are particles in the energy of a process reward model, resampled where few matter, refined, and voted on by score.

    w = r^(1 / T);   resample by w if (sum w)^2 / sum w^2 < n / 2;   refine y -> y', accept with min(1, w(y') / w(y));   repeat
    answer = argmax over a of sum_i 1[answer(y_i) = a] r(y_i)

Deliberation without a signal of what is right drags minorities that are right to what most believe. Here a refinement that scores
worse is mostly refused, and one that scores better spreads by resampling, of one text no more than 30% of the population.

Sharma et al. 2026, arXiv:2603.02479, and the released code (Rituraj003/PRISM, bc4b063, prism.py; README: n = 10, 5 rounds, T = 0.8,
resampling below 0.5, noise 0.1, temperature 0.8). There the model is shown its solution with the verdict on each step, and asked to
mend it, with the noise as the chance of a hint to try another way; here it goes on from before the first step with which the reply
scores below 1/2, with the noise as the chance of any step, which needs no model that follows instructions (inferred to be alike).
As there, a reply without an answer scores 0, so that it is not copied and does not vote; so does one that was cut off, which has no
answer in a box there and here may end in a number; and acceptance ignores how likely a refinement was: no exact sampler. Where a
text has its share of the places, the release fills the others with any reply; here one that scores 0 keeps one place at most. Left
out: a comparison of two answers that both score 1.

Data: prompts whose replies end in an answer, and a scorer of unfinished replies, a chance from 0 to 1 (`rewardlab search
--scorer`).
"""

from rewardlab.core import Group, Recipe, Run, Scores, Term, Update
from rewardlab.core.score import derive
from rewardlab.evals.passk import accuracy
from rewardlab.methods.baselines.weighted_vote import own_probability, weighted_majority
from rewardlab.proof.claim import Claim, Within
from rewardlab.rewards.correct_so_far import correct_so_far
from rewardlab.rewards.imperfect import imperfect
from rewardlab.rewards.reward import Reward, reward
from rewardlab.rollouts.population import answered, population


@reward(over="groups")
def score_of_answered(groups: list[Group], run: Run, *, of: Reward) -> Scores:
    """What `of` says of a reply that came to its end and has an answer, and 0 of others."""
    return [
        [s if answered(t) else derive("score_of_answered", Term(0.0), [s]) for t, s in zip(*rows, strict=True)]
        for rows in zip(groups, of(groups, run), strict=True)
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
    return base.but(rollout=search, reward=score_of_answered(of=score), select=weighted_majority())


claim = Claim(
    says="a population refined by scores is right more often than a vote by the same scores over more replies, at no more tokens",
    versus="weighted_vote", task="arithmetic:biased=0.75,error=0.1", measure="accuracy", direction="higher", margin=0.04,
    settings={"n": 6, "rounds": 3, "temperature": 1.0}, versus_settings={"n": 24}, reward=imperfect(auc=0.8, of=correct_so_far()),
    problems=300, guard=Within("tokens_per_answer", high=0.0),
    fault=Within("accuracy", high=0.85, says="right answers by the weighted vote"), learns=None, start=None,
)  # fmt: skip
baseline = "weighted_vote"
