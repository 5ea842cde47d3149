"""MedS3: one search tree per problem trains the policy, on right chains, and a process reward model, on success rates.

    Q(step) = share of right replies among those of the tree that go on from it        (MCTS with sampled replies, UCT)
    policy: likelihood of the right chains;      model: -[Q log V + (1 - Q) log(1 - V)] at the end of each step
    answer: of n replies the one whose least trusted step the model trusts most, argmax min_k V(y_<=k)

Small models cannot be taught by chains of large ones where data must stay in the house; what their own search finds and a rule
verifies is enough, and its failures, worthless for imitation, are what the model learns from. Each round searches with the policy
of the round before.

Jiang et al. 2025, arXiv:2501.12051, and the released code (pixas/MedSSS, 2c8e6c7, scripts/iter_run_mcts_mixdata_prm.sh,
Evol_Instruct/training/prm_train.py, MCTS/tree.py, config/trial1.json): soft labels of the steps of right and wrong chains, 16
replies, three children, c = 2 (`explore` = 1.41 here, whose bonus holds sqrt 2). There scores of equal answers are summed
(prm-min-vote-sum); here, as the abstract has it, one reply is chosen, and that sum is measured beside as `voted`. (inferred):
iterations (the code stops at 20 or 60 nodes), that sampled replies that are right are imitated too, without a limit to their
number, and one update per batch of trees; the paper has few rounds of thousands. ReST-MCTS* differs: it searches by its values, and
learns progress, the distance to a right answer. Steps are lines.
"""

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Learner, Recipe, Update, with_surprise
from rewardlab.credit.tree import right_below
from rewardlab.data.columns import Data
from rewardlab.evals.reranked import reranked
from rewardlab.objectives.ratio import imitate
from rewardlab.objectives.tree import each_step_end_once, right_once, value_here_cross_entropy
from rewardlab.rewards.counts import counted_steps
from rewardlab.rewards.task import correct
from rewardlab.rollouts.monte_carlo import monte_carlo_tree


def meds3(
    base: Recipe | None = None, *, iterations: int = 8, branch: int = 3, explore: float = 1.41, temperature: float = 1.0,
    choose: int = 16, init: str = "value-head", surprise: bool = False, prm_lr: float | None = None, prm_epochs: int = 4,
    prm_minibatches: int = 4,
) -> Recipe:  # fmt: skip
    """iterations, branch, explore: of the search.  choose: replies to choose from when it is measured.  init, prm_lr,
    prm_epochs, prm_minibatches: of the process reward model (`Learner.init`).  surprise: it also reads the surprise of the
    policy (`Learner.init`), which no paper has.
    """
    base = base or Recipe(name="meds3", reward=correct(), update=Update(lr=1e-4))
    prm = Recipe(
        # a tree without a right end teaches the model too: its steps are worth 0
        credit=right_below(), objective=value_here_cross_entropy(), weighting=each_step_end_once(right=-1.0),
        update=Update(lr=prm_lr, epochs=prm_epochs, minibatches=prm_minibatches, loss_kind="scorer"),
    )  # fmt: skip
    search = monte_carlo_tree(
        score=base.required("reward"), iterations=iterations, branch=branch, explore=explore, simulate=True, temperature=temperature
    )
    return base.but(
        rollout=search, credit=None, objective=imitate(), weighting=right_once(),
        measure=reranked(by=counted_steps(model="prm", k=1, form="min"), n=choose, temperature=temperature),
        also=(*base.also, Learner("prm", with_surprise(init, surprise), prm)),
    )  # fmt: skip


fidelity = "core"
left_out = (
    "actions of the search (reflecting on a step, finishing where most samples are right), fewer samples of deeper nodes; that of "
    "a tree whose ends are all right, or all wrong, one chain alone teaches the model; and later rounds that search by its values"
)
data = Data(answer="the gold answer, a choice or a short text that a rule verifies")

claim = Claim(
    says="of 16 replies the one that the model of the searches trusts most is right more often than the most frequent answer",
    versus=None, task="arithmetic:biased=0.75,error=0.1", measure="reranked", direction="higher", margin=0.073, against="majority",
    settings={"surprise": True, "explore": 0.5}, problems=300, steps=30,
    judge=Within("by_auc", low=0.6, says="right replies above wrong ones to the same problem, by the model"), learns=None,
    finding="the policy learns from its searches (one sample is right in 54%, before in 39%), and so does the model (right above "
    "wrong in 78% of pairs); but of 16 replies its choice is right in 61%, the most frequent answer in 75%",
)  # fmt: skip
baseline = "rest_mcts_star"
