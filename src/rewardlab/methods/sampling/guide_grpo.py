"""Guide-GRPO: prompts whose replies are all wrong are answered again with a hint, and learnt from as if there had been none.

    all n replies to x wrong: sample n again from pi_old(. | x, h);  A within the group that is learnt from
    ratio_t = pi(y_t | x, y_<t) / pi_old(y_t | x, h, y_<t);    loss = -min(ratio A, clip(ratio, 1 - eps, 1 + eps) A)

Groups that are all wrong teach nothing. With a hint some of their replies are right; learnt from after the hint, they would teach
to use hints. After the plain prompt they are off-policy, which the ratio says, and the policy learns to do without. Prompts that
are solved get no hint: it would only take the policy away from what it can do.

Nath et al. 2025, arXiv:2506.13923 (abstract, summaries; no code was released). (inferred): the guided replies take the place of the
plain ones in the group; n, eps; where the hint stands in the prompt. Left out: writing the hints (by a stronger model, from the
solution, which it may not tell) and the variant for PPO.

Data: prompts and answers, and the column `hint`, a text for each; without it the first line of `solution` is the hint.
"""

from rewardlab.core import Recipe
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.proof.claim import Claim, Within
from rewardlab.rollouts.guided import guided


def guide_grpo(
    base: Recipe | None = None, *, n: int = 8, everywhere: bool = False, plain: bool = True, column: str = "hint"
) -> Recipe:
    """n: replies per prompt.  everywhere: hints for all prompts.  plain: the hint is taken away again.  column: of the hints."""
    base = base or grpo(n=n)
    return base.but(rollout=guided(of=base.required("rollout"), column=column, everywhere=everywhere, plain=plain))


claim = Claim(
    says="where most prompts are never solved, the right solutions become likelier without a hint than with GRPO",
    versus="grpo", task="hinted", measure="gold_logprob", direction="higher", margin=0.02, settings={"problems": 8},
    versus_settings={"problems": 8}, problems=500, steps=20, guard=Within("pass@1", low=-0.03),
    fault=Within("train.signal", high=0.6, says="share of groups whose replies are not all right or all wrong"),
    moved=Within("train.signal", low=0.1), learns=None,
    tried="60 prompts, frozen: .53 never right in 8 replies, .40 with a signal; of those never right .75 are rescued by the hint",
)  # fmt: skip
baseline = "grpo"
