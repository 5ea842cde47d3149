"""Step-DPO: prefer the right next step to the first wrong one, so that right steps before and all steps after it are not penalised.

    loss = -log sigmoid(beta [log pi/ref(s_right | x, s_1 .. s_{k-1}) - log pi/ref(s_wrong | x, s_1 .. s_{k-1})])

s_1 .. s_{k-1} are the common first steps of both replies. Of each reply only step k is trained on, without an end-of-text token.

Lai et al. 2024, arXiv:2406.18629. In the paper a judge finds the first wrong step, and the right one is sampled from the policy.
Here a pair is cut at the first step in which its replies differ. That is the first mistake if there is only one right way, as in
task `preferences` over arithmetic, and then the policy would sample the same right step. The line break that ends a step belongs to
it. beta is that of the released code for 72B (0.5 for 7B).
"""

from dataclasses import replace

import numpy as np

from rewardlab.checks.claim import Claim
from rewardlab.core import Group, Problem, Recipe, Rollout, Run, Trajectory, Turn, rollout
from rewardlab.data.columns import Data
from rewardlab.errors import RewardlabError
from rewardlab.text.splitters import mark

from .dpo import dpo


@rollout(inner="of")
def to_first_difference(problems: list[Problem], run: Run, *, of: Rollout, splitter: str = "newline") -> list[Group]:
    """The pairs of `of`, cut after the first step in which they differ; earlier steps become context."""
    return [_cut(group, run, splitter) for group in of(problems, run)]


def _cut(group: Group, run: Run, splitter: str) -> Group:
    if len(group) != 2:
        raise RewardlabError(f"step preferences come in pairs, the right reply first; got {len(group)} replies to a problem")
    chosen, rejected = (mark(t, splitter, run.policy.pieces, run.policy.name) for t in group)
    start, *ends = first_difference(chosen, rejected)
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
    """splitter: where steps end.  The data has columns `chosen` and `rejected`, whole replies that begin alike.
    sft_steps: of SFT on the whole chosen replies, as in `dpo`.
    """
    base = base or dpo(beta=beta, sft_steps=sft_steps)
    return base.but(rollout=to_first_difference(of=base.required("rollout"), splitter=splitter))


data = Data(
    chosen="the better next step, after the beginning in the prompt",
    rejected="the worse next step",
    rows=[
        {"prompt": "What is 3 + 4 * 2?\nStep 1: 4 * 2 = 8", "chosen": "Step 2: 3 + 8 = 11", "rejected": "Step 2: 3 + 8 = 12"},
        {"prompt": "What is half of 46?", "chosen": "Step 1: half of 40 is 20", "rejected": "Step 1: half of 46 is 22"},
    ],
)

claim = Claim(
    says="learning the first wrong step alone raises pass@1 above DPO's on whole replies after equal updates",
    versus="dpo", task="preferences:writer=policy,biased=0.75,error=0.1", measure="pass@1", direction="higher", margin=0.02,
    versus_settings={"beta": 0.4}, steps=40, start=None,
    finding="in as many updates both learn the same; single steps do it with a quarter fewer tokens", version=2,
    replaces="tokens were the budget, and the policy began far from the pairs' replies",
)  # fmt: skip
