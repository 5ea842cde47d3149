"""ER-PRM: entropy-regularised step labels: the soft maximum of continuations' rewards, the value under a KL to the initial policy.

    label after step k:  (1/eta) log mean_j exp(eta r_j),    r_j: whether continuation j of the prefix is right
    process reward model: cross-entropy to these labels;     of n replies the one whose least trusted step it trusts most

With rewards of 0 and 1 that is log(1 + p (e^eta - 1)) / eta, p the share of right continuations: p itself as eta goes to 0
(Math-Shepherd's soft label), and 1 wherever one continuation is right as eta grows (its hard label). It is the optimal value of a
prefix where every departure from the sampling policy costs KL / eta, so that a step from which the policy seldom, but sometimes,
finds the answer is not labelled as lost.

Zhang et al. 2024, arXiv:2412.11006. The label, the verdict as that of the last step, and the soft cross-entropy at the ends of
steps are those of the released code (hanningzhang/ER-PRM, 5a996d4, MCTS/calculate_score.py, prm/kl_math_reward_ce.py), and so is
eta = 1, which its README runs; the loss is a mean over all steps there, and here over replies, of the mean over their steps. As
there (evaluation/evaluate_math_reward_model.py), a reply is worth its worst step. It samples 16 continuations of each step at
temperature 1 (MCTS/mc_reward_data_math.py); here 4, a setting. (inferred): n. The model learns beside the policy, which stays as it
is; there it learns once, from a file, by the logits of "+" and "-". Steps are lines; there sentences, of which those within 30
characters of the one before have no label.
"""

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Learner, Recipe, Update, with_surprise
from rewardlab.data.columns import Data
from rewardlab.evals.reranked import reranked
from rewardlab.objectives.labels import label_cross_entropy
from rewardlab.rewards.algebra import aggregate
from rewardlab.rewards.model import step_score
from rewardlab.rewards.monte_carlo import monte_carlo_steps
from rewardlab.rewards.progress import soft_best
from rewardlab.rollouts.independent import independent


def er_prm(
    base: Recipe | None = None, *, eta: float = 1.0, n: int = 4, continuations: int = 4, choose: int = 8,
    init: str = "value-head", surprise: bool = False, lr: float | None = None, epochs: int = 1,
) -> Recipe:  # fmt: skip
    """eta: inverse temperature of the labels; 0 takes the mean.  n, continuations: replies per problem, and tries from each of
    their steps, to label it.  choose: replies to choose from when it is measured.  init, lr, epochs: of the model
    (`Learner.init`).  surprise: it also reads the surprise of the policy (`Learner.init`), which no paper has.
    """
    base = base or Recipe(name="er_prm", update=Update(problems=8))
    prm = Recipe(objective=label_cross_entropy(), update=Update(lr=lr, epochs=epochs, loss_kind="scorer"))
    return base.but(
        # no objective of its own: the policy samples, continues, and stays as it is
        rollout=independent(n=n, steps="newline"),
        reward=soft_best(monte_carlo_steps(n=continuations), eta=eta),
        measure=reranked(by=aggregate(step_score(model="prm"), by="min"), n=choose),
        also=(*base.also, Learner("prm", with_surprise(init, surprise), prm)),
    )


TRUNK = {"init": "embedded:arithmetic:judge", "lr": 3e-4, "problems": 4}
"""A trunk that was taught to judge: on the policy's own the head hardly learns from so few labels."""

fidelity = "core"
left_out = "RAFT, which trains a policy on the reply of n that the model likes best, in three rounds: here the model only chooses"
data = Data(answer="the gold answer")

claim = Claim(
    says="the best of 8 by a model of soft maxima is right more often than by one of the mean of the same continuations",
    versus="er_prm", task="arithmetic:biased=0.75,error=0.1", measure="reranked", direction="higher", margin=0.13,
    settings={**TRUNK, "eta": 2.0}, versus_settings={**TRUNK, "eta": 0.0}, problems=300, steps=30,
    judge=Within("by_auc", low=0.6, says="right replies above wrong ones to the same problem, by the model"), learns=None,
    finding="of 8 replies the model of soft maxima (eta = 2) picks a right one for 52% of the problems, that of means for 48%, "
    "which is within noise; one sample is right in 38%, the majority of 8 in 48%. Both models begin from a trunk that was taught "
    "to judge",
    version=2, replaces="on the policy's own trunk heads did not learn to tell right replies from wrong ones, by one pass or four",
)  # fmt: skip
baseline = None
