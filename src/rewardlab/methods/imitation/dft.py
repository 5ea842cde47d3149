"""DFT: fine-tuning on recorded replies in which each token's loss is multiplied by the token's own probability.

    loss = -mean over tokens of sg(pi(y_t | y_<t)) log pi(y_t | y_<t),     sg: held fixed

The gradient of SFT is a policy gradient with the reward 1[y = y*] / pi(y): the less likely the policy finds a recorded token, the
harder it is pulled there, be the token a slip of the writer. The factor takes the division out, and leaves a reward of 1 for every
token. Where several tokens are recorded in one place, SFT ends at their frequencies, and DFT at the most frequent.

Wu et al. 2025, arXiv:2508.05629. Loss and mean over the batch's tokens follow the released trainer (yongliang-wu/DFT, 86f2a00),
without the exponents by kinds of words that it gained later. On another method it takes over that method's replies:
`rejection_sampling+dft` is the paper's offline RL.
"""

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Recipe
from rewardlab.data.columns import Column, Data
from rewardlab.methods.baselines.sft import sft
from rewardlab.objectives.ratio import imitate_by_probability


def dft(base: Recipe | None = None, *, field: str = "solution") -> Recipe:
    """field: the column of the data that holds the text to imitate; a base keeps the replies that it has."""
    base = base or sft(field=field)
    return base.but(objective=imitate_by_probability())


fidelity = "whole"
data = Data(
    solution=Column("the reply to imitate", setting="fields[0]"),
    answer=Column("the gold answer, for the held-out accuracy alone", optional=True),
    rows=[
        {
            "prompt": "Ben reads 12 pages a day. How many in 5 days?",
            "solution": "12 pages x 5 days = 60.\n\\boxed{60}",
            "answer": "60",
        },
        {"prompt": "What is the capital of Norway?", "solution": "The capital of Norway is Oslo.\nAnswer: Oslo", "answer": "Oslo"},
        {"prompt": "Solve x + 4 = 9.", "solution": "Subtract 4 from both sides: $x = 5$.\nAnswer: 5", "answer": "5"},
    ],
)

NOISY = "preferences:flip=0.3,biased=0.75,error=0.1"
claim = Claim(
    says="on demonstrations of which some are wrong, right solutions become likelier than with SFT after equal updates",
    versus="sft", task=NOISY, measure="gold", direction="higher", margin=0.19, settings={"field": "chosen"},
    versus_settings={"field": "chosen"}, steps=40, guard=Within("pass@1", low=-0.03),
    fault=Within("gold", high=0.75, says="probability of the right solution after SFT on demonstrations of which .3 are wrong"),
    finding="where 3 of 10 demonstrations are wrong, the right solution has a probability of 87% after DFT and 55% after SFT (35% "
    "before): DFT ends at the most frequent reply, SFT at the shares. Where the rarer reply is the right one, DFT would "
    "lose it; this is not tested",
)  # fmt: skip
system = "dft-dynamic-finetuning"
