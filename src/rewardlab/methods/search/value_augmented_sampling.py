"""VAS: learn the values of the frozen policy, and tilt each next token towards higher value.

    pi(y_t | x, y_<t) ~ pi_0(y_t | x, y_<t) exp(beta Q(x, y_<=t)),    Q minus its mean over the k likeliest tokens, 0 for others
    Q learns by TD(lambda) from what pi_0 samples and the reward pays: (V - lambda-return)^2 / 2

Nothing but values is learnt, and of one policy that stands still: the optimal policy under a KL follows from them without actor and
critic chasing each other. beta is chosen when it answers, and values of several rewards add up there.

Han, Shenfeld et al. 2024, arXiv:2405.06639, and the released code (idanshen/Value-Augmented-Sampling, 43f7bad, vas_trainer.py):
lambda = 0.95, two epochs, k = 20, a head of zeros, beta = 3 in the example. There the value model is smaller than the policy, a
checkpoint of its family with adapters, and the replies of the policy were sampled beforehand. (inferred): that the value of a whole
text is learnt too, as its reward, without which the end token's would be a guess. Rewards are neither scaled nor clipped, as by
default there.

`init`: what the value model begins as, such as a smaller checkpoint with the same tokenizer. After training, `rewardlab export RUN
DIR --model critic` writes it, and with `values` = [DIR] the method answers.
"""

from typing import Any

from torch import Tensor

from rewardlab.checks.claim import Check
from rewardlab.core import Batch, Learner, Outputs, Recipe, Run, Update, objective
from rewardlab.credit.value import lambda_return
from rewardlab.data.columns import Data
from rewardlab.evals.logit_ensemble import together
from rewardlab.evals.passk import accuracy
from rewardlab.evals.rewards import mean_reward
from rewardlab.objectives.regularise import value_error
from rewardlab.objectives.weighting import token_mean
from rewardlab.rewards.task import correct
from rewardlab.rollouts.best import best
from rewardlab.rollouts.independent import independent
from rewardlab.rollouts.logit_ensemble import logit_ensemble

CRITIC = "critic"


@objective(unit="token", wants=("value",))
def whole_text_error(out: Outputs, batch: Batch, run: Run) -> Tensor:
    """(V - reward)^2 / 2 where a reward is paid, V being the value of the text up to there and including it; 0 elsewhere."""
    return (0.5 * (out.value - batch.reward).square()).where(batch.rewarded, 0.0)


def value_augmented_sampling(
    base: Recipe | None = None, *, beta: float = 3.0, candidates: int = 20, values: tuple[str, ...] = (),
    betas: tuple[float, ...] = (), n: int = 4, temperature: float = 1.0, lam: float = 0.95, init: str = "value-head",
    value_lr: float | None = None, value_epochs: int = 2, value_minibatches: int = 1,
) -> Recipe:  # fmt: skip
    """candidates: k.  n: replies to each problem, in training and in answers (the best is given).  lam: lambda.  value_lr,
    value_epochs, value_minibatches: of the value model.
    values: instead of training, answer by these value models, each times beta and its own of `betas`.
    """
    sampled = independent(n=n, temperature=temperature)
    base = base or Recipe(name="value_augmented_sampling", rollout=sampled, reward=correct(), measure=accuracy(), update=Update())
    base = base.but(rollout=base.rollout or sampled)
    names = tuple(f"{CRITIC}_{i}" for i in range(len(values))) or (CRITIC,)
    how: dict[str, Any] = {"by": names, "weight": beta, "weights": betas, "candidates": candidates}
    measured = together(inner=base.measure or accuracy(), **how)
    if values:
        frozen = tuple(Learner(name, path, Recipe(), every=0) for name, path in zip(names, values, strict=True))
        sampled = logit_ensemble(inner=base.required("rollout"), **how)
        return base.but(rollout=sampled, select=best(), measure=measured, also=(*base.also, *frozen))
    critic = Recipe(
        # unclipped, as in the released code: the policy that is valued does not move
        credit=lambda_return(lam=lam), objective=value_error(clip=None) + whole_text_error(), weighting=token_mean(),
        update=Update(lr=value_lr, epochs=value_epochs, minibatches=value_minibatches, loss_kind="scorer"),
    )  # fmt: skip
    # without an objective the policy is sampled alone, and stays as it is
    return base.but(credit=None, objective=None, measure=measured, also=(*base.also, Learner(CRITIC, init, critic)))


fidelity = "core"
left_out = "steering a model behind an interface, by the log-probs that it gives of its likeliest tokens"
data = Data(answer="the gold answer")

check = Check(
    says="with the values of the frozen policy's own replies its next replies earn more, and no weight of it has moved",
    versus=None, task="notes", measure="reward", direction="higher", margin=0.12, against="before.reward",
    settings={"beta": 20.0, "n": 8, "value_epochs": 4, "value_minibatches": 4},
    by=together(inner=mean_reward(), by=(CRITIC,), weight=20.0), steps=40, learns=None, start=None, sanity=True,
    tried="two epochs of one update: +.02 in 40 steps; with these settings +.12 in 12 steps and +.28 in 24 at beta 20",
    finding="replies earn .81 with values that were learnt in 40 steps, .55 without, and the policy is the same. What the best of "
    "as many replies as the values cost would earn is not tested",
)  # fmt: skip
baseline = "best_of_n"
