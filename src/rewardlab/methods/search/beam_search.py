"""Beam search over steps: sample next steps, keep those with the highest process rewards, and repeat.

    B_t = the `width` best of { b + s : b in B_(t-1), s one of `branch` steps ~ pi(. | b) } by r;   answer = argmax of r

ahead > 0 is lookahead search: a row is scored where a greedy continuation of so many steps leads.

Snell et al. 2024, arXiv:2408.03314; branch = 4, as there. The paper lets the finished replies vote by their scores
(choose="vote"), and stops after 40 rounds, where here the length of a reply is the limit. Without a scorer (`rewardlab search
--scorer`), the geometric mean of the policy's own probabilities is the score. A reply that ends holds its place in the beam, as in
the usual beam search; in Hugging Face's search-and-learn it leaves the beam, which is filled up with copies. There steps end at a
blank line, the temperature is .8, and rows are scored one greedy step ahead.
"""

from typing import Literal

from rewardlab.core import Recipe, Update
from rewardlab.data.columns import Data
from rewardlab.evals.passk import accuracy
from rewardlab.methods.baselines.weighted_vote import own_probability, weighted_majority
from rewardlab.rollouts.beams import beams
from rewardlab.rollouts.best import best
from rewardlab.settings.domain import PositiveInt


def beam_search(
    base: Recipe | None = None, *, width: PositiveInt = 4, branch: PositiveInt = 4, ahead: int = 0, temperature: float = 1.0,
    step_tokens: int | None = None, stop: tuple[str, ...] = ("\n",), choose: Literal["best", "vote"] = "best",
) -> Recipe:  # fmt: skip
    """width: rows kept.  branch: next steps sampled of each.  ahead: steps of lookahead.  step_tokens: most tokens of a step.
    stop: the texts that end a step.  choose: the best reply, or a vote weighted by the scores."""
    base = base or Recipe(name="beam_search", reward=own_probability(), measure=accuracy(), update=Update())
    score = base.required("reward")
    search = beams(
        score=score, width=width, branch=branch, ahead=ahead, temperature=temperature, step_tokens=step_tokens, stop=stop
    )
    return base.but(rollout=search, select=best() if choose == "best" else weighted_majority())


fidelity = "whole"
data = Data(answer="the gold answer")

claim = None
baseline = None
system = None
