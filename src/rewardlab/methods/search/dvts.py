"""Diverse verifier tree search: several independent searches, each a greedy choice among a few next steps.

    b_i <- argmax over `branch` steps s ~ pi(. | b_i) of r(b_i + s),  i = 1 .. trees;     answer = argmax over i of r(b_i)

One beam soon holds rows that begin alike; trees that never compete stay apart, which pays at large budgets.

Beeching, Tunstall and Rush 2024, Scaling test-time compute with open models, and the released code (Hugging Face, search-and-learn,
diverse_verifier_tree_search.py): branch = 4. There steps end at a blank line or with a box, the temperature is .8, and rows are
scored one greedy step ahead (`ahead`). Without a scorer, the geometric mean of the policy's own probabilities is the score.
"""

from typing import Literal

from rewardlab.core import Recipe, Update
from rewardlab.data.columns import Data
from rewardlab.evals.passk import accuracy
from rewardlab.methods.baselines.weighted_vote import own_probability, weighted_majority
from rewardlab.rollouts.beams import subtrees
from rewardlab.rollouts.best import best


def dvts(
    base: Recipe | None = None, *, trees: int = 4, branch: int = 4, ahead: int = 0, temperature: float = 1.0,
    step_tokens: int | None = None, stop: tuple[str, ...] = ("\n",), choose: Literal["best", "vote"] = "best",
) -> Recipe:  # fmt: skip
    """trees: independent searches.  branch: next steps sampled in each.  ahead: steps of lookahead.  step_tokens: most tokens of a
    step.  stop: the texts that end a step.  choose: the best reply, or a vote weighted by the scores."""
    base = base or Recipe(name="dvts", reward=own_probability(), measure=accuracy(), update=Update())
    score = base.required("reward")
    search = subtrees(
        score=score, trees=trees, branch=branch, ahead=ahead, temperature=temperature, step_tokens=step_tokens, stop=stop
    )
    return base.but(rollout=search, select=best() if choose == "best" else weighted_majority())


fidelity = "core"
left_out = "the other candidates of each tree's last step, which are replies there as well, and vote"
data = Data(answer="the gold answer")

claim = None
baseline = None
system = None
