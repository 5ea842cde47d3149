"""Step-DPO: prefer the right next step to the first wrong one, without penalising earlier right steps or later ones.

    loss = -log sigmoid(beta [log pi/ref(s_right | x, s_1 .. s_{k-1}) - log pi/ref(s_wrong | x, s_1 .. s_{k-1})])

s_1 .. s_{k-1} are the common first steps of both replies. Of each reply only step k is trained on, without an end-of-text token.

Lai et al. 2024, arXiv:2406.18629, and dvlab-research/Step-DPO (stepdpo_trainer.py). Rows may be those of its data,
xinlai/Math-Step-DPO-10K: the steps before in `initial_reason_steps`, and in `chosen` and `rejected` one step each, of as many lines
as it has. Of whole replies a pair is cut at the first line in which they differ. That is the first mistake if there is only one
right way, as in task `preferences` over arithmetic. The line break that ends a step belongs to it. beta is that of the released
script for 72B (0.5 for 7B).
"""

from dataclasses import replace

import numpy as np

from rewardlab.checks.claim import Claim
from rewardlab.core import Group, Problem, Recipe, Rollout, Run, Trajectory, Turn, rollout
from rewardlab.data.columns import Column, Data
from rewardlab.errors import RewardlabError
from rewardlab.text.splitters import mark

from .dpo import dpo

SIDES = ("chosen", "rejected")


@rollout(wraps="inner")
def to_first_difference(
    problems: list[Problem], run: Run, *, inner: Rollout, splitter: str = "newline", begun: str = "initial_reason_steps"
) -> list[Group]:
    """The pairs of `inner`, cut after the first step in which they differ; earlier steps become context.

    begun: the column of the steps before. The replies of a row that has it, be it empty, are single steps, and are not cut.
    """
    return [_cut(group, run, splitter, begun) for group in inner([_whole(p, begun) for p in problems], run)]


def _whole(problem: Problem, begun: str) -> Problem:
    """The problem with the steps before each of its two replies."""
    if not isinstance(before := problem.meta.get(begun), str):
        return problem
    replies = {side: before + problem.meta[side] for side in SIDES if isinstance(problem.meta.get(side), str)}
    return replace(problem, meta={**problem.meta, **replies})


def _cut(group: Group, run: Run, splitter: str, begun: str) -> Group:
    if len(group) != 2:
        raise RewardlabError(f"step preferences come in pairs, the right reply first; got {len(group)} replies to a problem")
    chosen, rejected = (mark(t, splitter, run.policy.pieces, run.policy.name) for t in group)
    start, *ends = first_difference(chosen, rejected)
    if isinstance(chosen.problem.meta.get(begun), str):
        # what both begin with has the same ratios, which cancel; the step may be the last of a reply, or not
        ends = [len(t) - 1 - (int(t.ids[-1]) in run.policy.ends) for t in (chosen, rejected)]
    return [_one_step(t, start, end, run) for t, end in zip((chosen, rejected), ends, strict=True)]


def first_difference(a: Trajectory, b: Trajectory) -> tuple[int, int, int]:
    """The position at which the first differing step of two marked replies begins, and its last position in each."""
    # argmax of a mask is its first True: both replies begin right after the same prompt
    start, ids = int(a.mask.argmax()), (a.ids, b.ids)
    # not strict: the replies may have different numbers of steps
    for i, j in zip(a.steps, b.steps, strict=False):
        if not np.array_equal(ids[0][start : i + 1], ids[1][start : j + 1]):
            return start, i, j
        start = i + 1
    raise RewardlabError(f"both replies to {a.problem.question[:60]!r} are the same: no preference can be learned from them")


def _one_step(t: Trajectory, start: int, end: int, run: Run) -> Trajectory:
    """The reply up to `end`, with everything before `start` turned into context."""
    decode = run.policy.decode
    *earlier, reply = t.cut(end + 1, decode).turns
    # equal first steps become text that is only read, which no loss sees
    prefix, step = np.split(reply.ids, [len(reply.ids) - (end + 1 - start)])
    context = (Turn(None, prefix, text=decode(prefix)),) if len(prefix) else ()
    # "stop", not "end": the step was cut, and no end-of-text token follows it
    return replace(t, turns=(*earlier, *context, Turn(reply.author, step, text=decode(step))), stop="stop", steps=())


def step_dpo(base: Recipe | None = None, *, beta: float = 0.4, splitter: str = "newline", sft_steps: int = 0) -> Recipe:
    """splitter: where steps end.  The data has columns `chosen` and `rejected`, whole replies that begin alike, or single steps.
    sft_steps: of SFT on whole chosen replies, as in `dpo`.
    """
    base = base or dpo(beta=beta, sft_steps=sft_steps)
    return base.but(rollout=to_first_difference(inner=base.required("rollout"), splitter=splitter))


fidelity = "core"
left_out = (
    "making the data: sampling wrong solutions, a judge that finds the first wrong step, and sampling a right one from the policy, "
    "which the paper finds to be better than one that another model wrote"
)
data = Data(
    chosen="the better reply, or with `initial_reason_steps` the better next step",
    rejected="the worse reply, or next step",
    initial_reason_steps=Column("the steps before it, if the replies are single steps; empty before the first", optional=True),
    rows=[
        {
            "prompt": "What is 3 + 4 * 2?",
            "initial_reason_steps": "Step 1: $4 * 2 = 8$.\nStep 2: ",
            "chosen": "Add 3:\n\\[3 + 8 = 11\\]",
            "rejected": "Add 3:\n\\[3 + 8 = 12\\]",
        },
        {"prompt": "What is half of 46?", "chosen": "40 / 2 = 20\n6 / 2 = 3\n20 + 3 = 23", "rejected": "40 / 2 = 20\n6 / 2 = 2"},
        {"prompt": "How many is two dozen?", "chosen": "A dozen is 12.\n2 * 12 = 24", "rejected": "A dozen is 10.\n2 * 10 = 20"},
    ],
)

claim = Claim(
    says="learning the first wrong step alone raises pass@1 above DPO's on whole replies after equal updates",
    versus="dpo", task="preferences:writer=policy,biased=0.75,error=0.1", measure="pass@1", direction="higher", margin=0.02,
    versus_settings={"beta": 0.4}, steps=40, start=None,
    finding="47% right before and 65% after either: learning the first wrong step alone is as good as learning whole replies, "
    "and reads a quarter fewer tokens. Replies of four short steps leave little that DPO would blame by mistake",
    version=2,
    replaces="tokens were the budget, and the policy began far from the pairs' replies",
)  # fmt: skip
