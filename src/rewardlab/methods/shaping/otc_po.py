"""OTC-PO: scale a right answer's reward by how close its tool calls are to the fewest of a right reply in the group.

    r = r_tool * r_correct,    m: tool calls of this episode,    n: fewest tool calls of a right episode of its group
    r_tool = 1 if m = n = 0;    cos(pi m / (2m + c)) if n = 0 < m;    sin(pi m / (m + n)) otherwise

sin(pi m / (m + n)) is the paper's sin(f pi / 2n) with f = 2nm / (m + n): 1 at m = n, falling for more calls. The product gives a
wrong answer nothing, however few calls it made; a sum would reward not searching at all.

Wang et al. 2025, arXiv:2504.14870. The GRPO form, with n from the group of the present step (inferred: the paper also speaks of the
fewest calls of earlier steps) and c = 1 (inferred). The constant factor before the reward is one that GRPO's normalisation removes.
A tool call is a reply that the environment answered: by default a search in a file (corpus="docs.jsonl") or in the documents of the
column facts. Any environment of text will do: otc_po(env=...), or a stack on a method that plays one, igpo+otc_po.
"""

import math

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Environment, Group, Recipe, Run, Score, Scores, Trajectory
from rewardlab.data.columns import Column, Data
from rewardlab.envs.search import search, tools
from rewardlab.evals.episodes import episode_accuracy
from rewardlab.evals.length import length_of_right
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.reward import reward
from rewardlab.rewards.task import correct
from rewardlab.rollouts.interactive import in_place_of_replies, interactive


def tool_calls(trajectory: Trajectory) -> int:
    """Replies that the environment answered and the policy went on from: all but the last."""
    return max(0, len(trajectory.ends) - 1)  # an episode without any reply has no calls


def economy(calls: int, fewest: int, c: float) -> float:
    """r_tool of an episode with this many calls, where the fewest calls of a right one are `fewest`."""
    # with n = 0 the sine would be 0 for every m > 0, and could not tell few calls from many
    if fewest == 0:
        return math.cos(math.pi * calls / (2 * calls + c)) if calls else 1.0
    return math.sin(math.pi * calls / (calls + fewest))


@reward(over="groups")
def tool_economy(groups: list[Group], run: Run, *, c: float = 1.0) -> Scores:
    """r_tool of every right episode, 0 of a wrong one; an episode without a verdict gets none, and does not count for n."""
    return [_economies(group, row, c) for group, row in zip(groups, correct()(groups, run), strict=True)]


def _economies(group: Group, verdicts: list[Score], c: float) -> list[Score]:
    right = [v.value is not None and v.value >= 1.0 for v in verdicts]
    fewest = min((tool_calls(t) for t, ok in zip(group, right, strict=True) if ok), default=0)  # unused if nobody is right
    return [
        Score(None, why=v.why) if v.value is None else Score(economy(tool_calls(t), fewest, c) if ok else 0.0)
        for t, v, ok in zip(group, verdicts, right, strict=True)
    ]


def otc_po(
    base: Recipe | None = None, *, env: Environment | None = None, corpus: str = "", n: int | None = None, turns: int = 6,
    c: float = 1.0,
) -> Recipe:  # fmt: skip
    """env: the tools; without it, those that the base plays with, else a search.  corpus: a file of documents to search (`tools`).
    n: episodes of a problem; None: as many as the base has, or else 8.  turns: the most that an episode may have.  c: how slowly
    calls cost where none was needed.
    """
    base = base or grpo(n=n or 8)
    reward = (base.reward or correct()) * tool_economy(c=c)
    # a base that plays in an environment keeps it, and keeps its measure
    if not (env or corpus) and base.sampling_settings.get("env"):
        return base.but(reward=reward)
    env = tools(env, corpus)
    return base.but(
        rollout=in_place_of_replies(base.required("rollout"), env=env, n=n, turns=turns),
        reward=reward,
        measure=episode_accuracy(rollout=interactive(env=env, n=1, turns=turns)),
    )


fidelity = "core"
left_out = (
    "the PPO form, which has no group and takes n = 0, the constant factor before the reward, and the fewest calls of "
    "earlier steps."
)

data = Data(
    answer="the gold answer",
    facts=Column("documents to search, texts or {'title', 'text'}; not read with --corpus or --env", optional=True),
    rows=[
        {
            "prompt": "What is 17 times 3? Answer at once if you know, else search: <search>what to look up</search>.",
            "answer": "51",
            "facts": ["Multiplication is repeated addition.", "17 is a prime number."],
        },
        {
            "prompt": "Who wrote the novel that the film Blade Runner is based on? To search, write <search>what to look up"
            "</search>. To answer, write <answer>...</answer>.",
            "answer": "Philip K. Dick",
            "facts": [
                {"title": "Blade Runner", "text": "Blade Runner (1982) is based on Do Androids Dream of Electric Sheep?"},
                {"title": "Do Androids Dream of Electric Sheep?", "text": "A novel of 1968 by Philip K. Dick."},
            ],
        },
    ],
)

SEARCHES = interactive(env=search(), n=2, turns=6)
claim = Claim(
    says="right answers take fewer tool calls than with the outcome alone after equal updates, at comparable accuracy",
    versus="igpo", task="facts:hops=2,error=0.3,redundant=0.4", measure="right_calls", direction="lower", margin=0.4,
    settings={"problems": 8}, versus_settings={"problems": 8, "gain": 0.0, "turns": 6}, by=length_of_right(rollout=SEARCHES),
    steps=30, guard=Within("pass@1", low=-0.03), start=None,
    tried="40 updates: -.87 calls on one pair, where the baseline ends at .86, above what the gate admits",
    finding="A right answer takes 2.4 calls, with the outcome alone 2.9 (2.7 at the start), and as many are right (82%, 83%; "
    "55% at the start).",
)  # fmt: skip
baseline = "grpo"
