"""GLoRe: a stepwise model of what can still be reached says where a draft goes wrong, an outcome model which rewriting is best.

    SORM, label of step i: 1 if any of n continuations of the steps up to i is right (or of later ones), whose text has the
          result of step i in it;   ORM, label of every step: whether the reply is right;    both by cross-entropy
    draft; global: written anew; local: gone on from before the first step with SORM < 1/2;   of the three that with the highest ORM

The ORM learns how likely the policy is to succeed, V of the policy: it is low at right steps of a problem that the policy mostly
fails. The SORM learns V of the best policy near it: it falls only where nothing right can follow, which is at the error.

Havrilla et al. 2024, arXiv:2402.10963: labels, the three ways of cleaning them (a right step makes those before it right, results
must be used, as many labels of either kind in every place) and the choice among three. (inferred): n, that a result is the last
number of a step, and that the balance is within a batch. Left out: the two refiners, policies that are fine-tuned to rewrite a
draft they read (the local one with [BAD] before the flagged step); here the policy writes both, the local one after the steps
that are not flagged. The models learn beside the policy, which stays as it is.

Data: prompts with gold answers; the policy continues its own solutions. Steps are lines.
"""

from rewardlab.core import Learner, Recipe, Update, with_surprise
from rewardlab.evals.refined import refined
from rewardlab.evals.step_labels import label_quality
from rewardlab.objectives.labels import label_cross_entropy
from rewardlab.proof.claim import Claim, Within
from rewardlab.rewards.algebra import threshold as at_least
from rewardlab.rewards.denoised import reachable_steps
from rewardlab.rewards.model import model_score, step_score
from rewardlab.rewards.reward import Reward
from rewardlab.rewards.steps import correct_steps, outcome_at_steps
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent


def chance(model: str) -> Reward:
    """At the end of each step its chance of being right: the value of the model's head there is the log-odds."""
    return at_least(step_score(model=model), at=0.0, soft=1.0)


def glore(
    base: Recipe | None = None, *, n: int = 4, continuations: int = 8, used: bool = True, balance: bool = True,
    threshold: float = 0.5, init: str = "value-head", surprise: bool = False, lr: float | None = None, epochs: int = 1,
) -> Recipe:  # fmt: skip
    """n, continuations: replies per problem, and tries from a step, to label it.  used, balance: of the labels
    (`reachable_steps`). threshold: below which a step is flagged.  init, lr, epochs: of both models (`Learner.init`).
    surprise: it also reads the surprise of the policy (`Learner.init`), which no paper has.
    """
    base = base or Recipe(name="glore", update=Update(problems=8))
    # labels are the models' own rewards: the policy, which stays as it is, needs a verdict on every reply
    model = Recipe(objective=label_cross_entropy(), update=Update(lr=lr, epochs=epochs, loss_kind="scorer"))
    labels = reachable_steps(n=continuations, used=used, balance=balance)
    sorm, orm = model.but(reward=labels), model.but(reward=outcome_at_steps())
    return base.but(
        rollout=independent(n=n, steps="newline"),
        reward=base.reward or correct(),
        measure=refined(where=chance("sorm"), by=model_score(model="orm"), threshold=threshold),
        also=(*base.also, Learner("sorm", with_surprise(init, surprise), sorm), Learner("orm", with_surprise(init, surprise), orm)),
    )


claim = Claim(
    says="the stepwise model ranks right steps above wrong ones more often than the outcome model, after as many updates",
    versus=None, task="arithmetic:biased=0.75,error=0.1", measure="auc.sorm", direction="higher", margin=0.065, against="auc.orm",
    settings={"init": "embedded:arithmetic:judge", "lr": 3e-4, "problems": 16}, by=label_quality(
        truth=correct_steps(), rollout=independent(n=4, steps="newline"),
        annotators={"sorm": chance("sorm"), "orm": chance("orm")},
    ), problems=150, steps=30,
    fault=Within("auc.orm", high=0.9, says="right steps above wrong ones, by the outcome model"),
    judge=Within("auc.sorm", low=0.6, says="the stepwise model has learnt"), learns=None,
    finding="AUC .84, of the outcome model .76",
)  # fmt: skip
baseline = None
