"""Monte-Carlo tree search: expand the step with the best balance of value and few visits.

    child = argmax of Q + c sqrt(2 ln N / n)   (UCT),   or of Q + c p sqrt(N) / (1 + n)   (PUCT);  answer = argmax over replies of r

Q is the mean score of what was tried at and below a node, p the policy's probability of its step, N and n the visits of the parent
and of the child. With `simulate`, a node is scored by a reply that is sampled to the end from it. A tree of 8 iterations is three
or four steps deep: longer replies are searched on from its best leaf, always to the best next step, unless `iterations` is raised.

Kocsis and Szepesvari 2006, Bandit based Monte-Carlo planning; Silver et al. 2017, arXiv:1712.01815. Without a scorer, the
geometric mean of the policy's own probabilities is the score.
"""

from typing import Literal

from rewardlab.core import Recipe, Update
from rewardlab.data.columns import Data
from rewardlab.evals.passk import accuracy
from rewardlab.methods.baselines.weighted_vote import own_probability, weighted_majority
from rewardlab.rollouts.best import best
from rewardlab.rollouts.monte_carlo import monte_carlo_tree


def mcts(
    base: Recipe | None = None, *, iterations: int = 8, branch: int = 3, explore: float = 0.5,
    rule: Literal["uct", "puct"] = "uct", simulate: bool = False, temperature: float = 1.0, step_tokens: int | None = None,
    stop: tuple[str, ...] = ("\n",), choose: Literal["best", "vote"] = "best",
) -> Recipe:  # fmt: skip
    """iterations: nodes visited.  branch: next steps sampled of each.  explore: c.  simulate: score replies sampled from nodes.
    step_tokens: most tokens of a step.  stop: the texts that end one.  choose: the best reply, or a vote weighted by the scores."""
    base = base or Recipe(name="mcts", reward=own_probability(), measure=accuracy(), update=Update())
    search = monte_carlo_tree(
        score=base.required("reward"), iterations=iterations, branch=branch, explore=explore, rule=rule, simulate=simulate,
        temperature=temperature, step_tokens=step_tokens, stop=stop,
    )  # fmt: skip
    return base.but(rollout=search, select=best() if choose == "best" else weighted_majority())


fidelity = "core"
left_out = "what AlphaZero adds: noise at the root, and training policy and value on what the search finds"
data = Data(answer="the gold answer")

claim = None
baseline = None
system = None
