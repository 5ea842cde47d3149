"""RAST: add the RL-induced change of a small model's logits to a larger, untrained model.

    pi(y_t | x, y_<t) = softmax(l_large + lambda (l_small_RL - l_small))

RL moves few tokens, much the same ones in models of every size: the difference of the small ones says where to reason otherwise,
and the large one goes on knowing what it knows. lambda = 0 is the large model.

Ouyang et al. 2025, arXiv:2506.15710, and the released code (ozyyshr/RAST, 4f59f61, vllm/vllm/contrast_decode): raw logits, cut to
the narrowest vocabulary of a family, lambda = 1 at temperature 1; 32 replies, of which the paper reports the mean, pass@k and the
majority. With `large` the pair is made here: the --model, small, is trained by GRPO, and its shift is measured on the large one
before and after.

The --model is the large one, `small_rl` and `small_base` are checkpoints or run folders of a small model of the same tokenizer,
after and before RL. Without them both are the --model, whose shift is none, which is said.
"""

from rewardlab.checks.claim import Check
from rewardlab.core import Group, Learner, Problem, Recipe, Rollout, Run, Update, rollout
from rewardlab.data.columns import Data
from rewardlab.evals.logit_ensemble import together
from rewardlab.evals.passk import accuracy
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rollouts.independent import independent
from rewardlab.rollouts.logit_ensemble import logit_ensemble
from rewardlab.rollouts.vote import majority
from rewardlab.util.progress import console

PLUS_MINUS = (1.0, -1.0)
RL, BASE, LARGE = "small_rl", "small_base", "large"


@rollout(wraps="inner")
def unshifted(problems: list[Problem], run: Run, *, inner: Rollout) -> list[Group]:
    """The samples of `inner`, after a warning that the two small models are the same."""
    if not run.memory.get("rast.said"):
        run.memory["rast.said"] = True
        console.print(
            "warning: rast has no shift to add, since small_rl and small_base are the same model: answers are those of --model. "
            "Give --small-rl and --small-base, a small model after and before RL", highlight=False, markup=False, soft_wrap=True,
        )  # fmt: skip
    return inner(problems, run)


def rast(
    base: Recipe | None = None, *, small_rl: str = "copy:policy", small_base: str = "copy:policy", strength: float = 1.0,
    n: int = 1, temperature: float = 1.0, large: str = "",
) -> Recipe:  # fmt: skip
    """strength: lambda.  n: replies to each problem, of which the majority's answer is given.  large: instead of answering, train
    the --model as small model, and measure its shift on this one.
    """
    sampled = independent(n=n, temperature=temperature)
    base = base or (grpo() if large else Recipe(name="rast", rollout=sampled, measure=accuracy(), update=Update()))
    if large:
        measured = together(inner=base.measure or accuracy(), by=("policy", BASE), weight=strength, weights=PLUS_MINUS, on=LARGE)
        also = (_frozen(BASE, "copy:policy"), _frozen(LARGE, large))
        return base.but(measure=measured, also=(*base.also, *also))
    sampled = base.rollout or sampled
    shift = {"by": (RL, BASE), "weight": strength, "weights": PLUS_MINUS}
    answers = logit_ensemble(inner=sampled, **shift)
    return base.but(
        rollout=unshifted(inner=answers) if small_rl == small_base else answers, select=majority(),
        measure=together(inner=base.measure or accuracy(), **shift),
        also=(*base.also, _frozen(RL, small_rl), _frozen(BASE, small_base)),
    )  # fmt: skip


def _frozen(name: str, init: str) -> Learner:
    return Learner(name, init, Recipe(), every=0)


fidelity = "core"
left_out = "several pairs of small models at once, each with a weight of its own"
data = Data(answer="the gold answer")

check = Check(
    says="a model that is never trained is right more often with what GRPO changed in another one added to its logits",
    versus=None, task="arithmetic:biased=0.75,error=0.1", measure="pass@1", direction="higher", margin=0.097,
    against="before.pass@1", settings={"problems": 8, "large": "embedded:arithmetic:biased=0.8,error=0.05,difficulty=[2,5]"},
    steps=40, learns=None, start=None, sanity=True,
    finding="a model that is never trained is right 57% of the time with what GRPO changed in another one, 38% without. Both are "
    "of one size here, and how far it would come by GRPO of its own is not measured",
)  # fmt: skip
baseline = "grpo"
