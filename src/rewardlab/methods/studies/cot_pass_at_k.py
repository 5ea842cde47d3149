"""CoT-Pass@k: what training with answers alone teaches, where only replies with right reasoning count.

    pass@k      one of k replies has the right answer
    cot_pass@k  one of k replies has the right answer, by right reasoning:    1 - C(n - d, k) / C(n, k),  d of n replies

With enough tries a policy guesses what it cannot reason out, so that pass@k of a model before and after training meet at large k,
as if nothing had been learnt. Where P(right answer | right chain) > P(right answer | wrong chain), GRPO's expected advantage of
right chains is positive and that of wrong ones negative: answers alone teach chains.

Wen et al. 2025, arXiv:2506.14245. There DeepSeek-R1-0528-Qwen3-8B judges each chain several times, and a chain counts by the rule
any, majority or all of its verdicts. The judge here is any model (`judge`), asked in our words; the reasoning of right answers
alone is judged. What is trained is GRPO, as there DAPO is: any base is measured so (dapo+cot_pass_at_k). Of a model, without
training: rewardlab eval MODEL --task mine.jsonl --k 1,16 --reasoning openai:URL#NAME.
"""

from __future__ import annotations

from typing import Literal

from rewardlab.checks.claim import Claim, Within
from rewardlab.clients.endpoint import is_served
from rewardlab.core import Learner, Recipe
from rewardlab.data.columns import Data
from rewardlab.evals.cot_pass import cot_pass_curve
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.judged_reasoning import judged_reasoning
from rewardlab.settings.domain import PositiveInt
from rewardlab.worlds.remainders import right_chain

JUDGE = "judge"
ACCEPT = {"any": 1e-9, "majority": 0.5, "all": 1.0}
"""What the mean of the verdicts on right reasoning is at least."""


def cot_pass_at_k(
    base: Recipe | None = None, *, judge: str = "copy:policy", verifications: PositiveInt = 3,
    accept: Literal["any", "majority", "all"] = "majority", samples: PositiveInt = 16,
) -> Recipe:  # fmt: skip
    """judge: of reasoning: openai:URL#NAME, or a model; a frozen copy of the policy is for trying it out.  verifications: of each
    chain.  accept: how many of them accept right reasoning.  samples: replies to each held-out problem.
    """
    base = base or grpo()
    by = judged_reasoning(model=judge if is_served(judge) else JUDGE, samples=verifications)
    also = base.also if is_served(judge) else (*base.also, Learner(JUDGE, judge, Recipe(), every=0))
    return base.but(measure=cot_pass_curve(by=by, n=samples, at_least=ACCEPT[accept]), also=also)


fidelity = "core"
left_out = "its models and benchmarks (AIME, MATH-500, code), and training on the training questions of DAPO"
data = Data(
    answer="the gold answer",
    rows=[
        {"prompt": "Is 3 * 17 + 4 odd or even? Show your steps, then write Answer: odd or Answer: even.", "answer": "odd"},
        {"prompt": "Anna is 4 years older than Ben, and together they are 30. How old is Ben?", "answer": "13"},
        {"prompt": "What is the last digit of 7^4? Show your steps, then the answer in \\boxed{}.", "answer": "1"},
    ],
    settings={"judge": "copy:policy"},
)

claim = Claim(
    says="trained on answers alone, right chains are found for more problems, where pass@16 hardly shows a gain",
    versus=None, task="remainders:difficulty=[3,6],biased=0.8,error=0.05", measure="cot_pass@16", direction="higher", margin=0.05,
    against="before.cot_pass@16", settings={"problems": 8}, by=cot_pass_curve(by=right_chain(), n=16), problems=250, steps=40,
    guard=Within("pass@16", high=0.03, says="problems that sixteen replies answer"), guard_from="start",
    finding="Here answers alone do not teach chains: within 40 updates right chains are found among sixteen replies for 6% of the "
    "problems in place of 64%, while sixteen replies still answer 90% (95% before), four answers to guess from. Of the right "
    "answers 4% follow from their chain then, 54% before. GRPO did not learn there (47% right, then 37%); at a third of the "
    "rate, one run, it neither gained nor fell (51.5%, 54.5%).",
)  # fmt: skip
