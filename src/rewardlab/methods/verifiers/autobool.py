"""AutoBool: reward a Boolean query for recall first, and for log-precision in proportion to recall.

    r = +-10 form +- 10 validity + R,    R = 10 recall + 10 recall^alpha log(1 + 100 precision) / log 101
    R = -20 if it finds nothing, or cannot be run;    -5 if it finds nothing relevant

A systematic review must miss nothing, but somebody reads what is found. Recall alone is had by finding everything. By the logarithm
the first points of precision pay most: one document in ten that is relevant is worth half of what ten in ten are.

Wang et al. 2025, arXiv:2602.00005; rewards as released (ielab/AutoBool, 224cefe, train_autobool/reward.py), with alpha = 1, and as
its training script (train_grpo.py) has it rewards are not divided by their deviation, n = 12, temperature 0.6, a KL of 0.001.
`boolean_query` searches the documents that come with a problem. No query needs to be known.
"""

import math

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Recipe
from rewardlab.credit.group import center
from rewardlab.credit.value import to_go
from rewardlab.data.columns import Data
from rewardlab.evals.groups import best_paid
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.operator import operator
from rewardlab.rewards.reward import Reward
from rewardlab.rewards.task import correct, detail
from rewardlab.rollouts.independent import independent

SCALE = 100.0


@operator
def retrieval(
    found: float, hits: float, recall: float, precision: float, *, alpha: float = 1.0, precision_weight: float = 10.0
) -> float:
    """R of a query."""
    if not found:
        return -20.0
    if not hits:
        return -5.0
    return 10 * recall + precision_weight * recall**alpha * math.log(1 + precision * SCALE) / math.log(1 + SCALE)


def query_reward(alpha: float, precision: float) -> Reward:
    """The three rewards of a query, from what `boolean_query` says of it."""
    numbers = (detail(name=name).named(name) for name in ("found", "hits", "recall", "precision"))
    form, valid = ((20 * detail(name=name).named(name) - 10) for name in ("form", "valid"))
    return retrieval(*numbers, alpha=alpha, precision_weight=precision) + form + valid


def autobool(
    base: Recipe | None = None, *, alpha: float = 1.0, precision: float = 10.0, n: int = 12, temperature: float = 0.6,
    beta: float = 0.001,
) -> Recipe:  # fmt: skip
    """alpha: how much recall a query needs before its precision pays.  precision: what full precision pays; 0: recall alone.  n,
    temperature, beta: of grpo. A base's reward beside the task's verifier is kept.
    """
    reward = query_reward(alpha, precision)
    measure = best_paid(reward=reward, rollout=independent(n=4))
    base = base or grpo(n=n, temperature=temperature, beta=beta).but(credit=center() >> to_go())
    return base.but(reward=reward if base.reward in (None, correct()) else base.reward + reward, measure=measure)


fidelity = "core"
left_out = (
    "PubMed's field tags (MeSH, title and abstract) and the API that searches it: queries are words and quoted words over the "
    "documents of a row; and leaving out replies that are cut off"
)
data = Data(
    answer='{"relevant", "documents"}: indices of relevant texts, and the texts',
    rows=[
        {
            "prompt": "Write a boolean query for trials of aspirin against headache.",
            "answer": {"relevant": [0], "documents": ["aspirin for headache: a trial", "knee surgery outcomes"]},
        },
        {
            "prompt": "Write a boolean query for studies of sleep in children.",
            "answer": {"relevant": [1], "documents": ["aspirin for headache", "sleep of school children"]},
        },
    ],
    verified_by="boolean_query",
)

# by construction: what is compared is the precision that only one side is paid for
check = Check(
    says="of a policy's queries the one paid most finds fewer documents than where recall alone is paid, and as many relevant ones",
    versus="autobool", task="reviews", measure="best.found", direction="lower", margin=1.0, versus_settings={"precision": 0.0},
    steps=1, guard=Within("best.recall", low=-0.03),
    fault=Within("best.precision", high=0.8, says="precision of the queries that recall alone pays most"), learns=None, start=None,
    sanity=True,
    finding="of four queries the one paid most finds 4.6 documents, and 6.5 where recall alone is paid, with 97% and 97% of the "
    "relevant ones. Precision is what only one side is paid for: it shows the formula at work on a policy that is not trained",
)  # fmt: skip
baseline = "grpo"
