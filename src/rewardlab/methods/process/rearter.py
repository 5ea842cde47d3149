"""ReARTeR: lookahead corrects the scores of early steps; low-scored steps are explained and resampled.

    r'_t = r_t + alpha (r_{t+h} - r_t),    r_{t+h} of a greedy continuation of h steps, which is discarded
    best r' of the next steps < threshold:  a model explains what is wrong with it, the policy writes others, the best goes on
    learn:  DPO on the best and the worst next step after the same beginning

A process reward model knows little of a first step: what it leads to is still to come. As in temporal differences, the later and
better informed score mends the earlier one. A number says that a step is bad, and not how to do it better; a text does.

Sun et al. 2025, arXiv:2501.07861 (abstract; Jeryi-Sun/ReARTeR, ff0c908 and e895a6d, has the Monte-Carlo labels, above 1/2 is right,
but not the search). (inferred): h = 1, alpha = 1/2, the threshold, that refined steps join the others. It needs a scorer of
unfinished replies from 0 to 1 (`rewardlab search rearter --scorer prm:PATH`) and, to explain, a model that criticises
(`explainer="openai:URL#NAME"`) and a policy that reads such words. `gap` above 0 trains.
"""

from typing import Any

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Learner, Recipe, Update
from rewardlab.data.columns import Data
from rewardlab.evals.passk import accuracy
from rewardlab.methods.baselines.dpo import dpo
from rewardlab.methods.baselines.weighted_vote import own_probability
from rewardlab.rewards.correct_so_far import correct_so_far
from rewardlab.rewards.imperfect import imperfect
from rewardlab.rewards.reward import Reward
from rewardlab.rollouts.best import best
from rewardlab.rollouts.lookahead_search import lookahead_pairs, lookahead_search

EXPLAINER = "explainer"


def rearter(
    base: Recipe | None = None, *, score: Reward | None = None, branch: int = 4, ahead: int = 1, alpha: float = 0.5,
    threshold: float = 0.5, explainer: str = "", temperature: float = 1.0, step_tokens: int | None = None,
    stop: tuple[str, ...] = ("\n",), gap: float = 0.0,
) -> Recipe:  # fmt: skip
    """score: of unfinished replies; None: the recipe's reward, the policy's own probability unless another is given.  branch: next
    steps.  ahead, alpha: h, and the weight of what it finds; 0 looks at nothing.  threshold: below it a step is written again,
    after the model `explainer` has explained it ("": it is only sampled again).  stop: the texts
    that end a step.  gap: learn from pairs of steps whose scores differ by so much, instead of answering; 0: answer."""
    base = base or (dpo(problems=4) if gap else Recipe(name="rearter", measure=accuracy(), update=Update()))
    by: Any = score or base.reward or own_probability()
    how = {"score": by, "branch": branch, "ahead": ahead, "alpha": alpha, "threshold": threshold, "temperature": temperature,
           "step_tokens": step_tokens, "stop": stop, "explainer": EXPLAINER if explainer else ""}  # fmt: skip
    also = (*base.also, *((Learner(EXPLAINER, explainer, Recipe(), every=0),) if explainer else ()))
    if gap:
        return base.but(rollout=lookahead_pairs(gap=gap, **how), also=also)
    return base.but(rollout=lookahead_search(**how), reward=by, select=best(), also=also)


NOISY = imperfect(auc=0.8, inner=correct_so_far())

fidelity = "reading"
left_out = (
    "retrieval, so that steps are text alone; the Monte-Carlo tree, of whose steps the paper makes its pairs (here those of the "
    "search itself); preference learning of the explainer; and the training of the scorer on balanced labels, with a stronger "
    "model for hard ones (`rewardlab prm` trains one without)"
)
data = Data(answer="the gold answer")

claim = Claim(
    says="steps chosen by scores with a look ahead give more right answers than the same scores of more steps, at no more tokens",
    versus="rearter", task="arithmetic:biased=0.75,error=0.1", measure="accuracy", direction="higher", margin=0.06,
    settings={"score": NOISY, "threshold": 0.0}, versus_settings={"score": NOISY, "alpha": 0.0, "branch": 8, "threshold": 0.0},
    problems=300, guard=Within("tokens_per_answer", high=0.0),
    fault=Within("accuracy", high=0.85, says="right answers by the scores as they are"), learns=None, start=None,
    finding="56% right with a look ahead, 61% without it from twice as many steps, at 147 and 227 tokens an answer: with a scorer "
    "whose errors stay along a reply, a second look at the same steps mends nothing, and the steps that it costs are missed. With "
    "errors that are new at every step it had come out ahead (58%, 49%)",
)  # fmt: skip
baseline = "best_of_n"
