"""Thoth: reward a protocol for count, order and content of its steps, gated by agreement of records and words.

    r = form >> told >> f(d) (order + content),    f(d) = cos(pi d / 2M), 0 from d = M on
    content = mean over steps with the same action of m(x) (objects + parameters / 2),    m(x) = 1 - (x / steps)^1.5

d: by how much the count of steps is off; x: by how many places a step is.  form: <think>, <key> with a JSON record of each step,
<orc>, <note>;  told: <orc> tells the steps of <key> line by line.  order: 1 if the actions are the gold ones in their order. Gates
and the factor f keep a reply from making up for a broken part by the others, as it can in a sum: records without words that a
person could follow, or every step twice.

Sun et al. 2025, arXiv:2510.15600 ("SCORE"). Followed: the repository's README, launch script and evaluation (manglu097/Thoth,
13dbaec, 4e7ccec, 61d2384; train/score_start.sh of 967101e): strict order, order + content, means over the steps that match, the
product with f, n = 5, a KL of 0.0005, and the mean over tokens, which verl takes where a script names none; overlaps and m(x) as
the evaluation computes them. The README's text multiplies order and
content; what its scripts set by default adds them. The reward's own code is not public: (inferred) M is the gold count, and a line
tells a step if it names its action and a word of each object.

SciRecipe's column `response` is the answer, and its column `query` the prompt.
"""

from typing import Any, Literal

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Recipe
from rewardlab.data.columns import Data
from rewardlab.evals.own_reward import own_reward
from rewardlab.evals.pairs import pair_agreement
from rewardlab.evals.seeded_subset import own_share
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.objectives.weighting import token_mean
from rewardlab.rewards.algebra import aggregate
from rewardlab.rewards.reward import Reward
from rewardlab.rollouts.independent import independent
from rewardlab.worlds.protocols import action_order, protocol_form, protocol_told, step_count, step_semantics

Actions = Literal["strict", "lcs"]
Over = Literal["matched", "longest"]


def components(actions: Actions = "strict", over: Over = "matched", gated: bool = True) -> Reward:
    """The reward; without gates, the sum of its five parts."""
    content = action_order(mode=actions) + step_semantics(over=over)
    if not gated:
        return protocol_form() + protocol_told() + step_count() + content
    return protocol_form() >> (protocol_told() >> step_count() * content)


def thoth_scirecipe(
    base: Recipe | None = None, *, actions: Actions = "strict", over: Over = "matched", gated: bool = True, n: int = 5,
    beta: float = 0.0005,
) -> Recipe:  # fmt: skip
    """actions: in strict order, or by the longest common subsequence.  over: which steps content is the mean over.  gated: False
    leaves a sum.  n, beta: of grpo. The reward takes the place of a base's.
    """
    base = base or grpo(n=n, beta=beta).but(weighting=token_mean())
    reward: Any = components(actions, over, gated)
    return base.but(reward=reward, measure=own_reward(reward=reward, rollout=independent(n=1)))


GATED, SUMMED = components().named("gated"), aggregate(components(gated=False)).named("summed")
fidelity = "core"
left_out = (
    "pretraining on protocols and SFT before it, which are methods of their own; and the released reward's own way of telling "
    "whether <orc> says what <key> records, which is not public"
)
data = Data(
    answer="the gold text with its <think>, <key> with a JSON record of each step, <orc> and <note>",
    rows=[
        {
            "prompt": "How is DNA stained in a gel? Answer with <think>, <key>, <orc> and <note>.",
            "answer": "<think>Stain, then wash off what is left.</think>\n<key>\n"
            'Step 1: {"action": "stain", "objects": ["gel"], "parameters": ["30 min"]}\n'
            'Step 2: {"action": "wash", "objects": ["gel"], "parameters": ["water"]}\n</key>\n'
            "<orc>\nStep 1: Stain the gel for 30 min.\nStep 2: Wash the gel in water.\n</orc>\n<note>Wear gloves.</note>",
        },
        {
            "prompt": "How are cells pelleted? Answer with <think>, <key>, <orc> and <note>.",
            "answer": "<think>One spin.</think>\n<key>\n"
            'Step 1: {"action": "centrifuge", "objects": ["culture"], "parameters": ["9700xg", "5 min"]}\n</key>\n'
            "<orc>\nStep 1: Centrifuge the culture at 9700xg for 5 min.\n</orc>\n<note>Balance the tubes.</note>",
        },
    ],
)

# by construction: both kinds of reply are written so that the rival orders them wrongly
check = Check(
    says="gated, the reward prefers honest protocols with slips to gamed ones more often than the sum of its parts does",
    versus=None, task="protocols:test_size=4000", measure="pair_accuracy.gated", direction="higher", margin=0.1,
    against="pair_accuracy.summed", model="untrained", by=own_share(inner=pair_agreement(reward=GATED + SUMMED)), problems=4000,
    steps=1,
    fault=Within("pair_accuracy.summed", high=0.9, says="honest protocols above gamed ones, by the sum"), learns=None, start=None,
    sanity=True,
    finding="honest protocols with slips are paid more than gamed ones in 92% of pairs with gates, in 70% by the sum of the same "
    "parts. Both kinds are written so: it shows the gates at work, and no policy was trained by them",
)  # fmt: skip
baseline = "grpo"
