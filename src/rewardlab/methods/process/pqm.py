"""PQM: step scores as Q-values, learnt by ranking the steps of a solution instead of classifying each.

    loss = -(1/|C|) sum_{t in C} log exp(Q_t) / (sum_{q <= t in C} exp(Q_q) + sum_{w in W} exp(Q_w + zeta))

C: the prompt, whose Q is 0, and the right steps in order; W: the wrong steps. A solution that goes right becomes ever likelier to
end right, and one that has gone wrong hardly ever does: Q of wrong << Q of prompt < Q of the first right step < ... < of the last.
Cross-entropy treats steps as if they had nothing to do with each other. A reply is worth the Q of its worst step.

Li and Li 2024, arXiv:2410.11287. The prompt's Q, zeta = 4, and the least Q as a reply's score are those of the released code
(WindyLee0822/Process_Q_Model, 1e84e28, train_main.py; bon_eval_hf.py). It learns once, from Math-Shepherd's file, as `rewardlab prm
train DATA --loss rank` does here; in this method it learns beside the policy, which stays as it is, from labels of the same kind: a
step is right if one of its continuations is. loss="bce" or "mse" are the paper's baselines. (inferred): n, continuations. Steps are
lines.
"""

from typing import Literal

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Learner, Recipe, Update, with_surprise
from rewardlab.data.columns import Data
from rewardlab.evals.reranked import reranked
from rewardlab.objectives.step_labels import value_of_steps
from rewardlab.rewards.algebra import aggregate, threshold
from rewardlab.rewards.model import step_score
from rewardlab.rewards.monte_carlo import monte_carlo_steps
from rewardlab.rollouts.independent import independent


def pqm(
    base: Recipe | None = None, *, loss: Literal["rank", "bce", "mse"] = "rank", zeta: float = 4.0, n: int = 4,
    continuations: int = 4, choose: int = 8, init: str = "value-head", surprise: bool = False, lr: float | None = None,
    epochs: int = 1,
) -> Recipe:  # fmt: skip
    """zeta: margin between right and wrong steps.  n, continuations: replies per problem, and tries from each of their steps,
    to label it.  choose: replies to choose from when it is measured.  init, lr, epochs: of the model (`Learner.init`).
    surprise: it also reads the surprise of the policy (`Learner.init`), which no paper has.
    """
    base = base or Recipe(name="pqm", update=Update(problems=8))
    prm = Recipe(objective=value_of_steps(loss=loss, zeta=zeta), update=Update(lr=lr, epochs=epochs, loss_kind="scorer"))
    return base.but(
        # no objective of its own: the policy samples, continues, and stays as it is
        rollout=independent(n=n, steps="newline"),
        # hard estimation: any share above 0
        reward=threshold(monte_carlo_steps(n=continuations), at=1 / (2 * continuations)),
        measure=reranked(by=aggregate(step_score(model="prm"), by="min"), n=choose),
        also=(*base.also, Learner("prm", with_surprise(init, surprise), prm)),
    )


TRUNK = {"init": "embedded:arithmetic:judge", "lr": 3e-4, "problems": 32, "epochs": 2}
"""A trunk that was taught to judge: on the policy's own the head hardly learns from so few labels."""

fidelity = "core"
left_out = (
    "the vote weighted by sigmoid(Q), and training once on the labels of a file, two epochs of Math-Shepherd (`rewardlab prm train "
    "DATA --loss rank` does that; here labels are made of the policy's own replies as it goes)"
)
data = Data(answer="the gold answer")

claim = Claim(
    says="the best of 8 by the least Q of its steps is right more often than by a classifier of the same steps",
    versus="pqm", task="arithmetic:biased=0.75,error=0.1", measure="reranked", direction="higher", margin=0.11,
    settings=TRUNK, versus_settings={**TRUNK, "loss": "bce"}, problems=300, steps=40,
    judge=Within("by_auc", low=0.6, says="right replies above wrong ones to the same problem, by the model"), learns=None,
    tried="30 steps of 4 problems in one pass, of 8 in two, 60 of 8 in eight: the ranking does not learn (AUC .54, .55, .54)",
    finding="from the same labels a classifier ranks a right reply above a wrong one in 87%, the comparison of steps in 66%; the "
    "best of 8 is right in 63% and 42%, a majority in 48%, one sample in 38%. Labels are few here, and the ranking learns slowly",
)  # fmt: skip
baseline = None
