"""ACECode: tiered rewards from execution: an error, a failed test, or right and how fast.

    r = -1 if it does not run;    -1/2 if it fails a test;    1/2 + 1/2 min(cost of the reference / its own cost, 1) if it is right

Models that are trained for right programs write slow ones, and those that are tuned on fast programs write more wrong ones. Here
speed is paid behind passing all tests alone, so it cannot be had instead. No reward model and no labels: the program is run.

Yang et al. 2024, arXiv:2412.17264, with PPO. 1/2 + 1/2 cost ratio, compared with a person's program, is the paper's (through a
review of it); (inferred): the ratio counts up to 1 (`max_ratio`), and what errors and failed tests cost. The cost is operations
where the verifier counts them, else seconds of processor time in the sandbox, each measured once: short programs are lost in noise.
"""

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Recipe
from rewardlab.data.columns import Column, Data
from rewardlab.evals.own_reward import own_reward
from rewardlab.evals.rewards import reward_of_right
from rewardlab.methods.baselines.ppo import ppo
from rewardlab.rewards.task import correct
from rewardlab.rewards.tests import log_cost, right_and_fast
from rewardlab.rollouts.independent import independent


def acecode(
    base: Recipe | None = None, *, error: float = -1.0, wrong: float = -0.5, speed: float = 0.5, max_ratio: float = 1.0,
    reference: str = "solution",
) -> Recipe:  # fmt: skip
    """error, wrong: what programs earn that do not run, or fail a test.  speed: the share of a right one's reward that is for
    its cost.  max_ratio: ratios above it count no more.  reference: the column with a right program. A base's reward beside the
    task's verifier is kept."""
    base = base or ppo()
    paid = right_and_fast(error=error, wrong=wrong, speed=speed, max_ratio=max_ratio, reference=reference)
    measure = own_reward(reward=paid, rollout=independent(n=1))
    return base.but(reward=paid if base.reward in (None, correct()) else base.reward + paid, measure=measure)


fidelity = "core"
left_out = "the paper itself could not be read, only a review of it: what errors and failed tests cost is inferred."

data = Data(
    answer="the tests of a right program: {'tests': 'assert ...'}, or {'io': [[input, output], ...]}",
    solution=Column("a right program, whose cost a right reply is compared with", setting="reference"),
    verified_by="code",
    rows=[
        {
            "prompt": "Write a Python function unique(xs) that returns the different elements of a list, in the order in which "
            "they first occur.",
            "answer": {"tests": "assert unique([3, 1, 3, 2, 1]) == [3, 1, 2]\nassert unique([]) == []"},
            "solution": "def unique(xs):\n    return list(dict.fromkeys(xs))",
        },
        {
            "prompt": "Read a number n from standard input and print the sum of 1 to n.",
            "answer": {"io": [["4\n", "10\n"], ["100000\n", "5000050000\n"]]},
            "solution": "n = int(input())\nprint(n * (n + 1) // 2)",
        },
    ],
)

SMALL = {"problems": 64, "lr": 1e-4}
claim = Claim(
    says="right programs take fewer operations than where right and wrong alone are paid, after equal updates, and are as many",
    versus="acecode", task="codes:slow=0.6,biased=0.75", measure="right_reward", direction="lower", margin=0.02302, settings=SMALL,
    versus_settings={**SMALL, "speed": 0.0}, by=reward_of_right(reward=log_cost(), rollout=independent(n=1)), steps=10,
    guard=Within("pass@1", low=-0.03),
    fault=Within("right_reward", low=0.1, says="log of a right program's operations to those of the reference"),
    tried="biased=0.7 at 3e-4, three seeds: right programs take fewer operations (log cost -.21), but .96 of the "
    "baseline's are right: nothing is left to learn; 40 steps as written here: +.200, sd .058 cheaper, .957 right; "
    "15 steps: +.074, sd .011, .888",
    finding="Paid for speed, right programs cost 1.20 times what the reference costs, as at the start (1.21); paid for being "
    "right alone, 1.25 times. Right are 83% and 84%, 58% at the start: speed is kept while programs become right, not "
    "gained.",
)  # fmt: skip
baseline = "ppo"
