"""CGPO: reward only replies that satisfy every judge's constraint, with a cap on the KL to the reference.

    R = sigmoid(r(x, y) - r(x, y_0)) if all judges agree, else 0;    y_0: a reply of the reference policy
    A = R max(0, 1 - log(pi/ref)(y) / KL_max) - mean over the batch;    loss = -mean A log pi(y)          (CRPG)

Judges are rules or models that say whether something must not pass: a wrong answer, a form that is not asked for, a trick that a
reward model falls for. A penalty could be outweighed by the reward; behind a constraint nothing is paid.

Xu et al. 2024, arXiv:2409.20370: the policy-gradient optimiser (CRPG) of a single task. Equations 5, 8, 11 and 12. y_0 is the
second of its options, a reply of the reference, here sampled whenever the prompt comes. KL_max is (inferred): 10 nats, or a tenth
of a nat for each token of the reply, if that is more. The log-ratio is that of the whole reply, and 10 nats alone would leave long
ones without any reward as soon as the policy moves; `faded` is the share of replies of which nothing is left.
"""

from typing import Any

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Recipe
from rewardlab.credit.group import center_batch
from rewardlab.credit.kl import fade_to_kl
from rewardlab.credit.value import to_go
from rewardlab.data.columns import Column, Data
from rewardlab.evals.passk import accuracy
from rewardlab.methods.baselines.rlhf import rlhf
from rewardlab.rewards.algebra import threshold
from rewardlab.rewards.format import format_ok
from rewardlab.rewards.model import preferred
from rewardlab.rewards.reward import Reward
from rewardlab.rewards.task import correct
from rewardlab.tasks.lenient import number_mentioned

ONE_ANSWER = r"[^a-zA-Z]*Answer: -?\d+"  # lines of arithmetic, and a single number


def cgpo_mixture_of_judges(
    base: Recipe | None = None, *, judges: Reward | None = None, form: str = "", kl_max: float = 10.0, kl_token: float = 0.1,
    score: Reward | None = None,
    reward_model: str = "value-head", pairs: int | None = None, passes: int = 1, n: int = 4,
) -> Recipe:  # fmt: skip
    """judges: a reward that is at least 1 where all constraints are kept; None: the task's verifier.  form: instead, a regular
    expression that replies must match.  kl_max, kl_token: nats per reply at which nothing is paid any more, and per token of it
    where that is more.  score: what is calibrated, in place of a reward model's score.  reward_model, pairs, passes: see rlhf.
    """
    # the cap takes the place of a KL in the loss
    judged: dict[str, Any] = {"reward_model": reward_model, "pairs": pairs, "passes": passes}
    base = base or rlhf(score=score, n=n, beta=0.0, **judged).but(measure=accuracy())
    agree = threshold(judges or (format_ok(pattern=form) if form else correct()), at=1.0)
    return base.but(
        reward=agree >> preferred(inner=base.required("reward")),
        credit=fade_to_kl(max_kl=kl_max, per_token=kl_token) >> center_batch() >> to_go(),
    )


fidelity = "core"
left_out = (
    "CODPO and CRRAFT, the optimisers that learn from the best reply that keeps all constraints, and several tasks at once, "
    "each with its own judges and reward model."
)

data = Data(
    answer=Column("the gold answer, by which the verifier judges; not read with `form` or `judges`", optional=True),
    chosen=Column("a reply that was preferred, for teaching the reward model; not read with --reward-model PATH", optional=True),
    rejected=Column("the reply that it was preferred to", optional=True),
    rows=[
        {
            "prompt": "A shop sells pens at 3 for $2. What do 12 pens cost?",
            "answer": "8",
            "chosen": "12 pens are 4 times 3 pens, so they cost 4 * $2 = $8.\nAnswer: 8",
            "rejected": "It depends on the shop, but about 8, 18 or 24 dollars.",
        },
        {
            "prompt": "How many days has a leap year?",
            "answer": "366",
            "chosen": "A leap year has one day more than 365.\nAnswer: 366",
            "rejected": "Great question! Years are fascinating.\nAnswer: 365",
        },
    ],
)

HACKED = {"score": number_mentioned(), "n": 4}
# by construction: the rule shuts out exactly the trick that was planted
claim = Claim(
    says="a trick that a lenient reward falls for is not learnt where a rule judges it: more answers are right than without it",
    versus="rlhf", task="arithmetic:biased=0.8,rules=+-,error=0.05,hedged=0.15", measure="pass@1", direction="higher",
    margin=0.23, settings={**HACKED, "form": ONE_ANSWER}, versus_settings=HACKED, by=accuracy(), steps=40,
    fault=Within("train.truth", high=0.25, says="right answers late in training on the raw reward; 0.37 at the start"), learns=None,
    sanity=True,
    finding="Right answers rise from 35% to 53% with the rule, and fall to 10% without it: the lenient reward alone teaches "
    "its trick. The rule shuts out just that trick; tricks that no judge knows are not tested.",
)  # fmt: skip
