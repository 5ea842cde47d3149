"""Multi-RM: four kinds of reward model from the same labelled solutions: of outcomes or of steps, discriminative or generative.

    dORM   cross-entropy of whether the answer is right, at the end of the last step;      a solution is worth the chance there
    dPRM   cross-entropy of the label of each step up to the first wrong one;              a solution is worth its least chance
    gORM, gPRM   the same as Yes or No in words, said by the language model itself

Labels of steps are made by language models, and err; whether an answer is right is known. And a solution of T steps is worth the
least of T chances: where each errs with the chance eps, the whole errs with about 1 - (1 - eps)^T. So the paper finds that outcomes
teach at least as much as steps.

Lee et al. 2025, arXiv:2510.00492. Labels up to the first wrong step, the outcome by the answer or else by the labels, the worth of
dORM (last) and dPRM (min), 16 solutions in a batch and LoRA of rank 16 are those of the released code (db-Lee/Multi-RM, d097145,
discriminative/data.py, configs/dPRM-14B.yaml; evaluation/evaluate.py). There the head is the logits of "+" and "-" of the language
model (`--init value-head:words=+,-` here), the rate 1e-4 falls as a cosine, and the generative models first write what they verify,
by imitation of QwQ-32B's verifications that agree with the label, and the mean of several is taken; here they say Yes or No after a
step, without reasons (`genprm` and `thinkprm` write them). Steps are read as `rewardlab prm train` reads them.
"""

from typing import Any, Literal

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Recipe
from rewardlab.data.columns import Column, Data
from rewardlab.methods.baselines.step_scorer import step_scorer
from rewardlab.settings.domain import PositiveFloat, PositiveInt

KINDS: dict[str, dict[str, Any]] = {
    "dORM": {"form": "head", "taught": "outcome", "by": "last"},
    "dPRM": {"form": "head", "taught": "first-error", "by": "min"},
    "gORM": {"form": "generative", "taught": "outcome", "by": "last"},
    "gPRM": {"form": "generative", "taught": "first-error", "by": "min"},
}


def multi_rm(
    base: Recipe | None = None, *, kind: Literal["dORM", "dPRM", "gORM", "gPRM"] = "dORM", problems: PositiveInt = 16,
    lr: PositiveFloat | None = None, init: str = "value-head",
) -> Recipe:  # fmt: skip
    """kind: of the reward model.  problems: solutions in a batch.  init: of a head (`Learner.init`)."""
    return step_scorer(base or Recipe(name="multi_rm"), **KINDS[kind], problems=problems, lr=lr, init=init)


fidelity = "core"
left_out = "verifications in words, by which its generative models judge, its fourteen domains, and weighted votes"
data = Data(
    steps="the solution: a list of its steps, as texts",
    labels=Column("for each step 1 (right), 0 (wrong), a share between them, or null", optional=True, setting="column"),
    right=Column("whether the solution's answer is right: true or false", optional=True, setting="column"),
    rows=[
        {
            "prompt": "Which planet is nearest to the Sun?", "labels": [1, 1], "right": True,
            "steps": ["The planets in order are Mercury, Venus, Earth, Mars.", "So it is Mercury."],
        },
        {
            "prompt": "Is 91 a prime?", "labels": [1, 0], "right": False,
            "steps": ["91 is odd and does not end in 5.", "So no number divides it: yes."],
        },
        {
            "prompt": "What is half of 3/4?", "labels": [0], "right": False, "steps": ["Half of 3/4 is 3/2."],
        },
    ],
)  # fmt: skip

LEARNS = {"init": "value-head:surprise", "problems": 32, "lr": 1e-3}
"""A head that also reads how surprised the policy was: a plain one stays at chance for hundreds of solutions."""

claim = Claim(
    says="where one label of a step in five is wrong, a model of outcomes picks right ones of 8 oftener than one of steps",
    versus="multi_rm", task="labelled_solutions:biased=0.5,noise=0.2,size=300", measure="chosen", direction="higher", margin=0.05,
    settings={**LEARNS, "kind": "dORM"}, versus_settings={**LEARNS, "kind": "dPRM"}, problems=800, steps=60,
    judge=Within("by_auc", low=0.6, says="right solutions above wrong ones to the same question, by the model"), learns=None,
    finding="of eight solutions the model of steps picks a right one for 59% of the questions, that of outcomes for 47%, a random "
    "choice for 30%; right ones come above wrong ones in 80% and 76%. Verdicts on 300 solutions are a quarter of the labels "
    "that steps give, and teaches less, though one of these in five is wrong",
)  # fmt: skip
