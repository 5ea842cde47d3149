"""UniR: train a small reasoner whose logits are added to a frozen model's, and transfer it to other models.

    pi(y_t | x, y_<t) = softmax(l_frozen + l_reasoner);    GRPO on replies of pi, in which the reasoner alone moves

What the reward says of whole replies becomes sum_t log pi_reasoner(y_t), guidance for single tokens that depends on no backbone:
after training it is added to any model of the same vocabulary, a larger one too, or several reasoners are added up.

Kim et al. 2025, arXiv:2505.19075, and the released code (hangeol/UniR, 06677e2, src/unir/trainer/UniRTrainer.py; 29197f5,
recipes/unir.yaml): n = 8, logits summed as they are, no KL, one update on each batch, the mean over all tokens, both models read
the same prompt. There the replies are sampled at temperature .7, here at the run's, and the reasoner begins as a smaller instruct
model at a rate of 1e-6.

The --model stays as it is. `reasoner`: a checkpoint of a small model of the same vocabulary; without it a copy of the --model, with
which the two begin as that model at half its temperature.
"""

from dataclasses import replace

from rewardlab.checks.claim import Check
from rewardlab.core import Learner, Recipe
from rewardlab.data.columns import Data
from rewardlab.evals.logit_ensemble import together
from rewardlab.evals.passk import accuracy
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.objectives.joint import joint_terms
from rewardlab.objectives.weighting import token_mean
from rewardlab.rollouts.logit_ensemble import logit_ensemble

REASONER, OTHER = "reasoner", "other"


def unir(
    base: Recipe | None = None, *, reasoner: str = "copy:policy", weight: float = 1.0, reasoner_lr: float | None = None,
    further: tuple[str, ...] = (), other: str = "", alone: bool = False,
) -> Recipe:  # fmt: skip
    """reasoner: what it begins as.  weight: of its logits.  reasoner_lr: its learning rate.
    further: other reasoners, trained before, which are added as well where the policy is measured.  other: another model, which
    they steer there in place of the --model.  alone: measure the steered model by itself as well.
    """
    base = base or grpo().but(weighting=token_mean())
    once = base.update.epochs * base.update.minibatches == 1
    learning = Recipe(
        credit=base.required("credit"), objective=joint_terms(base.objective, REASONER, weight, once), weighting=base.weighting,
        update=replace(base.update, lr=reasoner_lr),
    )  # fmt: skip
    frozen = {f"{REASONER}_{i}": init for i, init in enumerate(further, 2)}
    models = [Learner(name, init, Recipe(), every=0) for name, init in {**frozen, **({OTHER: other} if other else {})}.items()]
    measured = together(
        inner=base.measure or accuracy(), by=(REASONER, *frozen), weight=weight, on=OTHER if other else "policy", alone=alone
    )
    sampled = logit_ensemble(inner=base.required("rollout"), by=(REASONER,), weight=weight)
    # without an objective the policy is sampled alone, and stays as it is
    return base.but(
        rollout=sampled, objective=None, measure=measured, also=(*base.also, Learner(REASONER, reasoner, learning), *models)
    )


fidelity = "whole"
data = Data(answer="the gold answer")

check = Check(
    says="a reasoner that was trained on one frozen model makes another, which it never met, right more often than that is alone",
    versus=None, task="arithmetic:biased=0.75,error=0.1", measure="pass@1", direction="higher", margin=0.13,
    against="alone.pass@1",
    settings={"problems": 8, "other": "embedded:arithmetic:biased=0.8,error=0.05,difficulty=[2,5]", "alone": True}, steps=40,
    learns=None, start=None, sanity=True,
    finding="the other model is 38% right alone and 69% with the reasoner; 44% with the reasoner before its training. It is as "
    "large as the models that it steers, and trained for the same kind of problem: whether a small one helps a large one is not "
    "tested",
    version=2,
    replaces="it was compared with the two before training, of which the reasoner is a copy of the frozen model",
)  # fmt: skip
baseline = "grpo"
